"""Output and error messages of the simulated Slurm's commands, in the words of Slurm 22.05.8."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from llmb_tui.demo.cluster import DemoCluster
from tests.demo.demo_client import SPEED, Client
from tests.kit.demo import fault
from tests.kit.waiting import until

FAILED = "sbatch: error: Batch job submission failed: "


@pytest.fixture(scope="module")
def asker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Client for tests whose commands Slurm refuses."""
    with DemoCluster(tmp_path_factory.mktemp("refusing") / "demo", speed=SPEED) as cluster:
        client = Client(cluster.profile)
        client.run("printf '#!/bin/sh\\n' >script")
        yield client
        assert client.queue("JobID") == []
        client.ssh.close()


@pytest.fixture
def waiting(cluster: DemoCluster, client: Client) -> str:
    """A job that stays in the queue."""
    fault(cluster, "queue-wait", "1e9")
    return client.submit("#!/bin/sh\n", "--nodes=2 --time=00:30:00 --job-name=a_name")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("--account=x", "Invalid account or account/partition combination specified"),
        ("--partition=x", "Invalid partition name specified"),
        ("--nodes=289", "Node count specification invalid"),
        ("--nodes=0", "Node count specification invalid"),
        ("--partition=debug --nodes=3", "Node count specification invalid"),
        ("--gpus-per-node=9", "Requested node configuration is not available"),
        ("--gres=gpu:9", "Requested node configuration is not available"),
        ("--time=4:00:01", "Requested time limit is invalid (missing or exceeds some limit)"),
        ("--partition=debug --time=00:31:00", "Requested time limit is invalid (missing or exceeds some limit)"),
        ("--qos=x", "Invalid qos specification"),
        ("--reservation=x", "Requested reservation is invalid"),
        ("--constraint=x", "Invalid feature specification"),
    ],
)
def test_sbatch_refuses_in_slurms_words_and_queues_nothing(asker: Client, options: str, text: str) -> None:
    answer = asker.run(f"sbatch {options}", b"#!/bin/sh\n")
    assert (answer.code, answer.out, answer.err) == (1, "", f"{FAILED}{text}\n")


def test_script_directives_and_dry_runs_are_checked_like_the_command_line(asker: Client) -> None:
    answer = asker.run("sbatch", b"#!/bin/sh\n#SBATCH --qos=x\n")
    assert (answer.code, answer.out, answer.err) == (1, "", f"{FAILED}Invalid qos specification\n")
    answer = asker.run("sbatch --test-only --qos=x --wrap=true")
    assert (answer.code, answer.err) == (1, "allocation failure: Invalid qos specification\n")


NOT_OFFERED = (
    "sbatch --segment=4 --wrap=true",
    "sbatch -N 2 --wrap=true",
    "sbatch --nodes=x --wrap=true",
    "sbatch --time=x --wrap=true",
    "sbatch --output=%x.out --wrap=true",
    "sbatch --open-mode=truncate --wrap=true",
    "sbatch script argument",
    "srun true",
    "srun --pty true",
    "srun --mpi=pmi2 true",
    "squeue",
    "squeue -h",
    "squeue -h --start -o %i",
    "squeue -h -t running -o %i",
    "squeue -h -u somebody-else -o %i",
    "squeue -h -j x -o %i",
    "squeue -h -o %T",
    "squeue -h -O Priority:|",
    "sinfo",
    "sinfo -h -o %C",
    "sinfo -h -p batch -o %D",
    "sacct -j 1",
    "sacct -n -P -o JobID",
    "sacct -X -n -P -o Restarts",
    "sacct -X -n -P -o JobID -S yesterday",
    "sacctmgr show user",
    "sacctmgr -nP show assoc user=somebody-else format=account",
    "sacctmgr -nP show qos format=priority",
    "scontrol",
    "scontrol show job 1",
    "scontrol show partition batch",
    "scontrol requeue 1",
    "scontrol update job=1",
    "scancel",
    "scancel --me",
    "scancel x",
)


@pytest.mark.parametrize("command", NOT_OFFERED)
def test_unsupported_options_are_refused_with_a_message(asker: Client, command: str) -> None:
    program = command.split(maxsplit=1)[0]
    answer = asker.run(command.replace("|", "'|'"))
    assert (answer.code, answer.out) == (255 if program in ("sbatch", "srun") else 1, "")
    assert re.fullmatch(rf"{program}: .*: the simulated Slurm of the demo does not offer that\n", answer.err)


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("", "This does not look like a batch script."),
        ("echo hi\n", "This does not look like a batch script."),
        ("#!/bin/sh\n#SBATCH --job-name=a b c\n", "unrecognized argument 'c'"),
    ],
)
def test_sbatch_refuses_text_that_is_not_a_batch_script(asker: Client, script: str, text: str) -> None:
    answer = asker.run("sbatch", script.encode())
    assert answer.code
    assert text in answer.err


def test_a_dry_run_judges_without_queueing(asker: Client) -> None:
    answer = asker.run("sbatch --test-only --nodes=4 --wrap=true")
    assert answer.code == 0
    assert re.search(r": Job 1 to start at \S+ using 448 processors on nodes demo\[001-004\] in", answer.err)


def test_the_line_goes_before_the_script(cluster: DemoCluster, client: Client) -> None:
    fault(cluster, "queue-wait", "1e9")
    script = "#!/bin/sh\n#SBATCH --job-name=script\n# a comment\n#SBATCH --nodes=2\ntrue\n#SBATCH --nodes=3\n"
    client.submit(script)
    client.submit(script, "--job-name=line")
    assert client.queue("Name,NumNodes") == ["script|2", "line|2"]


def test_squeue_filters_by_job_number_and_by_name(client: Client, waiting: str) -> None:
    assert re.fullmatch(r"Priority\|\d{4}-\S+\n", client.run(f"squeue -h -j {waiting} -o '%r|%S'").out)
    assert client.run("squeue -h -n a_name -o %i").out == f"{waiting}\n"
    assert client.run("squeue -h -n a_nam -o %i").out == ""
    answer = client.run("squeue -h -j 99 -o %i")
    assert (answer.code, answer.err) == (1, "slurm_load_jobs error: Invalid job id specified\n")


def test_the_controller_forgets_jobs_that_accounting_keeps(cluster: DemoCluster, client: Client) -> None:
    job = client.submit("#!/bin/sh\n")
    client.wait_for_state(job, "COMPLETED")
    assert client.run("squeue -h -o %i").out == ""
    assert client.queue("JobID,State") == [f"{job}|COMPLETED"]
    record = cluster.root / "slurm" / "jobs" / job / "job.json"
    document = json.loads(record.read_text())
    record.write_text(json.dumps({**document, "closed": document["closed"] - 301}))
    assert client.run(f"squeue -h -j {job} -o %i").err == "slurm_load_jobs error: Invalid job id specified\n"
    assert client.state(job) == "COMPLETED"


def test_the_times_of_a_job_agree(client: Client) -> None:
    job = client.submit("#!/bin/sh\nsleep 0.3\n")
    client.wait_for_state(job, "COMPLETED")
    submit, start = client.run("SLURM_TIME_FORMAT=%s squeue -h -t all -O 'SubmitTime:|,StartTime:|'").out.split("|")[:2]
    assert int(start) - int(submit) > 44  # the full 45 seconds have passed
    elapsed = int(client.accounting(job, "ElapsedRaw"))
    assert elapsed > 0.3 * SPEED
    (used,) = client.queue("TimeUsed")
    *hours, minutes, seconds = map(int, used.split(":"))
    assert sum(hours) * 3600 + minutes * 60 + seconds == elapsed


def test_sacct_filters_by_day_and_by_name(client: Client) -> None:
    job = client.submit("#!/bin/sh\n#SBATCH --job-name=a_name --nodes=2\nexit 3\n")
    client.wait_for_state(job, "FAILED")
    shown = f"{job}|FAILED|3:0|2|demo[001-002]|a_name\n"
    asked = "sacct -X -n -P -o JobID,State,ExitCode,NNodes,NodeList,JobName"
    for options, text in (("-S 2020-01-01 --name=a_name", shown), ("--name=other", ""), ("-S 2050-01-01", "")):
        assert client.run(f"{asked} {options}").out == text


def test_scontrol_refuses_unknown_names(asker: Client) -> None:
    for words, text in (
        ("-a show partition x", "Partition x not found\n"),
        ("-a -o show node demo[001-002],x", "Node x not found\n"),
    ):
        answer = asker.run(f"scontrol {words}")
        assert (answer.code, answer.err) == (1, text)


def test_a_job_that_has_ended_cannot_be_cancelled(client: Client) -> None:
    job = client.submit("#!/bin/sh\n")
    client.wait_for_state(job, "COMPLETED")
    for number in (job, "99"):
        answer = client.run(f"scancel {number}")
        assert (answer.code, answer.err) == (0, "")
    assert client.state(job) == "COMPLETED"


def test_a_dead_controller_and_missing_accounting(cluster: DemoCluster, client: Client) -> None:
    asked = "sacct -X -n -P -o JobID"
    fault(cluster, "controller-down")
    answer = client.run("scontrol ping")
    assert (answer.code, answer.err) == (
        1,
        "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n",
    )
    assert client.run(asked).code == 0
    fault(cluster, "controller-down", None)
    fault(cluster, "no-accounting")
    assert client.run("scontrol ping").code == 0
    answer = client.run(asked)
    assert (answer.code, answer.err) == (1, "Slurm accounting storage is disabled\n")
    assert client.run("sacctmgr -nP show qos format=name").code == 1


def test_sbatch_can_answer_late(cluster: DemoCluster, client: Client) -> None:
    fault(cluster, "answer-delay", "60")
    channel = client.start("sbatch --wrap=true")
    until(lambda: client.queue("Name") == ["wrap"], "the job to be there")
    assert not channel.recv_ready()
    channel.close()


def test_the_commands_are_found_from_anywhere(cluster: DemoCluster, client: Client) -> None:
    folder = Path(cluster.profile.install_dir)
    folder.mkdir()
    assert client.run(f"cd {folder} && printf '#!/bin/sh\\npwd\\n' >j && sbatch --parsable j").out == "1\n"
    client.wait_for_state("1", "COMPLETED")
    assert (folder / "slurm-1.out").read_text() == f"{folder}\n"
