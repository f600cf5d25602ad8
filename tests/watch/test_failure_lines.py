from __future__ import annotations

from collections.abc import Callable

import pytest

from llmb_tui.cluster.job import Job
from llmb_tui.watch import parse
from llmb_tui.watch.failure import LogCauses, job_failure, worst
from llmb_tui.watch.parse import StepParser

WATCHDOG = (
    "[rank368]:[E808 04:21:41.160918398 ProcessGroupNCCL.cpp:655] [Rank 368] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600001 "
    "milliseconds before timing out."
)


def test_the_cause_takes_precedence_over_its_consequences() -> None:
    lines = [
        "srun: error: cn001: tasks 0-7: Exited",
        WATCHDOG,
        "KeyError: 'x'",
        "OSError: No space left on device",
        WATCHDOG,
    ]
    cause = worst("".join(line + "\n" for line in lines).encode())
    assert cause is not None
    assert "full" in cause.reason


def test_among_equals_the_first_wins() -> None:
    cause = worst(b"[rank5]: KeyError: 'first'\n[rank6]: KeyError: 'second'\n")
    assert cause is not None
    assert (cause.line, cause.rank) == ("KeyError: 'first'", 5)


def test_the_line_is_clean_and_bounded() -> None:
    cause = worst(b"\x1b[31mRuntimeError: CUDA out of memory\x1b[0m" + b"x" * 1_000_000 + b"\n")
    assert cause is not None
    assert cause.line.startswith("RuntimeError: CUDA out of memory")
    assert len(cause.line) < 5000


def test_an_active_run_has_not_failed(nemo_line: Callable[..., str]) -> None:
    parser = StepParser("nemo2")
    parser.feed((nemo_line(0) + "ModuleNotFoundError: No module named 'apex'\n").encode())
    assert parser.failure is not None
    parser.feed(nemo_line(1).encode())
    assert parser.failure is None


def test_only_lines_after_the_newest_step_are_searched(
    nemo_line: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[int] = []
    monkeypatch.setattr(LogCauses, "feed", lambda _, data, _line: searched.append(len(data)))
    parser, text = StepParser("nemo2"), "NCCL INFO Channel 00/0\n" * 1000
    for index in range(20):
        parser.feed((nemo_line(index) + text).encode())
    assert searched == []
    assert parser.failure is None
    assert parser.failure is None
    assert searched == [len(text)]


def test_the_unsearched_data_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse, "UNSEARCHED", 100)
    parser = StepParser("nemo2")
    for line in ("KeyError: 'first'\n", "x" * 90 + "\n", "KeyError: 'second'\n", "y" * 90 + "\n"):
        parser.feed(line.encode())
    assert sum(map(len, parser._unsearched)) <= 100
    assert parser.failure is not None
    assert "first" in parser.failure.line


def test_clean_up_after_the_last_step_is_not_a_failure(nemo_line: Callable[..., str]) -> None:
    parser = StepParser("nemo2")
    log = nemo_line(48) + nemo_line(49) + "Traceback (most recent call last):\nRuntimeError: closed\n" + WATCHDOG + "\n"
    parser.feed(log.encode())
    assert parser.complete
    assert parser.failure is None


def test_a_failure_after_a_bar_is_seen_although_the_bar_is_painted_again(hydra_frame: Callable[..., str]) -> None:
    parser = StepParser("hydra")
    parser.feed((hydra_frame(3) + "\n[rank0]: KeyError: 'x'\n" + hydra_frame(3) + "\n").encode())
    assert parser.failure is not None
    assert "KeyError" in parser.failure.line


@pytest.mark.parametrize(
    ("job", "reason", "line"),
    [
        (Job("1", "a", "TIMEOUT", exit_code="0:0"), "time limit", "Slurm: TIMEOUT"),
        (Job("1", "a", "OUT_OF_MEMORY", exit_code="0:125"), "host memory", "Slurm: OUT_OF_MEMORY, exit code 0:125"),
        (
            Job("1", "a", "NODE_FAIL", bad_nodes=("cn003 is down: xid79",)),
            "node of the job failed",
            "Slurm: NODE_FAIL, cn003 is down: xid79",
        ),
        (Job("1", "a", "PREEMPTED"), "higher priority", "Slurm: PREEMPTED"),
        (Job("1", "a", "FAILED", exit_code="0:53"), "output file", "Slurm: FAILED, exit code 0:53"),
        (Job("1", "a", "FAILED", exit_code="0:9"), "killed from outside", "Slurm: FAILED, exit code 0:9"),
        (Job("1", "a", "FAILED", "JobLaunchFailure", exit_code="1:0"), "start the tasks", "exit code 1:0"),
        (Job("1", "a", "FAILED", "NonZeroExitCode", exit_code="3:0"), "ended with an error", "exit code 3:0"),
    ],
)
def test_the_reason_comes_from_slurm_if_the_log_has_none(job: Job, reason: str, line: str) -> None:
    cause = job_failure(job, "Slurm")
    assert cause is not None
    assert reason in cause.reason
    assert line in cause.line
    assert cause.fix


@pytest.mark.parametrize(
    ("state", "reason"),
    [("FAILED", "The workload ended with an error."), ("TIMEOUT", "The job reached its time limit.")],
)
def test_a_workload_has_no_words_about_a_batch_script(state: str, reason: str) -> None:
    cause = job_failure(Job("w", "a", state, "Container pytorch exited"), "Run:ai")
    assert cause is not None
    assert (cause.reason, cause.line) == (reason, f"Run:ai: {state}")
    assert "batch script" not in cause.sentences


@pytest.mark.parametrize("state", ["COMPLETED", "CANCELLED", "RUNNING", "PENDING"])
def test_a_job_that_did_not_fail_has_no_reason(state: str) -> None:
    assert job_failure(Job("1", "a", state), "Slurm") is None


def test_slurms_state_ranks_between_a_symptom_and_a_cause() -> None:
    node, late = job_failure(Job("1", "a", "NODE_FAIL"), "Slurm"), job_failure(Job("1", "a", "TIMEOUT"), "Slurm")
    symptom, cause = worst(f"{WATCHDOG}\n".encode()), worst(b"RuntimeError: CUDA error: out of memory\n")
    weights = [failure.weight for failure in (cause, node, symptom, late) if failure]
    assert len(weights) == 4
    assert weights == sorted(weights, reverse=True)
    assert len(set(weights[1:])) == 3
