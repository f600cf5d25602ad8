"""Events folded into states, without clock and disk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from llmb_tui.cluster.job import Job
from llmb_tui.launch.run import Run
from llmb_tui.plan.plan import Plan
from llmb_tui.store.settings import THRESHOLD
from llmb_tui.watch.events import (
    BatchTail,
    JobUpdated,
    LinkChanged,
    LogGrown,
    LogProblem,
    LogRead,
    PollFailed,
    WatchEvent,
)
from llmb_tui.watch.logcopy import LogCopy
from llmb_tui.watch.progress import fold
from llmb_tui.watch.run_reducer import RunReducer
from llmb_tui.watch.state import Progress, Step
from tests.kit.reasons import OUT_OF_GPU_MEMORY, training_reason
from tests.launch.runai.workload_cases import SMALL, intent, request_of

RUNNING = Job("42", "pretrain", "RUNNING")


@pytest.fixture
def reducer(make_run: Callable[..., Run]) -> RunReducer:
    return RunReducer(make_run(), threshold=THRESHOLD)


def read(plan: Plan, steps: int, at: float, seconds: float = 2.0, name: str = "log") -> LogRead:
    progress = fold(Progress(steps_total=50), [Step(index, 50, seconds) for index in range(steps)], plan)
    return LogRead(name, 100 * steps, grew_at=at, read_at=at, started=True, progress=progress)


def test_a_job_moves_once_for_each_of_its_states(reducer: RunReducer) -> None:
    events = [RUNNING, replace(RUNNING, elapsed_s=9.0), replace(RUNNING, restarts=1), None]
    assert [reducer.take(JobUpdated(job)) for job in events] == [True, False, True, True]
    state = reducer.state(0.0)
    assert (state.job, state.slurm_note[:24]) == (replace(RUNNING, restarts=1), "Slurm does not list the ")
    assert reducer.take(JobUpdated(None, gone=True))
    assert (reducer.job_over, reducer.state(0.0).slurm_note) == (True, "Slurm no longer knows the job.")


def test_notes_stay_until_their_condition_ends(reducer: RunReducer) -> None:
    for event in (PollFailed("squeue failed."), LinkChanged("lost", "No answer."), LogProblem("It was replaced.")):
        reducer.take(event)
    state = reducer.state(0.0)
    assert (state.link, state.link_note, state.slurm_note) == ("lost", "No answer. It was replaced.", "squeue failed.")
    for better in (JobUpdated(RUNNING), LinkChanged("live"), LogGrown(LogCopy())):
        reducer.take(better)
    state = reducer.state(0.0)
    assert (state.link, state.link_note, state.slurm_note) == ("live", "", "")


def test_the_log_shows_its_rate_and_since_when_it_is_silent(reducer: RunReducer, plan: Plan) -> None:
    reducer.take(JobUpdated(RUNNING))
    for steps, at in ((10, 100.0), (20, 120.0)):
        reducer.take(read(plan, steps, at))
    state = reducer.state(124.0)
    assert (state.stage, state.eta_s, state.silent_s) == ("measuring", 30 * 2.0 - 4.0, 4.0)
    assert reducer.state(195.0).silent_s == 70.0
    reducer.take(read(plan, 50, 180.0))
    assert reducer.state(180.0).eta_s is None


@pytest.mark.parametrize("name", ["log.1", "log"], ids=["a log of its own", "the same log"])
def test_a_job_that_was_started_again_has_no_eta_until_it_has_a_pace(
    reducer: RunReducer, plan: Plan, name: str
) -> None:
    again = replace(RUNNING, restarts=1)
    events: list[WatchEvent] = [JobUpdated(RUNNING), read(plan, 20, 100.0), read(plan, 30, 120.0)]
    events += [JobUpdated(replace(again, state="PENDING")), JobUpdated(again), read(plan, 30, 120.0)]
    events += [read(plan, steps, 8000.0 + 2 * steps, name=name) for steps in (0, 1, 2)]
    etas = []
    for event in events:
        reducer.take(event)
        etas.append(reducer.state(8004.0).eta_s)
    assert etas == [None, None, 0.0, None, None, None, None, None, 96.0]


def test_a_log_that_was_read_is_unread_when_its_job_went_on(make_run: Callable[..., Run]) -> None:
    reducer = RunReducer(make_run(job_state="FAILED", log_read=True), threshold=0.9)
    for state, again, unread in (("FAILED", 0, False), ("RUNNING", 1, False), ("COMPLETED", 1, True)):
        reducer.take(JobUpdated(replace(RUNNING, state=state, restarts=again)))
        if state != "RUNNING":
            reducer.end()
            assert reducer.state(0.0).log_unread is unread


def test_slurm_is_behind_when_the_log_begins_and_when_it_is_complete(reducer: RunReducer, plan: Plan) -> None:
    seen = []
    for steps in (0, 1, 2, 50, 50):
        reducer.take(read(plan, steps, 1.0))
        seen.append(reducer.outran_slurm())
    assert seen == [False, True, False, True, False]


def test_the_verdict_is_by_the_threshold_that_was_set(make_run: Callable[..., Run], plan: Plan) -> None:
    results = []
    for threshold in (0.9, 0.95):
        reducer = RunReducer(make_run(), threshold=threshold)
        reducer.take(read(plan, 50, 1.0, seconds=2.2))
        verdict = reducer.state(1.0).verdict
        results.append(verdict and verdict.result)
    assert results == ["PASS", "FAIL"]


def test_a_failed_run_has_its_most_specific_reason(reducer: RunReducer) -> None:
    reducer.take(JobUpdated(replace(RUNNING, state="FAILED", exit_code="1:0")))
    reducer.take(BatchTail(b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n"))
    assert reducer.state(0.0).why_failed == ""
    reducer.end()
    state = reducer.state(0.0)
    assert (state.stage, state.why_failed) == ("failed", training_reason(OUT_OF_GPU_MEMORY))


def test_a_log_that_is_out_of_reach_for_good_is_named_by_the_verdict(make_run: Callable[..., Run]) -> None:
    workload, _ = intent(request_of(SMALL))
    run = make_run(procedure=workload.procedure, spec=workload.spec)
    reducer = RunReducer(run, threshold=THRESHOLD)
    reducer.take(LogProblem("No kubeconfig.", for_good=True))
    reducer.take(JobUpdated(Job(run.job_ids[-1], "x", "SUSPENDED")))
    assert reducer.state(0.0).stage == "suspended"
    reducer.take(JobUpdated(None))
    assert reducer.state(0.0).slurm_note.startswith("Run:ai does not list the workload")
    reducer.take(JobUpdated(Job(run.job_ids[-1], "x", "COMPLETED")))
    reducer.end()
    assert reducer.state(0.0).no_verdict == "No verdict without a log. No kubeconfig."


def test_the_copied_part_of_an_unreachable_log_is_not_a_complete_log(make_run: Callable[..., Run]) -> None:
    reducer = RunReducer(make_run(log_read=False), threshold=THRESHOLD)
    reducer.take(LogRead(size=5000))
    reducer.take(LogProblem("It is gone.", for_good=True))
    reducer.take(JobUpdated(replace(RUNNING, state="COMPLETED")))
    reducer.end()
    state = reducer.state(0.0)
    assert (state.log_unread, state.no_verdict) == (True, "No verdict without a log. It is gone.")
