"""Clusters on which the user cannot query accounting, and wrappers of `sacct`. The inputs are after public reports."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from llmb_tui.cluster.batch import TOO_LONG, Answer, batch_answers, batch_script
from llmb_tui.cluster.job import END_UNKNOWN, GONE_AFTER_S, LEFT_QUEUE, Job
from llmb_tui.cluster.slurm.accounting import complete_records, stored_records
from llmb_tui.cluster.slurm.client import look_commands, read_jobs
from llmb_tui.cluster.slurm.errors import AccountingError, SlurmError, explain, failure_kind, slurm_error
from llmb_tui.cluster.slurm.queue import SEPARATOR
from llmb_tui.launch.run import Cancel, Run
from llmb_tui.plan.plan import Plan
from llmb_tui.store import documents
from llmb_tui.store.settings import THRESHOLD
from llmb_tui.watch.events import JobUpdated, LogRead
from llmb_tui.watch.progress import fold
from llmb_tui.watch.report import label_of
from llmb_tui.watch.run_reducer import RunReducer
from llmb_tui.watch.state import Progress, RunState, Step
from tests.kit.runs import make_run

SITES = Path(__file__).parent / "sites"
ENDED = SEPARATOR.join(("{}", "COMPLETED", "0:0", "2", "60", "cn[1-2]", "name"))


def on_login_node(folder: Path, commands: dict[str, str], **programs: str) -> dict[str, Answer]:
    """Answers of a batch on a login node with these programs before the others."""
    for name, text in programs.items():
        (folder / name).write_text(text.replace("/usr/bin/", f"{folder}/real-"))
        (folder / name).chmod(0o755)
    path = f"{folder}:{os.environ['PATH']}"
    script = ["sh", "-c", batch_script(commands, "T")]
    done = subprocess.run(script, capture_output=True, text=True, env={"PATH": path}, check=True, timeout=60)
    return batch_answers(done.stdout, commands, "T")


def site(name: str) -> str:
    return (SITES / name).read_text()


def test_a_job_that_left_the_queue_is_known_as_such_if_accounting_refuses(tmp_path: Path) -> None:
    programs = {"squeue": site("12-queue-late.squeue"), "sacct": site("09-not-permitted.sacct")}
    jobs = read_jobs(on_login_node(tmp_path, look_commands(["5"]), **programs), ["5"])
    assert jobs["5"].state == LEFT_QUEUE
    assert not jobs["5"].finished
    assert not jobs["5"].goes_on


def test_accounting_settles_a_job_that_the_queue_does_not_list_yet(tmp_path: Path) -> None:
    programs = {"squeue": site("12-queue-late.squeue"), "sacct": f"#!/bin/sh\necho '{ENDED.format(5)}'\n"}
    assert read_jobs(on_login_node(tmp_path, look_commands(["5"]), **programs), ["5"])["5"].state == "COMPLETED"


def test_a_sacct_that_takes_no_list_is_asked_for_each_job(tmp_path: Path) -> None:
    real = f'#!/bin/sh\nwhile [ "$1" != -j ]; do shift; done\necho \'{ENDED}\' | sed "s/{{}}/$2/"\n'
    programs = {"squeue": "#!/bin/sh\n", "sacct": site("11-no-lists.sacct"), "real-sacct": real}
    jobs = read_jobs(on_login_node(tmp_path, look_commands(["5", "6", "7"]), **programs), ["5", "6", "7"])
    assert {job_id: job.state for job_id, job in jobs.items()} == dict.fromkeys(("5", "6", "7"), "COMPLETED")


def test_stored_accounting_of_several_jobs_has_one_heading(tmp_path: Path) -> None:
    row = '#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\necho "$2" | tr , \'|\'\n'
    row += 'for word; do job=$word; done\necho "$2" | tr , "|" | sed "s/JobID/$job/;s/State/COMPLETED/"\n'
    programs = {"sacct": site("11-no-lists.sacct"), "real-sacct": row}
    answer = on_login_node(tmp_path, {"sacct": stored_records(["5", "6"], 8)}, **programs)["sacct"]
    assert answer.exit_code == 0
    assert [line.split("|")[0] for line in complete_records(answer.text, ["5", "6"]).splitlines()] == [
        "JobID",
        "5",
        "6",
    ]


def test_accounting_that_is_down_is_asked_once_more_at_most(tmp_path: Path) -> None:
    words = "sacct: error: Problem talking to the database: Connection refused"
    down = f"#!/bin/sh\necho x >>{tmp_path}/calls\necho '{words}'\nexit 1\n"
    programs = {"squeue": "#!/bin/sh\n", "sacct": down}
    with pytest.raises(AccountingError) as caught:
        read_jobs(on_login_node(tmp_path, look_commands(["5", "6", "7"]), **programs), ["5", "6", "7"])
    assert (tmp_path / "calls").read_text().split() == ["x", "x"]
    assert "Connection refused" in caught.value.why


@pytest.mark.parametrize("command", ["sinfo", "squeue", "sacct", "sacctmgr", "scontrol ping", "sbatch", "srun"])
def test_a_login_node_without_slurms_configuration_is_named_as_the_cause(command: str, tmp_path: Path) -> None:
    program, *_ = command.split()
    answer = on_login_node(tmp_path, {"it": command}, **{program: site("28-no-config-source.sh")})["it"]
    assert failure_kind(answer) == "misconfigured"
    error = slurm_error(command, answer)
    assert error.why.startswith(f"{program}: fatal: Could not establish a configuration source. The login node has no")
    assert "SLURM_CONF" in error.fix
    assert "down" not in str(error)
    assert explain(command, answer).words in error.why


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Answer(0, "permission denied"), None),
        (Answer(124, ""), "temporary"),
        (Answer(-1, ""), "temporary"),
        (Answer(1, "squeue: error: something of a newer Slurm"), None),
        (Answer(1, "sacct: error: Problem talking to the database: Connection refused"), "temporary"),
        (Answer(1, "sacct: error: slurmdbd: Operation not permitted"), "refused"),
        (Answer(126, "sh: 1: sacct: Permission denied"), "refused"),
        (Answer(127, "sh: 1: sacct: not found"), "absent"),
        (Answer(1, "Slurm accounting storage is disabled"), "absent"),
    ],
)
def test_the_four_kinds_of_failure_are_kept_apart(answer: Answer, kind: str | None) -> None:
    assert failure_kind(answer) == kind


@pytest.mark.parametrize(
    "text",
    [
        "sacct: error: slurmdbd: Operation not permitted",
        "sh: 1: sacct: not found",
        "Slurm accounting storage is disabled",
    ],
)
def test_accounting_that_is_closed_is_not_called_down(text: str) -> None:
    error = str(AccountingError(Answer(1, text), {}))
    assert text in error
    assert "down" not in error
    assert "hangs" not in error
    assert "does not answer" not in error


def test_a_failed_command_without_a_known_message_is_quoted_without_a_cause() -> None:
    error = slurm_error("squeue", Answer(1, "greeting\nsqueue: error: some new message\n"))
    assert isinstance(error, SlurmError)
    assert (error.why, error.fix) == (
        "squeue: error: some new message.",
        "Run `squeue` on the login node for details.",
    )


@pytest.fixture
def run() -> Run:
    run = make_run(submission="submitted", log_read=False)
    return replace(run, job_ids=("41", "42"), job_state="RUNNING", other_states=(("41", "COMPLETED"),))


def left(job_id: str = "42") -> Job:
    return Job(job_id, "", LEFT_QUEUE, "the queue no longer has it")


def test_a_run_ends_if_its_job_stays_out_of_the_queue_for_a_minute(run: Run) -> None:
    first = run.seen(left(), 1000.0)
    assert first.is_active
    assert first.seen(left(), 1000.0 + GONE_AFTER_S / 2) == first, "nothing is written meanwhile"
    ended = first.seen(left(), 1000.0 + GONE_AFTER_S)
    assert (ended.job_state, ended.is_active) == (END_UNKNOWN, False)
    assert ended.seen(left(), 9999.0) == ended


def test_a_job_that_is_listed_again_has_not_ended(run: Run) -> None:
    again = run.seen(left(), 1000.0).seen(Job("42", "x", "RUNNING"), 1050.0)
    assert not again.left_queue
    assert again.seen(left(), 1000.0 + GONE_AFTER_S).is_active
    ended = run.seen(left(), 1000.0).seen(left(), 2000.0)
    assert ended.seen(Job("42", "x", "RUNNING"), 3000.0).is_active


def test_a_known_end_of_a_job_stays(run: Run) -> None:
    done = run.seen(Job("42", "x", "COMPLETED"), 1000.0)
    assert done.seen(left(), 2000.0).seen(left("41"), 2000.0).seen(left(), 3000.0) == done


def test_a_lost_cancel_of_a_job_whose_end_is_unknown_is_not_judged(run: Run) -> None:
    cancelled = replace(run, cancel=Cancel("42", 900.0))
    assert cancelled.seen(left(), 1000.0).cancel is not None
    assert cancelled.seen(left(), 1000.0).seen(left(), 2000.0).cancel is None


def log(plan: Plan, steps: int) -> LogRead:
    progress = fold(Progress(steps_total=50), [Step(index, 50, 2.0) for index in range(steps)], plan)
    return LogRead("log", 100 * steps, 1.0, 1.0, started=True, progress=progress)


@pytest.mark.parametrize(
    ("steps", "log_read", "stage"), [(50, False, "done"), (20, True, "failed"), (20, False, "completing")]
)
def test_the_log_shows_how_a_job_ended_whose_end_slurm_does_not_report(
    run: Run, steps: int, log_read: bool, stage: str
) -> None:
    ended = replace(run.seen(left(), 1000.0).seen(left(), 2000.0), log_read=log_read)
    reducer = RunReducer(ended, threshold=THRESHOLD)
    reducer.take(log(ended.plan, steps))
    reducer.end()
    state = reducer.state(3000.0)
    assert state.stage == stage
    assert ("only the log shows" in state.why_failed) == (stage == "failed")


def test_a_job_that_left_the_queue_after_its_last_step_is_over_at_once(run: Run) -> None:
    reducer = RunReducer(run, threshold=THRESHOLD)
    reducer.take(log(run.plan, 20))
    reducer.take(JobUpdated(left()))
    assert not reducer.job_over
    assert "accounting cannot be queried" in reducer.state(1.0).slurm_note
    reducer.take(log(run.plan, 50))
    assert reducer.job_over


def test_an_unknown_end_is_not_called_a_failure_before_the_log_is_read(run: Run) -> None:
    ended = run.seen(left(), 1000.0).seen(left(), 2000.0)
    assert label_of(ended, RunState(ended.id)).word == "completing"


def test_a_squeue_that_prints_without_end_is_cut_on_the_login_node(tmp_path: Path) -> None:
    programs = {"squeue": "#!/bin/sh\nexec yes 5\n", "sacct": f"#!/bin/sh\ntouch {tmp_path}/asked\n"}
    answer = on_login_node(tmp_path, look_commands(["5"]), **programs)["squeue"]
    assert (answer.exit_code, answer.text.strip()) == (TOO_LONG, "")
    assert not (tmp_path / "asked").exists()


def test_the_queue_is_read_whole_with_its_exit_code(tmp_path: Path) -> None:
    lines = "".join(f"echo '{SEPARATOR.join((str(n), 'RUNNING', *8 * 'x'))}'\n" for n in range(100, 200))
    answer = on_login_node(tmp_path, look_commands(["5"]), squeue=f"#!/bin/sh\n{lines}exit 3\n", sacct="#!/bin/sh\n")
    assert (answer["squeue"].exit_code, answer["squeue"].text.count("RUNNING")) == (3, 100)


def test_the_time_is_stored_only_while_a_job_is_out_of_the_queue(run: Run, tmp_path: Path) -> None:
    first, file = run.seen(left(), 1000.0), tmp_path / "run.json"
    for saved in (run, first, first.seen(left(), 2000.0)):
        documents.save(file, saved)
        assert documents.load(file, Run) == saved
        assert ("left_queue" in file.read_text()) == bool(saved.left_queue)
