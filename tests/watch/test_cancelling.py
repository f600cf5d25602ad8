"""Cancelling a run: finished jobs are not touched, and a lost answer is resolved or reported as open."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from llmb_tui.cluster.batch import Answer
from llmb_tui.cluster.cluster import CancelUnconfirmedError, SchedulerError
from llmb_tui.cluster.failures import DisconnectedError
from llmb_tui.cluster.job import ENDED_UNHEARD, Job
from llmb_tui.cluster.link import Completed
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.cluster.slurm.errors import AccountingError, SlurmError
from llmb_tui.errors import LlmbError
from llmb_tui.launch.run import Cancel
from llmb_tui.launch.runs import Runs
from llmb_tui.store.journal import Journal
from llmb_tui.store.paths import UserPaths
from llmb_tui.watch.report import cancel_words
from llmb_tui.watch.runs_feed import RunsFeed, poll_jobs
from llmb_tui.watch.timing import Timing
from tests.kit.runs import make_run


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(UserPaths(tmp_path / "config", tmp_path / "state"))


class AskedSlurm:
    """A cluster whose Slurm has these jobs; `cancelling` decides what a cancel request does."""

    def __init__(self, jobs: dict[str, str], cancelling: Callable[[str], bool]) -> None:
        self.jobs, self.cancelling, self.asked = jobs, cancelling, list[str]()

    def connect(self, _prompter: object = None) -> None: ...

    def query_jobs(self, job_ids: Sequence[str]) -> dict[str, Job]:
        return {job_id: Job(job_id, "n", self.jobs[job_id]) for job_id in job_ids if job_id in self.jobs}

    def cancel(self, job_id: str) -> bool:
        self.asked.append(job_id)
        return self.cancelling(job_id)


@pytest.fixture
def slurm(runs: Runs) -> Callable[..., tuple[AskedSlurm, RunsFeed]]:
    def make(jobs: dict[str, str], cancelling: Callable[[str], bool] = lambda _: True) -> tuple[AskedSlurm, RunsFeed]:
        asked = AskedSlurm(jobs, cancelling)
        clusters = SimpleNamespace(cluster=lambda _: asked, poller=lambda _: SimpleNamespace(poll_soon=lambda: None))
        feed = RunsFeed(runs, Journal(Path("unused")), cast("Any", clusters), threshold=0.95, timing=Timing())
        return asked, feed

    return make


def test_only_unfinished_jobs_are_cancelled(runs: Runs, slurm: Callable[..., tuple[AskedSlurm, RunsFeed]]) -> None:
    run = make_run("a", job_ids=("1", "2", "3", "4"), other_states=(("3", "FAILED"),))
    runs.save(run)
    asked, feed = slurm({"1": "COMPLETED", "2": "RUNNING"}, lambda job_id: job_id == "2")
    assert feed.cancel(run) == ("2",)
    assert asked.asked == ["2", "4"], "one that Slurm does not name and was not over is tried"
    assert dict(runs.load("a").other_states)["1"] == "COMPLETED"
    assert cancel_words(run, ("2",)) == "Slurm was asked to cancel job 2. Jobs 1, 3, 4 were over already."
    assert cancel_words(make_run(job_ids=("7",)), ()) == "Job 7 was over already: nothing was cancelled."


def test_a_cancel_with_a_lost_answer_is_resolved_by_a_query_or_reported_as_open(
    runs: Runs, slurm: Callable[..., tuple[AskedSlurm, RunsFeed]]
) -> None:
    run = make_run("a", job_ids=("1",))
    runs.save(run)

    def lost(state: str) -> Callable[[str], bool]:
        def answer(job_id: str) -> bool:
            asked.jobs["1"] = state
            raise CancelUnconfirmedError("Slurm", job_id, LlmbError("The connection broke."))

        return answer

    asked, feed = slurm({"1": "RUNNING"})
    asked.cancelling = lost("CANCELLED")
    assert feed.cancel(run) == ("1",)
    asked.jobs["1"], asked.cancelling = "RUNNING", lost("RUNNING")
    with pytest.raises(CancelUnconfirmedError, match="unknown whether job 1 will be cancelled") as caught:
        feed.cancel(run)
    assert "The connection broke." in caught.value.why
    assert "may still be cancelled" in caught.value.fix


@pytest.mark.parametrize(
    ("state", "reason", "after_s", "outcome"),
    [
        ("RUNNING", "", 10.0, "asked for"),
        ("RUNNING", "", 400.0, "not carried out"),
        ("PENDING", "Priority", 400.0, "not carried out"),
        ("COMPLETING", "", 400.0, "asked for"),
        ("RUNNING", ENDED_UNHEARD, 400.0, "asked for"),
        ("CANCELLED", "", 10.0, "carried out"),
        ("CANCELLED", "", 4000.0, "carried out"),
        ("COMPLETED", "", 10.0, "not carried out"),
    ],
)
def test_a_query_resolves_an_open_cancel(state: str, reason: str, after_s: float, outcome: str) -> None:
    run = make_run(job_ids=("7",), cancel=Cancel("7", 1000.0))
    seen = run.seen(Job("7", "n", state, reason), 1000.0 + after_s)
    assert seen.cancel is not None
    assert (seen.cancel.outcome, seen.job_state) == (outcome, state)
    assert run.seen(Job("8", "n", "CANCELLED"), 5000.0) == run, "another job's"


def test_a_cancel_that_seemed_to_fail_may_succeed_later() -> None:
    run = make_run(job_ids=("7",), cancel=Cancel("7", 0.0))
    later = run.seen(Job("7", "n", "RUNNING"), 400.0)
    assert "the job is still active" in later.cancel_note
    ended = later.seen(Job("7", "n", "CANCELLED"), 500.0)
    assert ended.cancel_note == "The cancel of job 7, whose answer was lost, was carried out."
    assert "ended as FAILED" in later.seen(Job("7", "n", "FAILED"), 500.0).cancel_note


def test_an_open_cancel_is_kept_and_settled_by_the_next_look(
    runs: Runs, slurm: Callable[..., tuple[AskedSlurm, RunsFeed]]
) -> None:
    run = make_run("a", job_ids=("1",))
    runs.save(run)
    stored: list[Cancel | None] = []

    def lost(job_id: str) -> bool:
        stored.append(runs.load("a").cancel)
        raise CancelUnconfirmedError("Slurm", job_id, LlmbError("The connection broke."))

    asked, feed = slurm({"1": "RUNNING"}, lost)
    with pytest.raises(CancelUnconfirmedError):
        feed.cancel(run)
    kept = runs.load("a")
    assert kept.cancel is not None
    assert stored == [kept.cancel], "it is on the disk before Slurm is asked"
    assert (kept.cancel.job_id, kept.cancel.outcome) == ("1", "asked for")
    assert "may still cancel it" in kept.cancel_note
    assert feed.poll() == {}
    assert runs.load("a") == kept
    asked.jobs["1"] = "CANCELLED"
    assert feed.poll() == {}
    assert "was carried out" in runs.load("a").cancel_note
    assert feed.cancel(runs.load("a")) == (), "it is over"


def test_an_answered_or_never_sent_cancel_is_not_unconfirmed(
    runs: Runs, slurm: Callable[..., tuple[AskedSlurm, RunsFeed]]
) -> None:
    before = Cancel("1", time.time())
    run = make_run("a", job_ids=("1",), cancel=before)
    runs.save(run)

    def never_sent(_job_id: str) -> bool:
        raise DisconnectedError("The connection broke.", may_have_run=False)

    asked, feed = slurm({"1": "RUNNING"}, never_sent)
    with pytest.raises(DisconnectedError):
        feed.cancel(run)
    assert runs.load("a").cancel == before
    asked.cancelling = lambda _: True
    assert feed.cancel(run) == ("1",)
    assert runs.load("a").cancel is None


def test_a_cancel_does_not_need_room_here(
    runs: Runs, slurm: Callable[..., tuple[AskedSlurm, RunsFeed]], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run("a", job_ids=("1",))
    runs.save(run)

    def full(*_: object) -> None:
        raise LlmbError("No room.")

    asked, feed = slurm({"1": "RUNNING"})
    monkeypatch.setattr(Runs, "save", full)
    assert feed.cancel(run) == ("1",)
    assert asked.asked == ["1"]


@pytest.mark.parametrize(
    ("exit_code", "words", "kind"),
    [
        (
            1,
            "scancel: error: Kill job error on job id 7: Socket timed out on send/recv operation",
            CancelUnconfirmedError,
        ),
        (1, "slurm_load_jobs error: Zero Bytes were transmitted or received", CancelUnconfirmedError),
        (1, "scancel: error: Kill job error on job id 7: Access/permission denied", SlurmError),
    ],
)
def test_messages_of_scancel_when_its_answer_is_lost(exit_code: int, words: str, kind: type[LlmbError]) -> None:
    session = cast(
        "SlurmCluster",
        SimpleNamespace(require_changes=lambda: None, run_script=lambda *_, **__: Completed(exit_code, "", words)),
    )
    with pytest.raises(SchedulerError) as caught:
        SlurmCluster.cancel(session, "7")
    assert type(caught.value) is kind


def test_a_silent_accounting_leaves_the_states_of_the_queue(
    runs: Runs, slurm: Callable[..., tuple[AskedSlurm, RunsFeed]], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run("a", job_ids=("1", "2"), job_state="RUNNING")
    runs.save(run)
    asked, feed = slurm({})
    queued = {"1": Job("1", "n", "COMPLETED"), "77": Job("77", "n", "RUNNING")}

    def look(_job_ids: Sequence[str]) -> dict[str, Job]:
        raise AccountingError(Answer(124, ""), queued)

    monkeypatch.setattr(asked, "query_jobs", look)
    assert (feed.cancel(run), asked.asked) == (("2",), ["2"])
    assert runs.load("a").state_of("1") == "COMPLETED"
    queued["2"] = Job("2", "n", "CANCELLED")
    with pytest.raises(AccountingError):
        poll_jobs(cast("SlurmCluster", asked), runs, [run])
    assert runs.load("a").job_state == "CANCELLED"
