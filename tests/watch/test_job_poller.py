"""One query for all followed jobs: its interval, and the events of each follower. Slurm is simulated."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import cast

import pytest

from llmb_tui.cluster.batch import Answer
from llmb_tui.cluster.failures import AuthenticationError, DisconnectedError
from llmb_tui.cluster.job import Job
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.cluster.slurm.errors import AccountingError, SlurmError
from llmb_tui.errors import LlmbError
from llmb_tui.watch import job_poller
from llmb_tui.watch.events import Ended, JobUpdated, LinkChanged, PollFailed, WatchEvent
from llmb_tui.watch.job_poller import JOB_ENDED, JobPoller, next_pause_s
from tests.kit.waiting import until

DEADLINE_S = 30.0


@dataclass
class Slurm:
    """A cluster whose Slurm returns the answers of the test."""

    jobs: dict[str, Job] = field(default_factory=dict)
    error: LlmbError | None = None
    looks: list[list[str]] = field(default_factory=list)
    asked_nodes: list[str] = field(default_factory=list)
    state: str = "live"
    may_answer: threading.Event = field(default_factory=threading.Event)
    asker: threading.Thread = field(default_factory=threading.current_thread)
    """Thread of the last query."""

    def __post_init__(self) -> None:
        self.may_answer.set()

    def query_jobs(self, job_ids: list[str]) -> dict[str, Job]:
        assert self.may_answer.wait(DEADLINE_S)
        self.looks.append(job_ids)
        self.asker = threading.current_thread()
        if self.error:
            raise self.error
        return {job_id: self.jobs[job_id] for job_id in job_ids if job_id in self.jobs}

    def bad_nodes(self, node_list: str) -> tuple[str, ...]:
        self.asked_nodes.append(node_list)
        return ("cn003 is down: xid79",)


@pytest.fixture
def slurm() -> Slurm:
    return Slurm()


@pytest.fixture
def open_lookout(slurm: Slurm) -> Iterator[Callable[[float], JobPoller]]:
    opened: list[JobPoller] = []

    def make(every_s: float = 0.02) -> JobPoller:
        opened.append(JobPoller(cast("SlurmCluster", slurm), every_s=every_s))
        return opened[-1]

    yield make
    for poller in opened:
        poller.close()


OpenLookout = Callable[..., JobPoller]


class Inbox:
    """Events of a follower."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[WatchEvent] = SimpleQueue()

    def post(self, news: WatchEvent) -> None:
        self._queue.put(news)

    def next(self) -> WatchEvent:
        return self._queue.get(timeout=DEADLINE_S)

    def until(self, condition: Callable[[WatchEvent], object]) -> WatchEvent:
        def fitting() -> list[WatchEvent]:
            news = self.next()
            return [news] if condition(news) else []

        return until(fitting, look_waits=True)[0]

    def job(self, condition: Callable[[Job], object] = lambda _: True) -> Job:
        news = self.until(lambda news: isinstance(news, JobUpdated) and news.job is not None and condition(news.job))
        assert isinstance(news, JobUpdated)
        assert news.job is not None
        return news.job

    def empty(self) -> bool:
        return self._queue.empty()


def job(job_id: str, state: str, **more: object) -> Job:
    return Job(job_id, f"name{job_id}", state, **more)  # type: ignore[arg-type]  # fields of a Job have several types


def test_one_query_covers_all_jobs_and_each_follower_gets_only_its_job(slurm: Slurm, open_lookout: OpenLookout) -> None:
    slurm.jobs = {"1": job("1", "RUNNING"), "2": job("2", "PENDING")}
    poller, inbox, two = open_lookout(), Inbox(), Inbox()
    slurm.may_answer.clear()
    poller.follow_all(["1"], inbox.post)
    poller.follow("2", two.post)
    slurm.may_answer.set()
    assert (inbox.job().id, two.job().id) == ("1", "2")
    until(lambda: ["1", "2"] in slurm.looks)
    slurm.jobs["2"] = job("2", "RUNNING")
    assert two.job(lambda job: job.state == "RUNNING").id == "2"


def test_jobs_followed_together_share_one_query(slurm: Slurm, open_lookout: OpenLookout) -> None:
    inbox = Inbox()
    open_lookout(1000.0).follow_all(["1", "2", "3"], inbox.post)
    inbox.next()
    assert slurm.looks == [["1", "2", "3"]]


def test_a_later_follower_gets_the_known_state_immediately(slurm: Slurm, open_lookout: OpenLookout) -> None:
    slurm.jobs = {"1": job("1", "RUNNING")}
    poller, first, second = open_lookout(1000.0), Inbox(), Inbox()
    poller.follow("1", first.post)
    first.job()
    poller.follow("1", second.post)
    assert second.job().state == "RUNNING"
    assert len(slurm.looks) == 1


def test_an_ended_job_is_no_longer_followed(slurm: Slurm, open_lookout: OpenLookout) -> None:
    slurm.jobs = {"1": job("1", "COMPLETED")}
    poller, inbox = open_lookout(), Inbox()
    following = poller.follow("1", inbox.post)
    assert inbox.job().state == "COMPLETED"
    assert inbox.next() == JOB_ENDED == Ended("watch-job")
    until(lambda: not slurm.asker.is_alive())
    assert following.ended
    assert inbox.empty()


def test_an_ended_following_gets_nothing_and_starts_no_query(slurm: Slurm, open_lookout: OpenLookout) -> None:
    slurm.jobs = {"1": job("1", "RUNNING")}
    poller, inbox = open_lookout(), Inbox()
    following = poller.follow("1", inbox.post)
    inbox.job()
    following.end()
    while not inbox.empty():
        inbox.next()
    until(lambda: not slurm.asker.is_alive())
    assert inbox.empty()
    again = Inbox()
    poller.follow("1", again.post)
    assert again.job().state == "RUNNING"


def test_a_job_that_slurm_does_not_name_ends_only_after_a_while(slurm: Slurm, open_lookout: OpenLookout) -> None:
    patient, hasty = Inbox(), Inbox()
    poller = open_lookout()
    poller.follow("1", patient.post, gone_after_s=1000.0)
    poller.follow("1", hasty.post, gone_after_s=0.1)
    assert hasty.next() == JobUpdated(None, gone=False)
    assert hasty.until(lambda news: news != JobUpdated(None, gone=False)) == JobUpdated(None, gone=True)
    assert hasty.next() == JOB_ENDED
    slurm.jobs = {"1": job("1", "RUNNING")}
    assert patient.job().state == "RUNNING"


def test_a_job_that_left_the_queue_ends_after_a_while_even_if_accounting_is_silent(
    slurm: Slurm, open_lookout: OpenLookout
) -> None:
    queued, forgotten = Inbox(), Inbox()
    slurm.error = AccountingError(Answer(124, ""), {"2": job("2", "RUNNING")})
    poller = open_lookout()
    poller.follow("1", forgotten.post, gone_after_s=0.1)
    poller.follow("2", queued.post)
    assert queued.job().state == "RUNNING"
    news = forgotten.next()
    assert isinstance(news, PollFailed)
    assert "accounting (slurmdbd)" in news.note
    assert forgotten.until(lambda news: not isinstance(news, PollFailed)) == JobUpdated(None, gone=True)
    assert forgotten.next() == JOB_ENDED


def test_an_error_of_slurm_is_not_an_error_of_the_link(slurm: Slurm, open_lookout: OpenLookout) -> None:
    inbox = Inbox()
    slurm.error = SlurmError("`squeue` failed on the cluster.", "Socket timed out", "Wait.")
    open_lookout().follow("1", inbox.post)
    assert inbox.next() == PollFailed("`squeue` failed on the cluster. Socket timed out", slurm=True)
    slurm.error = DisconnectedError("The connection broke.")
    assert inbox.until(lambda news: news == PollFailed("The connection broke.", slurm=False))
    slurm.error = None
    slurm.jobs = {"1": job("1", "RUNNING")}
    assert inbox.job().state == "RUNNING"


def test_a_refused_login_is_not_tried_again(slurm: Slurm, open_lookout: OpenLookout) -> None:
    one, two = Inbox(), Inbox()
    slurm.error = AuthenticationError("The key was not accepted.")
    poller = open_lookout()
    slurm.may_answer.clear()
    followings = [poller.follow("1", one.post), poller.follow("2", two.post)]
    slurm.may_answer.set()
    for inbox in (one, two):
        assert [inbox.next(), inbox.next()] == [LinkChanged("closed", "The key was not accepted."), JOB_ENDED]
    until(lambda: not slurm.asker.is_alive())
    assert [one.ended for one in followings] == [True, True]
    assert len(slurm.looks) == 1


def test_a_closed_session_ends_every_following(slurm: Slurm, open_lookout: OpenLookout) -> None:
    inbox = Inbox()
    slurm.error, slurm.state = DisconnectedError("It was closed here."), "closed"
    open_lookout().follow("1", inbox.post)
    assert inbox.next() == JOB_ENDED


def test_a_poll_requested_during_a_query_starts_after_it(
    slurm: Slurm, open_lookout: OpenLookout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_poller, "SOONEST", 0.0)
    slurm.jobs = {"1": job("1", "PENDING")}
    poller, inbox = open_lookout(1000.0), Inbox()
    slurm.may_answer.clear()
    poller.follow("1", inbox.post)
    until(lambda: poller.calls_last_minute == 1)
    poller.poll_soon()
    slurm.may_answer.set()
    inbox.job()
    inbox.job()
    assert len(slurm.looks) == 2


def test_calls_are_counted(slurm: Slurm, open_lookout: OpenLookout) -> None:
    slurm.jobs = {"1": job("1", "RUNNING")}
    poller, inbox = open_lookout(1000.0), Inbox()
    assert poller.calls_last_minute == 0
    poller.follow("1", inbox.post)
    inbox.job()
    assert poller.calls_last_minute == 1


def test_regaining_focus_starts_a_query(slurm: Slurm, open_lookout: OpenLookout) -> None:
    slurm.jobs = {"1": job("1", "RUNNING")}
    poller, inbox = open_lookout(6.0), Inbox()  # without focus six times as long, which is later than the deadline
    poller.set_focused(False)
    poller.follow("1", inbox.post)
    inbox.job()
    poller.set_focused(True)
    inbox.job()


def test_facts_that_slurm_forgets_are_remembered(slurm: Slurm, open_lookout: OpenLookout) -> None:
    """Accounting does not contain restarts, and a requeued job has no nodes."""
    slurm.jobs = {"1": job("1", "RUNNING", restarts=2)}
    inbox = Inbox()
    open_lookout().follow("1", inbox.post)
    inbox.job()
    slurm.jobs = {"1": job("1", "COMPLETED")}
    assert inbox.job(lambda job: job.finished).restarts == 2


@pytest.mark.parametrize(
    "after",
    [
        job("1", "NODE_FAIL", node_list="cn[001-003]"),
        job("1", "PENDING", restarts=1),
        job("1", "RUNNING", restarts=1, node_list="cn[007-009]"),
    ],
    ids=["failed", "queued again", "runs again"],
)
def test_after_a_node_failure_the_nodes_are_queried_once(slurm: Slurm, open_lookout: OpenLookout, after: Job) -> None:
    slurm.jobs = {"1": job("1", "RUNNING", node_list="cn[001-003]")}
    inbox = Inbox()
    open_lookout().follow("1", inbox.post)
    assert inbox.job().bad_nodes == ()
    slurm.jobs = {"1": after}
    assert inbox.job(lambda job: (job.state, job.restarts) == (after.state, after.restarts)).bad_nodes == (
        "cn003 is down: xid79",
    )
    if not after.finished:
        assert inbox.job().bad_nodes == ("cn003 is down: xid79",)
    assert slurm.asked_nodes == ["cn[001-003]"]


def test_the_pause_grows_while_nothing_changes() -> None:
    def pauses(*, running: bool, focused: bool = True) -> list[float]:
        found = [10.0]
        for _ in range(8):
            found.append(next_pause_s(found[-1], 10.0, changed=False, running=running, focused=focused))
        return found

    running, waiting = pauses(running=True), pauses(running=False)
    assert running == sorted(running)
    assert (running[-1], waiting[-1]) == (30.0, 60.0)
    assert pauses(running=True, focused=False)[1] == 60.0
    assert next_pause_s(60.0, 10.0, changed=True, running=False, focused=True) == 10.0
