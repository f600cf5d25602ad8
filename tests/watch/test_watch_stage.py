from __future__ import annotations

import pytest

from llmb_tui.cluster.job import TERMINAL_STATES, Job
from llmb_tui.language.states import Stage
from llmb_tui.plan.plan import Plan
from llmb_tui.watch.locallog import only_container_lines
from llmb_tui.watch.progress import fold
from llmb_tui.watch.run_reducer import stage_of
from llmb_tui.watch.state import Progress, Step


def job(state: str) -> Job:
    return Job("42", "name", state)


def steps(plan: Plan, count: int) -> Progress:
    return fold(Progress(steps_total=50), [Step(n, 50, step_time_s=2.0) for n in range(count)], plan)


@pytest.mark.parametrize("state", ["PENDING", "CONFIGURING", "REQUEUED"])
def test_a_job_that_waits_is_queued(plan: Plan, state: str) -> None:
    assert stage_of(job(state), steps(plan, 3), started=True, ended=False) == "queued"


@pytest.mark.parametrize(
    ("started", "count", "stage"),
    [
        (False, 0, "image"),
        (True, 0, "start"),
        (True, 1, "warm-up"),
        (True, 4, "warm-up"),
        (True, 5, "measuring"),
        (True, 50, "measuring"),
    ],
)
def test_a_running_job_is_as_far_as_its_log(plan: Plan, started: bool, count: int, stage: Stage) -> None:
    assert stage_of(job("RUNNING"), steps(plan, count), started=started, ended=False) == stage


def test_a_completing_job_is_shown_as_completing(plan: Plan) -> None:
    assert stage_of(job("COMPLETING"), steps(plan, 0), started=False, ended=False) == "completing"


def test_without_an_answer_of_slurm_the_log_speaks(plan: Plan) -> None:
    assert stage_of(None, steps(plan, 0), started=False, ended=False) == "submitted"
    assert stage_of(None, steps(plan, 0), started=True, ended=False) == "start"
    assert stage_of(None, steps(plan, 9), started=True, ended=False) == "measuring"


@pytest.mark.parametrize("state", sorted(TERMINAL_STATES - {"COMPLETED", "CANCELLED"}))
def test_a_job_that_ended_badly_failed_unless_its_last_step_is_there(plan: Plan, state: str) -> None:
    named = {"TIMEOUT": "timeout", "DEADLINE": "timeout", "NODE_FAIL": "node_fail", "BOOT_FAIL": "node_fail"}
    assert stage_of(job(state), steps(plan, 49), started=True, ended=True) == named.get(state, "failed")
    assert stage_of(job(state), steps(plan, 50), started=True, ended=True) == "done"


def test_the_other_ends(plan: Plan) -> None:
    assert stage_of(job("COMPLETED"), steps(plan, 10), started=True, ended=True) == "done"
    assert stage_of(job("CANCELLED"), steps(plan, 10), started=True, ended=True) == "cancelled"
    assert stage_of(job("CANCELLED"), steps(plan, 50), started=True, ended=True) == "done"
    assert stage_of(None, steps(plan, 50), started=True, ended=True) == "done"
    assert stage_of(None, steps(plan, 10), started=True, ended=True) == "failed"


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (b"", True),
        (b"pyxis: importing docker image: nvcr.io/nvidia/nemo:25.02.01\n", True),
        (b"0: pyxis: importing docker image: x\n\n[INFO] Extracting image layers...\n", True),
        (b"slurmstepd: pyxis: imported docker image: x\npyxis: cre", True),
        (b"pyxis: imported docker image: x\n[NeMo I 2025-04-11 14:48:45 nemo_logging:393] hello\n", False),
    ],
)
def test_lines_of_the_container(log: bytes, expected: bool) -> None:
    assert only_container_lines(log) is expected
