"""The small Slurm's commands: what they print and how they refuse. Texts are those of Slurm 22.05.8."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from llmb_tui.demo.cluster import DemoCluster
from tests.demo.demo_client import SPEED, Client, wait_for


@pytest.fixture
def waiting(cluster: DemoCluster, client: Client) -> str:
    """A job that stays in the queue."""
    cluster.fault("queue-wait", "1e9")
    options = "-N 2 --ntasks-per-node=8 --gpus-per-node=8 -t 30 -J demo-demo.a_name_that_is_long"
    return client.submit("#!/bin/sh\n", options)


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        ("--account=x", 1, "Batch job submission failed: Invalid account or account/partition combination specified"),
        ("--partition=x", 1, "invalid partition specified: x"),
        ("--partition=x", 1, "Batch job submission failed: Invalid partition name specified"),
        ("--nodes=289", 1, "Batch job submission failed: Node count specification invalid"),
        ("--nodes=0", 1, "Batch job submission failed: Node count specification invalid"),
        ("--partition=debug --nodes=3", 1, "Batch job submission failed: Node count specification invalid"),
        ("--gpus-per-node=9", 1, "Batch job submission failed: Requested node configuration is not available"),
        ("--gres=gpu:b200:8", 1, "Batch job submission failed: Requested node configuration is not available"),
        ("--time=4:00:01", 1, "Requested time limit is invalid (missing or exceeds some limit)"),
        ("-p debug -t 31", 1, "Requested time limit is invalid (missing or exceeds some limit)"),
        ("--qos=x", 1, "Batch job submission failed: Invalid qos specification"),
        ("--dependency=x:1", 1, "Batch job submission failed: Job dependency problem"),
        ("--gres=x:1", 1, "error: Invalid generic resource (gres) specification"),
        ("--ntasks-per-node=0", 1, 'error: Invalid numeric value "0" for --ntasks-per-node.'),
        ("--time=x", 255, "error: Invalid --time specification"),
        ("--nodes=x", 255, 'error: "x" is not a valid node count'),
        ("--mem=x", 255, "error: Invalid --mem specification"),
        ("--exclusive=x", 255, "error: Invalid --exclusive specification"),
        ("--open-mode=x", 255, "error: Invalid --open-mode specification"),
        ("--segment=4", 255, "sbatch: unrecognized option '--segment=4'\nTry \"sbatch --help\" for more information"),
        ("-Z", 255, "sbatch: invalid option -- 'Z'"),
        ("--requeue=3", 255, "sbatch: option '--requeue' doesn't allow an argument"),
        ("--no", 255, "sbatch: option '--no' is ambiguous; possibilities: "),
    ],
)
def test_sbatch_refuses_in_slurms_words(client: Client, options: str, code: int, text: str) -> None:
    answer = client.run(f"sbatch {options}", b"#!/bin/sh\n")
    assert (answer.code, answer.out) == (code, "")
    assert text in answer.err


@pytest.mark.parametrize(("options", "code"), [("--account=x", 1), ("--gpus-per-node=9", 1), ("--segment=4", 255)])
def test_a_refused_script_is_not_queued(client: Client, options: str, code: int) -> None:
    assert client.run("sbatch", f"#!/bin/sh\n#SBATCH {options}\n".encode()).code == code
    assert client.run("squeue -h -t all").out == ""


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("", "Batch script is empty!"),
        ("echo hi\n", "This does not look like a batch script.  The first\n"),
        ("#!/bin/sh\r\ntrue\r\n", "Batch script contains DOS line breaks (\\r\\n)\n"),
        ("#!/bin/sh\n#SBATCH -J a b\n", "Invalid directive found in batch script: b"),
    ],
)
def test_sbatch_refuses_what_is_no_batch_script(client: Client, script: str, text: str) -> None:
    answer = client.run("sbatch", script.encode())
    assert answer.code
    assert text in answer.err


def test_only_a_job_refused_for_its_shape_leaves_a_line_in_accounting(client: Client) -> None:
    client.run("sbatch -A x", b"#!/bin/sh\n")
    client.run("sbatch --gpus-per-node=9 -J too_large", b"#!/bin/sh\n")
    assert client.run("sacct -X -n -P -o JobName,State,ExitCode").out == "too_large|FAILED|1:0\n"


def test_a_dry_run_judges_without_queueing(client: Client) -> None:
    answer = client.run("sbatch --test-only -N 4 --gpus-per-node=8", b"#!/bin/sh\n")
    assert answer.code == 0
    assert re.search(r"sbatch: Job 1 to start at \S+ using 448 processors on nodes demo\[001-004\] in", answer.err)
    answer = client.run("sbatch --test-only -N 999", b"#!/bin/sh\n")
    assert (answer.code, answer.err) == (1, "allocation failure: Node count specification invalid\n")
    assert client.run("sacct -X -n").out == ""


def test_the_line_goes_before_the_environment_and_that_before_the_script(cluster: DemoCluster, client: Client) -> None:
    cluster.fault("queue-wait", "1e9")
    script = "#!/bin/sh\n#SBATCH -J script -t 1 -p debug\n# a comment\n#SBATCH -N 2\ntrue\n#SBATCH -N 3\n"
    job = client.submit(script)
    environment = "SBATCH_JOB_NAME=env SBATCH_TIMELIMIT=2"
    other = client.run(f"{environment} sbatch --parsable -J line", script.encode()).out.strip()
    shown = "squeue -h -o '%j %l %P %D' -j "
    assert client.run(shown + job).out == "script 1:00 debug 2\n"
    assert client.run(shown + other).out == "line 2:00 debug 2\n"


def test_an_ignored_dependency_is_admitted(client: Client, waiting: str) -> None:
    answer = client.run(f"sbatch -d afterok:{waiting}", b"#!/bin/sh\n")
    assert answer.out == "Submitted batch job 2\n"
    assert "--dependency is not honoured" in answer.err


def test_squeue_formats(client: Client, waiting: str) -> None:
    name = "demo-demo.a_name_that_is_long"
    default = client.run("squeue").out.splitlines()
    assert default[0] == "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)"
    assert default[1].split() == [
        "1",
        "batch",
        "demo-dem",
        client.run("id -un").out.strip(),
        "PD",
        "0:00",
        "2",
        "(Priority)",
    ]
    for options, text in (
        (f"-h -j {waiting} -o '%i|%j|%T|%t|%r|%M|%D|%R|%a'", f"1|{name}|PENDING|PD|Priority|0:00|2|(Priority)|demo"),
        ("-h -o '%P|%l|%N|%b'", "batch|30:00||gres:gpu:8"),
        ("-h -O 'JobID:|,Name:|,State:|,NumNodes:|,NodeList:|,RestartCnt:'", f"1|{name}|PENDING|2||0"),
        ("-h -O jobid,State", "1                   PENDING             "),
        ("-h -o '%.5i|%5i|%.3T|'", "    1|1    |PEN|"),
        (f"-h --name={name} --states=PD,R --me -o %i", "1"),
        ("-h -t running", ""),
        ("-h -n other -o %i", ""),
        ("-h -p debug", ""),
        (f"-h -j 99,{waiting} -o %i", "1"),
        (f"--noheader --job {waiting} --format=%i", "1"),
        ("-o %i,%.2t", "JOBID,ST\n1,PD"),
    ):  # fmt: skip
        answer = client.run(f"squeue {options}")
        assert (answer.code, answer.err) == (0, ""), options
        assert answer.out == (f"{text}\n" if text else ""), options


@pytest.mark.usefixtures("waiting")
def test_what_squeue_does_not_understand(client: Client) -> None:
    for options, code, text in (
        ("-j 99", 1, "slurm_load_jobs error: Invalid job id specified\n"),
        ("-j x", 1, "squeue: error: Invalid job id: x\n"),
        ("-t x", 1, "squeue: error: Invalid job state specified: X\n"),
        ("--bogus", 1, "squeue: unrecognized option '--bogus'\nTry \"squeue --help\" for more information\n"),
        ("-u nobody-here", 0, "squeue: error: Invalid user: nobody-here\n"),
        ("-h -o '%i %&'", 0, "squeue: error: Invalid job format specification: &\n"),
    ):
        answer = client.run(f"squeue {options}")
        assert answer.code == code, options
        assert answer.err.startswith(text), options


def test_the_controller_forgets_what_accounting_remembers(cluster: DemoCluster, client: Client) -> None:
    job = client.submit("#!/bin/sh\n")
    client.wait_for_state(job, "COMPLETED")
    assert client.run(f"squeue -h -j {job}").out == ""
    assert client.run(f"squeue -h -t all -j {job} -o '%i %T'").out == f"{job} COMPLETED\n"
    record = cluster.root / "slurm" / "jobs" / job / "job.json"
    document = json.loads(record.read_text())
    record.write_text(json.dumps({**document, "closed": document["closed"] - 301}))
    for command in (f"squeue -j {job}", f"scontrol show job {job}"):
        answer = client.run(command)
        assert (answer.code, answer.err) == (1, "slurm_load_jobs error: Invalid job id specified\n")
    assert client.state(job) == "COMPLETED"


def test_sacct_formats(client: Client) -> None:
    job = client.submit("#!/bin/sh\n#SBATCH -J name_of_job -N 2 --gpus-per-node=8\nexit 3\n")
    client.wait_for_state(job, "FAILED")
    fields = "JobIDRaw,State,ExitCode,NNodes,NodeList,AllocTRES,Reason,User,Account,Partition,Timelimit"
    user = client.run("id -un").out.strip()
    tres = "cpu=224,mem=4000000M,node=2,billing=224,gres/gpu=16"
    line = f"1|FAILED|3:0|2|demo[001-002]|{tres}|NonZeroExitCode|{user}|demo|batch|01:00:00\n"
    for options, text in (
        (f"-X -n -P -j {job} -o {fields}", line),
        (f"--allocations --noheader --parsable2 --jobs={job} --format={fields}", line),
        ("-P -o jobid,state", "JobID|State\n1|FAILED\n1.batch|FAILED\n"),
        ("-p -n -X -o jobid,state", "1|FAILED|\n"),
        ("-X -n -P --delimiter=';;' -o jobid,state", "1;;FAILED\n"),
        ("-X -n -o 'JobID%-4,JobName%6,State'", "1    name_+     FAILED \n"),
        ("-n -P -j 99 -o jobid", ""),
        ("-n -P -X -S now-1hour -o jobid --name=name_of_job", "1\n"),
        ("-n -P -X -S now+1day -o jobid", ""),
        ("-n -P -X -E 2020-01-01 -S 2019-01-01 -o jobid", ""),
        ("-n -P -X -s F,CA -o jobid", "1\n"),
        ("-n -P -X -s COMPLETED -o jobid", ""),
        (f"-n -P -j {job}.batch -o jobid", "1.batch\n"),
    ):  # fmt: skip
        answer = client.run(f"sacct {options}")
        assert (answer.code, answer.out) == (0, text), options


def test_the_times_of_a_job_agree(client: Client) -> None:
    before = time.time()
    job = client.submit("#!/bin/sh\nsleep 0.3\n")
    client.wait_for_state(job, "COMPLETED")
    cells = client.run(f"sacct -X -n -P -j {job} -o Submit,Start,End,ElapsedRaw").out.split("|")
    submit, start, end = (time.mktime(time.strptime(cell, "%Y-%m-%dT%H:%M:%S")) for cell in cells[:3])
    assert abs(submit - before) < 60
    assert start - submit > 44  # it waited its 45 seconds
    assert abs(end - start - int(cells[3])) <= 1
    assert int(cells[3]) > 0.3 * SPEED


def test_what_sacct_does_not_understand(client: Client) -> None:
    for options, text in (
        ("-o Restarts", 'sacct: error: Invalid field requested: "Restarts"\n'),
        ("-S x", "Invalid time specification (pos=0): x\n"),
        ("--bogus", "sacct: unrecognized option '--bogus'\n"),
        ("-u nobody-here", "sacct: error: Invalid user id: nobody-here\n"),
    ):
        answer = client.run(f"sacct {options}")
        assert (answer.code, answer.err) == (1, text)


def test_sinfo_formats(client: Client) -> None:
    job = client.submit("#!/bin/sh\n#SBATCH -N 3\nsleep 60\n")
    client.wait_for_state(job, "RUNNING")
    for options, text in (
        ("", "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n"
             "batch*       up    4:00:00      3  alloc demo[001-003]\n"
             "batch*       up    4:00:00    285   idle demo[004-288]\n"
             "debug        up      30:00      3  alloc demo[001-003]\n"
             "debug        up      30:00    285   idle demo[004-288]\n"),
        ("-h -o '%P|%a|%l|%D|%G|%c|%m|%s|%L'", "batch*|up|4:00:00|288|gpu:h100:8|112|2000000|1-infinite|1:00:00\n"
                                               "debug|up|30:00|288|gpu:h100:8|112|2000000|1-2|10:00\n"),
        ("-h -o '%t %D'", "alloc 3\nidle 285\n"),
        ("-h -p debug -o '%R %F'", "debug 3/285/0/288\n"),
        ("-h -p batch -t idle -o '%T %N'", "idle demo[004-288]\n"),
        ("-h -n demo002,demo004 -N -o '%N %t' -p batch", "demo002 alloc\ndemo004 idle\n"),
        ("-h -p batch -O 'Partition:|,Nodes:|,Gres:'", "batch*|288|gpu:h100:8\n"),
        ("-p nowhere", "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n"),
    ):  # fmt: skip
        answer = client.run(f"sinfo {options}")
        assert (answer.code, answer.err) == (0, ""), options
        assert answer.out == text, options
    assert client.run("sinfo -h -t x").err.startswith('sinfo: error: Bad state string: "x"\n')


def test_scontrol_shows_jobs_nodes_and_partitions(client: Client, waiting: str) -> None:
    shown = client.run(f"scontrol show job {waiting}").out
    for words in ("JobState=PENDING Reason=Priority", "TimeLimit=00:30:00", "NumNodes=2", "TresPerNode=gres:gpu:8"):
        assert words in shown
    line = client.run(f"scontrol -o show job {waiting}").out
    assert line.startswith("JobId=1 JobName=demo-demo.a_name_that_is_long UserId=")
    assert line.count("\n") == 1
    assert " MaxTime=04:00:00 " in client.run("scontrol show partition batch -o").out
    node = client.run("scontrol show node demo288").out
    assert "Gres=gpu:h100:8\n" in node
    assert "State=IDLE " in node
    assert "ClusterName             = demo\n" in client.run("scontrol show config").out
    assert re.fullmatch(r"Slurmctld\(primary\) at \S+ is UP\n", client.run("scontrol ping").out)
    assert client.run("scontrol show hostnames 'demo[001-002,010]'").out == "demo001\ndemo002\ndemo010\n"
    assert client.run("scontrol show hostlist demo001,demo002,demo010").out == "demo[001-002,010]\n"


def test_what_scontrol_does_not_understand(client: Client) -> None:
    for words, text in (
        ("show job 99", "slurm_load_jobs error: Invalid job id specified\n"),
        ("show node x", "Node x not found\n"),
        ("show partition x", "Partition x not found\n"),
        ("show", "too few arguments for keyword:show\n"),
        ("show x", "invalid entity:x for keyword:show \n"),
        ("x", "invalid keyword: x\n"),
        ("requeue 99", "Invalid job id specified for job 99\n"),
    ):
        answer = client.run(f"scontrol {words}")
        assert (answer.code, answer.err) == (1, text)


def test_sacctmgr_shows_the_account(client: Client) -> None:
    user = client.run("id -un").out.strip()
    for words, text in (
        (f"-nP show assoc user={user} format=account", "demo\n"),
        (f"-n -P list associations where user={user} account=demo format=account,user,qos", f"demo|{user}|normal\n"),
        ("-nP show assoc user=nobody-here format=account", ""),
        (f"-nP show user {user} format=DefaultAccount", "demo\n"),
        (f"-nP show user {user} withassoc format=user,account", f"{user}|demo\n"),
        ("show account format=account", "   Account \n---------- \n      demo \n"),
        ("-nP show cluster format=cluster", "demo\n"),
        ("-nP show qos format=name", "normal\n"),
    ):
        answer = client.run(f"sacctmgr {words}")
        assert (answer.code, answer.out) == (0, text), words
    for words, text in (
        ("show x", "No valid entity in list command\n"),
        ("show assoc format=x", "Unknown field 'x'\n"),
        ("show assoc x=1", " Unknown condition: x=1\n"),
        ("x", "invalid keyword: x\n"),
    ):
        answer = client.run(f"sacctmgr -nP {words}")
        assert answer.code == 1
        assert answer.err.startswith(text)


def test_scancel_of_what_is_not_there(client: Client) -> None:
    for words, code, text in (
        ("", 1, "scancel: error: No job identification provided\n"),
        ("x", 1, "scancel: error: Invalid job id x\n"),
        ("99", 0, ""),
        ("-n nothing", 0, ""),
        ("-u nobody-here", 1, "scancel: error: Invalid user name: nobody-here\n"),
    ):
        answer = client.run(f"scancel {words}")
        assert (answer.code, answer.err) == (code, text)


def test_a_finished_job_can_neither_be_cancelled_nor_against_its_will_be_requeued(client: Client) -> None:
    job = client.submit("#!/bin/sh\n", "--no-requeue")
    client.wait_for_state(job, "COMPLETED")
    answer = client.run(f"scancel -v {job}")
    assert answer.code == 0
    assert answer.err.endswith(f"Kill job error on job id {job}: Job/step already completing or completed\n")
    answer = client.run(f"scontrol requeue {job}")
    assert (answer.code, answer.err) == (1, f"Requested operation is presently disabled for job {job}\n")
    assert client.state(job) == "COMPLETED"


def test_versions(client: Client) -> None:
    for program in ("sacct", "sacctmgr", "sbatch", "scancel", "scontrol", "sinfo", "squeue", "srun"):
        assert client.run(f"{program} --version").out == "slurm 22.05.8\n"
    assert client.run("enroot version").out == "3.5.0\n"


def test_a_dead_controller_and_missing_accounting(cluster: DemoCluster, client: Client) -> None:
    cluster.fault("controller-down")
    answer = client.run("squeue")
    assert (answer.code, answer.err) == (
        1,
        "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n",
    )
    assert client.run("sacct -n").code == 0
    cluster.fault("controller-down", None)
    cluster.fault("no-accounting")
    assert client.run("squeue").code == 0
    answer = client.run("sacct")
    assert (answer.code, answer.err) == (1, "Slurm accounting storage is disabled\n")
    assert client.run("sacctmgr show assoc").code == 1


def test_sbatch_can_answer_late(cluster: DemoCluster, client: Client) -> None:
    cluster.fault("answer-delay", "60")
    channel = client.start("sbatch --wrap true")
    wait_for(lambda: client.run("sacct -X -n -P -o JobName").out == "wrap\n", "the job to be there")
    assert not channel.recv_ready()
    channel.close()


def test_the_commands_are_found_from_anywhere(cluster: DemoCluster, client: Client) -> None:
    folder = Path(cluster.profile.install_dir)
    folder.mkdir()
    assert client.run(f"cd {folder} && squeue -h && printf '#!/bin/sh\\npwd\\n' >j && sbatch --parsable j").out == "1\n"
    client.wait_for_state("1", "COMPLETED")
    assert (folder / "slurm-1.out").read_text() == f"{folder}\n"
