"""The feed of runs: its events, its queries to clusters, and the release of its resources. Clusters are simulated."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace
from typing import cast

import pytest

from llmb_tui.cluster.failures import AuthenticationError, HostKeyChangedError, UnreachableError
from llmb_tui.cluster.job import Job
from llmb_tui.cluster.prompter import NonInteractivePrompter, Prompter
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.cluster.slurm.errors import SlurmError
from llmb_tui.errors import LlmbError
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import Runs
from llmb_tui.store.journal import Journal
from llmb_tui.store.paths import UserPaths
from llmb_tui.store.settings import THRESHOLD
from llmb_tui.watch.job_poller import JobPoller
from llmb_tui.watch.runs_feed import RunsFeed
from llmb_tui.watch.state import RunRecord, RunsChanged
from llmb_tui.watch.timing import Timing
from tests.kit.waiting import until

TIMING = Timing(read_every_s=0.01, look_every_s=0.01, settle_every_s=0.01)
DEADLINE_S = 30.0
MakeRun = Callable[..., Run]


@dataclass
class MadeUp:
    """Clusters that return the answers of a test."""

    runs: Runs
    jobs: dict[str, Job] = field(default_factory=dict)
    answers: dict[str, Run | LlmbError] = field(default_factory=dict)
    """Result of settling a submission, by run."""
    troubles: dict[str, LlmbError] = field(default_factory=dict)
    """Error that the poller of a cluster raises, by cluster name."""
    slurm_error: LlmbError | None = None
    polled: list[str] = field(default_factory=list)
    """Clusters whose poller the feed requested."""
    looks: list[list[str]] = field(default_factory=list)
    settled: list[str] = field(default_factory=list)
    attended: list[bool] = field(default_factory=list)
    may_settle: threading.Event = field(default_factory=threading.Event)
    pollers: dict[str, JobPoller] = field(default_factory=dict)
    state: str = "live"

    def __post_init__(self) -> None:
        self.may_settle.set()

    def cluster(self, name: str) -> SlurmCluster:
        return cast("SlurmCluster", MadeUpCluster(self, name))

    def poller(self, cluster: str) -> JobPoller:
        self.polled.append(cluster)
        if error := self.troubles.get(cluster):
            raise error
        return self.pollers.setdefault(cluster, JobPoller(cast("SlurmCluster", self), every_s=TIMING.look_every_s))

    def reconcile(self, _session: object, _runs: object, _journal: object, run: Run) -> Run:
        assert self.may_settle.wait(DEADLINE_S)
        self.settled.append(run.id)
        answer = self.answers.get(run.id, run)
        if isinstance(answer, LlmbError):
            raise answer
        self.runs.save(answer)
        return answer

    def query_jobs(self, job_ids: Sequence[str]) -> dict[str, Job]:
        self.looks.append(list(job_ids))
        if self.slurm_error is not None:
            raise self.slurm_error
        return {job_id: self.jobs[job_id] for job_id in job_ids if job_id in self.jobs}


@dataclass
class MadeUpCluster:
    """One of the simulated clusters."""

    clusters: MadeUp
    name: str

    def connect(self, prompter: Prompter | None) -> None:
        self.clusters.attended.append(prompter is not None)
        if error := self.clusters.troubles.get(self.name):
            raise error

    def query_jobs(self, job_ids: Sequence[str]) -> dict[str, Job]:
        return self.clusters.query_jobs(job_ids)


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(UserPaths(tmp_path / "config", tmp_path / "state"))


@pytest.fixture
def clusters(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> MadeUp:
    made_up = MadeUp(runs)
    monkeypatch.setattr("llmb_tui.watch.runs_feed.reconcile", made_up.reconcile)
    return made_up


@pytest.fixture
def feed(runs: Runs, clusters: MadeUp, tmp_path: Path) -> RunsFeed:
    return RunsFeed(runs, Journal(tmp_path / "journal"), clusters, threshold=THRESHOLD, timing=TIMING)


class Follower:
    """Follower of the feed, with the received events and the records that they define."""

    def __init__(self, feed: RunsFeed) -> None:
        self.events: SimpleQueue[RunsChanged] = SimpleQueue()
        self.records: dict[str, RunRecord] = {}
        self.last = RunsChanged()
        self.event_count = 0
        """Number of events received."""
        self.changes: list[str] = []
        """Ids of changed runs, in the order of the events."""
        self.following = feed.follow(self.events.put)

    def until(self, condition: Callable[[], object], what: str) -> None:
        def is_fulfilled() -> bool:
            if not condition():
                self.take(self.events.get(timeout=DEADLINE_S))
            return bool(condition())

        until(is_fulfilled, what, look_waits=True)

    def take(self, event: RunsChanged) -> None:
        self.last = event
        self.event_count += 1
        self.changes += [record.run.id for record in event.changed]
        self.records.update({record.run.id: record for record in event.changed})
        for run_id in event.removed_ids:
            del self.records[run_id]

    def stage(self, run_id: str) -> str | None:
        record = self.records.get(run_id)
        return record.state.stage if record else None

    def state(self, run_id: str) -> str | None:
        record = self.records.get(run_id)
        return record.run.job_state if record else None


@pytest.fixture
def follow(feed: RunsFeed, clusters: MadeUp) -> Iterator[Callable[[], Follower]]:
    before = set(threading.enumerate())
    followers: list[Follower] = []

    def start() -> Follower:
        followers.append(Follower(feed))
        return followers[-1]

    yield start
    clusters.may_settle.set()
    for follower in followers:
        follower.following.end()
    until(lambda: set(threading.enumerate()) <= before, "no thread is left")


Follow = Callable[[], Follower]


def steps(runs: Runs, run_id: str, nemo_line: Callable[..., str], *indices: int) -> None:
    with (runs.folder(run_id) / "log").open("a") as log:
        log.writelines(nemo_line(index) for index in indices)


def test_a_follower_gets_all_runs_and_then_the_changed_ones(
    runs: Runs, make_run: MakeRun, nemo_line: Callable[..., str], follow: Follow
) -> None:
    for run_id in ("a", "b", "c"):
        runs.save(make_run(id=run_id, job_state="COMPLETED"))
        steps(runs, run_id, nemo_line, *range(50))
    follower = follow()
    follower.until(lambda: [one.state.stage for one in follower.records.values()] == ["done"] * 3, "all are done")
    follower.changes.clear()
    steps(runs, "b", nemo_line, 49)
    runs.save(make_run(id="d", job_state="CANCELLED"))
    follower.until(lambda: "d" in follower.records and "b" in follower.changes, "the change and the new one")
    assert set(follower.changes) == {"b", "d"}
    (runs.folder("c") / "run.json").write_text("{")
    follower.until(lambda: "c" not in follower.records, "it is gone")
    assert follower.last.unreadable == 1


def test_nothing_is_posted_without_a_change(runs: Runs, make_run: MakeRun, follow: Follow) -> None:
    runs.save(make_run(id="a", job_state="CANCELLED"))
    follower = follow()
    follower.until(lambda: follower.stage("a") == "cancelled", "the run")
    follower.changes.clear()
    before = follower.event_count
    second = follow()  # several rounds pass for the first follower before the second gets its first event
    second.until(lambda: second.stage("a") == "cancelled", "the run")
    assert follower.event_count + follower.events.qsize() == before
    runs.save(make_run(id="b", job_state="CANCELLED"))
    follower.until(lambda: follower.stage("b") == "cancelled", "the next run")
    assert set(follower.changes) == {"b"}


def test_each_cluster_is_queried_for_all_its_jobs_and_the_states_are_saved(
    runs: Runs, make_run: MakeRun, clusters: MadeUp, follow: Follow
) -> None:
    for run_id, job_id, state in (("a", "1", "PENDING"), ("b", "2", "RUNNING"), ("c", "3", "COMPLETED")):
        runs.save(make_run(id=run_id, job_ids=(job_id,), job_state=state))
    clusters.jobs = {"1": Job("1", "n", "RUNNING"), "2": Job("2", "n", "RUNNING")}
    follower = follow()
    follower.until(lambda: follower.state("a") == "RUNNING", "the first state")
    assert clusters.looks[0] == ["1", "2"]
    clusters.jobs = {job_id: replace(job, state="COMPLETED") for job_id, job in clusters.jobs.items()}
    follower.until(lambda: {follower.state("a"), follower.state("b")} == {"COMPLETED"}, "both ends")
    assert runs.load("a").job_state == "COMPLETED"
    follower.following.end()
    assert clusters.attended == []


def test_an_unreachable_cluster_is_reported_until_it_answers(
    runs: Runs, make_run: MakeRun, clusters: MadeUp, follow: Follow
) -> None:
    runs.save(make_run(id="a", job_ids=("1",), job_state="PENDING", cluster="eos"))
    runs.save(make_run(id="b", job_ids=("2",), job_state="PENDING", cluster="other"))
    clusters.troubles["eos"] = UnreachableError("No route to eos.")
    clusters.jobs = {job_id: Job(job_id, "n", "RUNNING") for job_id in ("1", "2")}
    follower = follow()
    follower.until(lambda: follower.state("b") == "RUNNING" and follower.last.unreachable, "the one that answers")
    assert (follower.last.unreachable, follower.state("a")) == ({"eos": "No route to eos."}, "PENDING")
    del clusters.troubles["eos"]
    follower.until(lambda: follower.state("a") == "RUNNING" and not follower.last.unreachable, "the other one")


def test_a_silent_cluster_is_not_queried_until_the_next_turn(
    runs: Runs, make_run: MakeRun, clusters: MadeUp, feed: RunsFeed, follow: Follow
) -> None:
    feed.timing = replace(TIMING, read_every_s=3600.0)
    runs.save(make_run(id="a", job_ids=("1",), job_state="PENDING", cluster="eos"))
    clusters.troubles["eos"] = LlmbError("There is no cluster eos.")
    follower = follow()
    follower.until(lambda: follower.last.unreachable, "why")
    follower.following.end()
    follower.following.join(DEADLINE_S)
    assert clusters.polled == ["eos"]


def test_a_slurm_that_does_not_answer_is_named_and_changes_no_run(
    runs: Runs, make_run: MakeRun, clusters: MadeUp, follow: Follow
) -> None:
    runs.save(make_run(id="a", job_ids=("1",), job_state="PENDING", cluster="eos"))
    clusters.slurm_error = SlurmError("`squeue` failed on the cluster.", "Socket timed out", "Wait.")
    follower = follow()
    follower.until(lambda: "timed out" in follower.last.unreachable.get("eos", ""), "the note")
    assert runs.load("a").job_state == "PENDING"
    clusters.jobs, clusters.slurm_error = {"1": Job("1", "n", "RUNNING")}, None
    follower.until(lambda: follower.state("a") == "RUNNING" and not follower.last.unreachable, "the state")


def test_a_job_missing_from_answers_is_queried_until_its_end_is_known(
    runs: Runs, make_run: MakeRun, clusters: MadeUp, follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While accounting does not answer, no answer contains a job that has left the queue."""
    later_s = 0.0
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + later_s)
    monkeypatch.setattr("llmb_tui.watch.job_poller.time", clock)
    runs.save(make_run(id="a", job_ids=("1",), job_state="PENDING"))
    clusters.jobs = {"1": Job("1", "n", "RUNNING")}
    follower = follow()
    follower.until(lambda: follower.state("a") == "RUNNING", "it runs")

    def look_three_times() -> None:
        before = len(clusters.looks)
        until(lambda: len(clusters.looks) >= before + 3, "it is asked for")

    del clusters.jobs["1"]
    look_three_times()
    later_s = 3600.0
    look_three_times()
    clusters.jobs = {"1": Job("1", "n", "COMPLETED")}
    follower.until(lambda: follower.state("a") == "COMPLETED", "its end")


def test_after_a_refused_login_jobs_are_followed_again_once_the_line_is_there(
    runs: Runs, make_run: MakeRun, clusters: MadeUp, follow: Follow
) -> None:
    runs.save(make_run(id="a", job_ids=("1",), job_state="PENDING", cluster="eos"))
    clusters.jobs = {"1": Job("1", "n", "RUNNING")}
    follower = follow()
    follower.until(lambda: follower.state("a") == "RUNNING", "it runs")
    clusters.state, clusters.slurm_error = "lost", HostKeyChangedError("The host key of eos has changed.")
    follower.until(lambda: follower.last.unreachable == {"eos": "The host key of eos has changed."}, "why")
    asked = len(clusters.looks)
    for run_id in ("b", "c", "d"):  # each run needs one round of the feed
        runs.save(make_run(id=run_id, job_state="CANCELLED"))
        follower.until(lambda: run_id in follower.records, "another run")  # noqa: B023 - called in this iteration only
    assert len(clusters.looks) == asked
    clusters.jobs, clusters.slurm_error = {"1": Job("1", "n", "COMPLETED")}, None
    clusters.state = "live"
    follower.until(lambda: follower.state("a") == "COMPLETED" and not follower.last.unreachable, "its end")


def test_an_end_that_could_not_be_saved_is_queried_again(
    runs: Runs, make_run: MakeRun, clusters: MadeUp, follow: Follow
) -> None:
    runs.save(make_run(id="a", job_ids=("1",), job_state="PENDING"))
    clusters.jobs = {"1": Job("1", "n", "COMPLETED")}
    with runs.lock("a"):  # another process has locked the run
        follower = follow()
        until(lambda: len(clusters.looks) >= 2, "it is asked for again")
    follower.until(lambda: follower.state("a") == "COMPLETED", "its end")


def test_unknown_submissions_are_settled_while_a_follower_exists(
    runs: Runs, make_run: MakeRun, clusters: MadeUp, follow: Follow
) -> None:
    lost = make_run(id="a", submission="unknown", job_ids=(), note="No answer yet.")
    runs.save(lost)
    follower = follow()
    follower.until(lambda: "a" in follower.records, "the run")
    clusters.answers["a"] = replace(lost, submission="submitted", job_ids=("7",))
    follower.until(lambda: follower.records["a"].run.submission == "submitted", "it is known")
    assert set(clusters.settled) == {"a"}
    assert True not in clusters.attended


def test_a_slow_cluster_delays_nothing(runs: Runs, make_run: MakeRun, clusters: MadeUp, follow: Follow) -> None:
    runs.save(make_run(id="a", submission="unknown", job_ids=(), cluster="slow"))
    clusters.may_settle.clear()
    follower = follow()
    follower.until(lambda: "a" in follower.records, "the run")
    runs.save(make_run(id="b", job_ids=("2",), job_state="PENDING"))
    clusters.jobs = {"2": Job("2", "n", "RUNNING")}
    follower.until(lambda: follower.state("b") == "RUNNING", "the run of the other cluster")


def test_verbs_settle_each_cluster_until_it_does_not_answer(
    runs: Runs, make_run: MakeRun, clusters: MadeUp, feed: RunsFeed
) -> None:
    for age, (run_id, cluster) in enumerate((("a", "eos"), ("b", "eos"), ("c", "other"))):
        note = "No answer yet."
        runs.save(make_run(id=run_id, cluster=cluster, submission="unknown", job_ids=(), note=note, created_at=-age))
    clusters.answers["a"] = UnreachableError("No route to eos.")
    assert [(run.id, why) for run, why in feed.settle_all()] == [("a", "No route to eos."), ("c", "No answer yet.")]
    assert clusters.settled == ["a", "c"]


def test_waiting_reports_each_reason_and_continues_only_after_passing_errors(
    runs: Runs, make_run: MakeRun, clusters: MadeUp, feed: RunsFeed
) -> None:
    lost = make_run(id="a", submission="unknown", job_ids=(), note="No answer yet.")
    runs.save(lost)
    answers: Iterator[Run | LlmbError] = iter(
        [UnreachableError("No route."), lost, AuthenticationError("The server did not let you in.")]
    )
    messages: list[str] = []

    def tell(_run: Run, why: str) -> None:
        messages.append(why)
        clusters.answers["a"] = next(answers)

    clusters.answers["a"] = next(answers)
    with pytest.raises(AuthenticationError):
        feed.settle_with_retries("a", tell, threading.Event(), NonInteractivePrompter(), passing=(UnreachableError,))
    assert messages == ["No route.", "No answer yet."]
    assert clusters.attended == [True, False, False]
    stop = threading.Event()
    stop.set()
    clusters.answers["a"] = lost
    assert feed.settle_with_retries("a", lambda _run, _why: None, stop).submission == "unknown"


def test_one_query_saves_changes_and_names_silent_clusters(
    runs: Runs, make_run: MakeRun, clusters: MadeUp, feed: RunsFeed
) -> None:
    for run_id, job_id, cluster in (("a", "1", "eos"), ("b", "2", "other"), ("c", "3", "other")):
        runs.save(make_run(id=run_id, job_ids=(job_id,), job_state="PENDING", cluster=cluster))
    clusters.troubles["eos"] = UnreachableError("No route to eos.")
    clusters.jobs = {"2": Job("2", "n", "RUNNING")}
    assert {cluster: error.what for cluster, error in feed.poll().items()} == {"eos": "No route to eos."}
    assert clusters.looks in ([["2", "3"]], [["3", "2"]])
    assert {record.run.id: record.run.job_state for record in feed.records.all()} == {
        "a": "PENDING",
        "b": "RUNNING",
        "c": "PENDING",
    }
    assert feed.record("b").run.job_state == "RUNNING"
