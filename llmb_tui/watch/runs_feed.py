"""`RunsFeed`: all remembered runs, their states, and every change of them.

It reads the runs' folders and logs, asks clusters about active runs, and resolves unknown submissions, for every screen
or verb that shows runs. While a follower is registered, one thread reads the runs' folders. Each cluster is asked in
its own thread, so that one that does not answer delays no other; one `JobPoller` per cluster asks about its jobs.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import Literal, Protocol

from llmb_tui.cluster.cluster import CancelUnconfirmedError, Cluster, PartialAnswerError, SchedulerError
from llmb_tui.cluster.failures import DisconnectedError, NoAnswerError, UnreachableError
from llmb_tui.cluster.job import TERMINAL_STATES, Job
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.errors import LlmbError, error_with_remedy
from llmb_tui.launch.run import Cancel, Run
from llmb_tui.launch.runs import Runs
from llmb_tui.launch.submit import reconcile
from llmb_tui.store.journal import Journal
from llmb_tui.watch.events import JobUpdated, LinkChanged, PollFailed, WatchEvent
from llmb_tui.watch.job_poller import Following, JobPoller
from llmb_tui.watch.monitor import Monitor
from llmb_tui.watch.run_records import RunRecords
from llmb_tui.watch.state import RunRecord, RunsChanged
from llmb_tui.watch.timing import Timing

HERE = ("This machine", "folders")
"""Takes the place of a cluster's name and question if the runs' own folders cannot be read."""
TRANSIENT_ERRORS = (NoAnswerError, DisconnectedError, UnreachableError, SchedulerError)
"""Errors that may pass: the connection is broken, or Slurm does not answer."""

Post = Callable[[RunsChanged], object]
"""Called with each change, in a thread of the feed; must hand the event on and return."""
_TELL_EVERY_S = 0.1


class Connections(Protocol):
    """Access to the saved clusters. Each method may raise LlmbError."""

    def cluster(self, name: str) -> Cluster:
        """The one object of a cluster."""

    def poller(self, cluster: str) -> JobPoller: ...


class RunsFeed:
    """All remembered runs; one feed for each program. Thread-safe. A method that asks a cluster or a user says so."""

    def __init__(
        self, runs: Runs, journal: Journal, clusters: Connections, *, threshold: float, timing: Timing
    ) -> None:
        self.records = RunRecords(runs, threshold)
        """Records of the runs by the data on this machine."""
        self.runs = runs
        self._journal = journal
        self.clusters = clusters
        self.timing = timing
        self._threshold = threshold

    def record(self, run_id: str) -> RunRecord:
        """Current record of one run. Raises LlmbError (exit code 1) if there is no such run."""
        return self.records.record(self.runs.load(run_id))

    def follow(self, post: Post) -> RunsFollowing:
        """Post every change until the returned object is ended. Clusters are asked, users are not."""
        following = RunsFollowing(self, post)
        following.start()
        return following

    def settle(self, run_id: str, prompter: Prompter | None = None) -> Run:
        """Ask the cluster whether an unknown submission of a run succeeded.

        Raises LlmbError if there is no such run, or if the cluster cannot be asked.
        """
        run = self.runs.load(run_id)
        if run.submission != "unknown":
            return run
        cluster = self.clusters.cluster(run.cluster)
        cluster.connect(prompter)
        return reconcile(cluster, self.runs, self._journal, run)

    def settle_all(self, prompter: Prompter | None = None) -> Iterator[tuple[Run, str]]:
        """Ask about every unknown run; yield those that stay unknown, with the reason. Ask a silent cluster once."""
        silent: set[str] = set()
        for run in self.runs.all():
            if run.submission != "unknown" or run.cluster in silent:
                continue
            try:
                settled = self.settle(run.id, prompter)
            except LlmbError as error:
                silent.add(run.cluster)
                yield run, error.what
            else:
                if settled.submission == "unknown":
                    yield settled, settled.note

    def settle_with_retries(
        self,
        run_id: str,
        publish: Callable[[Run, str], None],
        stop: threading.Event,
        prompter: Prompter | None = None,
        passing: tuple[type[LlmbError], ...] = (),
    ) -> Run:
        """Ask repeatedly until the submission of a run is no longer unknown, or until `stop`.

        `publish` gets the run and the reason why it is still unknown. An error of a `passing` kind is such a reason,
        any other is raised. `prompter` answers only the first time: later reconnects ask the user nothing.
        """
        while True:
            try:
                run = self.settle(run_id, prompter)
                note = run.note
            except passing as error:
                run = self.runs.load(run_id)
                note = f"{error.what} {error.why}".rstrip()
            if run.submission != "unknown":
                return run
            prompter = None
            publish(run, note)
            if stop.wait(self.timing.settle_every_s):
                return run

    def poll(self, prompter: Prompter | None = None) -> dict[str, LlmbError]:
        """Ask each cluster once about the jobs of its active runs; return the errors by name of the cluster."""
        silent = {}
        for name, going in sorted(_by_cluster(run for run in self.runs.all() if run.is_active and run.job_ids).items()):
            try:
                cluster = self.clusters.cluster(name)
                cluster.connect(prompter)
                poll_jobs(cluster, self.runs, going)
            except LlmbError as error:
                silent[name] = error
        return silent

    def monitor(self, run_id: str) -> Monitor:
        """A monitor that publishes the `RunState`s of one run. Raises LlmbError if there is no such run or cluster."""
        run = self.runs.load(run_id)
        cluster, poller = self.clusters.cluster(run.cluster), self.clusters.poller(run.cluster)
        return Monitor(cluster, self.runs, run, poller, threshold=self._threshold)

    def cancel(self, run: Run, prompter: Prompter | None = None) -> tuple[str, ...]:
        """Ask Slurm to cancel the unfinished jobs of a run; return their ids.

        `prompter` answers questions of the connection. If an answer is lost, Slurm is asked for the state of the job.
        Raises LlmbError; CancelUnconfirmedError if that state is unknown: the run keeps the request, and a later query
        resolves it.
        """
        cluster = self.clusters.cluster(run.cluster)
        cluster.connect(prompter)
        try:
            return tuple(job_id for job_id in self._not_over(cluster, run) if self._cancel(cluster, run, job_id))
        finally:
            with contextlib.suppress(LlmbError):
                self.clusters.poller(run.cluster).poll_soon()

    def change(self, run: Run, what: Literal["suspend", "resume"], prompter: Prompter | None = None) -> None:
        """Suspend the job of a run, or resume it. Raises LlmbError."""
        cluster = self.clusters.cluster(run.cluster)
        cluster.connect(prompter)
        (cluster.suspend if what == "suspend" else cluster.resume)(run.job_ids[-1])
        with contextlib.suppress(LlmbError):
            self.clusters.poller(run.cluster).poll_soon()

    def _cancel(self, cluster: Cluster, run: Run, job_id: str) -> bool:
        """Cancel a job; False if it had already ended. The request is saved to disk before it is made."""
        before = self.runs.load(run.id).cancel
        self._remember_cancel(run, Cancel(job_id, time.time()))
        try:
            cancelled = _cancel(cluster, job_id)
        except CancelUnconfirmedError:
            raise
        except LlmbError:  # no request was made
            self._remember_cancel(run, before)
            raise
        self._remember_cancel(run, None)
        return cancelled

    def _remember_cancel(self, run: Run, cancel: Cancel | None) -> None:
        with contextlib.suppress(LlmbError):  # no disk space here: the job is cancelled anyway
            self.runs.save_cancel(run.id, cancel)

    def _not_over(self, cluster: Cluster, run: Run) -> Sequence[str]:
        """Unfinished jobs of a run; by their last known states if Slurm cannot answer."""
        jobs: Mapping[str, Job]
        try:
            jobs = cluster.query_jobs(run.job_ids)
        except PartialAnswerError as error:
            jobs = {job_id: job for job_id, job in error.queued.items() if job_id in run.job_ids}
        except SchedulerError:
            return [job_id for job_id in run.job_ids if run.state_of(job_id) not in TERMINAL_STATES]
        with contextlib.suppress(LlmbError):  # no disk space here; a cancel needs none
            self.runs.save_states(run, list(jobs.values()))
        states = {job_id: jobs[job_id].state if job_id in jobs else run.state_of(job_id) for job_id in run.job_ids}
        return [job_id for job_id, state in states.items() if state not in TERMINAL_STATES]


def _cancel(cluster: Cluster, job_id: str) -> bool:
    """Cancel a job; False if it had already ended. Raises CancelUnconfirmedError if the result is unknown."""
    try:
        return cluster.cancel(job_id)
    except CancelUnconfirmedError:
        with contextlib.suppress(LlmbError):
            job = cluster.query_jobs([job_id]).get(job_id)
            if job is not None and job.finished:
                return job.state == "CANCELLED"
        raise


def poll_jobs(cluster: Cluster, runs: Runs, active: Sequence[Run]) -> int:
    """Ask Slurm about the jobs of these runs in one remote call, and save changes; return the number of changed runs.

    A job that Slurm does not name keeps its last known state, and so does a run that another thread or process here is
    working on. Raises SchedulerError if Slurm cannot answer, and whatever the cluster's queries raise. If only
    accounting is silent, the states from the queue are saved first.
    """

    def save(jobs: Mapping[str, Job]) -> int:
        of_run = ((run, [jobs[job_id] for job_id in run.job_ids if job_id in jobs]) for run in active)
        return sum(runs.save_states(run, named) is not None for run, named in of_run)

    try:
        return save(cluster.query_jobs([job_id for run in active for job_id in run.job_ids]))
    except PartialAnswerError as error:
        save(error.queued)
        raise


class RunsFollowing(threading.Thread):
    """Thread that posts changes to one follower until it is ended."""

    def __init__(self, feed: RunsFeed, post: Post) -> None:
        super().__init__(name="runs-feed", daemon=True)
        self._feed = feed
        self._post = post
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._inbox: SimpleQueue[tuple[str, WatchEvent] | None] = SimpleQueue()
        self._records: dict[str, RunRecord] = {}
        """Records as they were last posted."""
        self._last_event: RunsChanged | None = None
        self._unreadable = 0
        self._silent: dict[tuple[str, str], str] = {}
        """Reasons why clusters could not be asked, by (cluster, question); an empty reason means that it answers."""
        self._questions = {HERE}
        """(cluster, question) pairs that are asked at present."""
        self._followings: dict[str, dict[str, Following]] = {}
        """Followed jobs, by cluster and job id."""
        self._threads: dict[str, threading.Thread] = {}
        self._going: dict[tuple[str, str], Run] = {}
        """Active runs, by cluster and job id."""
        self._settled_at = float("-inf")
        self._renewed_at = float("-inf")

    def end(self) -> None:
        """Stop posting, and follow no job any more."""
        with self._lock:
            self._ended.set()
            for jobs in self._followings.values():
                for following in jobs.values():
                    following.end()
        self._inbox.put(None)

    def run(self) -> None:
        """Read the folders repeatedly, and immediately when a cluster has answered."""
        while not self._ended.is_set():
            try:
                self._read()
                if not self._ended.is_set():
                    self._ask_clusters()
                self._note(*HERE, "")
            except LlmbError as failure:
                self._note(*HERE, str(failure))
            except OSError as error:
                self._note(*HERE, str(error_with_remedy(error) or error))
            self._tell()
            self._wait()

    def _read(self) -> None:
        """Post the list of runs first, then their states, as fast as their logs are read."""
        records = self._feed.records
        runs, unreadable = self._feed.runs.listing()
        self._unreadable = len(unreadable)
        new = [run for run in runs if run.id not in self._records]
        self._tell([records.last(run) for run in new], tuple(self._records.keys() - {run.id for run in runs}))
        changed: list[RunRecord] = []
        posted_at = time.monotonic()
        for run in runs:
            record = records.record(run)
            if record is not self._records[run.id]:
                changed.append(record)
            if changed and time.monotonic() - posted_at > _TELL_EVERY_S:
                self._tell(changed)
                changed, posted_at = [], time.monotonic()
            if self._ended.is_set():
                return
        self._tell(changed)

    def _tell(self, changed: Sequence[RunRecord] = (), gone: tuple[str, ...] = ()) -> None:
        """Post the changes since the last event, if there are any."""
        self._records.update({record.run.id: record for record in changed})
        for run_id in gone:
            del self._records[run_id]
        with self._lock:
            silent = {question[0]: why for question, why in self._silent.items() if why and question in self._questions}
            event = RunsChanged(tuple(changed), gone, self._unreadable, silent)
            if event != self._last_event and not self._ended.is_set():
                self._last_event = replace(event, changed=(), removed_ids=())
                self._post(event)

    def _ask_clusters(self) -> None:
        """Follow the jobs of active runs, and ask about unknown submissions when that is due."""
        runs = [record.run for record in self._records.values()]
        self._going = {(run.cluster, job_id): run for run in runs if run.is_active for job_id in run.job_ids}
        unknown = _by_cluster(run for run in runs if run.submission == "unknown")
        self._questions = {
            HERE,
            *((cluster, "jobs") for cluster, _ in self._going),
            *((cluster, "submissions") for cluster in unknown),
        }
        if time.monotonic() - self._settled_at >= self._feed.timing.settle_every_s:
            self._settled_at = time.monotonic()
        else:
            unknown = {}
        if time.monotonic() - self._renewed_at >= self._feed.timing.look_every_s:
            self._renewed_at = time.monotonic()
            self._forget_ended()
        with self._lock:
            followed = {cluster: set(jobs) for cluster, jobs in self._followings.items()}
        for cluster in {*(cluster for cluster, _ in self._going), *unknown, *followed}:
            job_ids = {job_id for name, job_id in self._going if name == cluster}
            before = self._threads.get(cluster)
            is_needed = cluster in unknown or job_ids != followed.get(cluster, set())
            if is_needed and (before is None or not before.is_alive()):
                question = (cluster, job_ids, unknown.get(cluster, ()))
                self._threads[cluster] = threading.Thread(target=self._ask, args=question, name="runs-ask", daemon=True)
                self._threads[cluster].start()

    def _forget_ended(self) -> None:
        """Drop ended followings, so that the job of an active run is followed again, as after a refused login.

        Only over a working connection: a server that refuses us is not offered the same keys again and again.
        """
        with self._lock:
            for cluster, jobs in self._followings.items():
                kept = {
                    job_id: following
                    for job_id, following in jobs.items()
                    if not following.ended or following.poller.state != "live"
                }
                self._followings[cluster] = kept

    def _ask(self, cluster: str, job_ids: Set[str], unknown: Sequence[Run]) -> None:
        """Ask one cluster, in its own thread, which may take long. After an error it is asked again later."""
        what = "jobs"
        try:
            self._follow_jobs(cluster, job_ids)
            what = "submissions"
            for run in unknown:
                self._feed.settle(run.id)
            self._note(cluster, what, "")
        except LlmbError as error:
            self._note(cluster, what, error.what)
            self._inbox.put(None)
            self._ended.wait(self._feed.timing.read_every_s)
        else:
            self._inbox.put(None)

    def _follow_jobs(self, cluster: str, job_ids: Set[str]) -> None:
        """Follow exactly these jobs. Raises LlmbError if there is no such cluster."""
        poller = self._feed.clusters.poller(cluster)
        with self._lock:
            if self._ended.is_set():
                return
            followings = self._followings.setdefault(cluster, {})
            for job_id in followings.keys() - job_ids:
                followings.pop(job_id).end()
            new = sorted(job_ids - followings.keys())
            # A job that is missing for a while has not ended: accounting may be silent, and its answer is awaited.
            new_followings = poller.follow_all(
                new, lambda event: self._inbox.put((cluster, event)), gone_after_s=math.inf
            )
            followings.update(zip(new, new_followings, strict=True))

    def _wait(self) -> None:
        """Wait for the next read of the folders, or for an event of a cluster, and save the event."""
        with contextlib.suppress(Empty):
            item = self._inbox.get(timeout=self._feed.timing.read_every_s)
            while True:
                if item is not None:
                    self._take(*item)
                item = self._inbox.get_nowait()

    def _take(self, cluster: str, event: WatchEvent) -> None:
        if isinstance(event, JobUpdated):
            self._note(cluster, "jobs", "")
            run = self._going.get((cluster, event.job.id)) if event.job else None
            if event.job and run:
                with contextlib.suppress(LlmbError):  # no disk space here: a later look saves it
                    self._feed.runs.save_states(run, [event.job])
        elif isinstance(event, (PollFailed, LinkChanged)):
            self._note(cluster, "jobs", event.note)

    def _note(self, cluster: str, question: str, why: str) -> None:
        with self._lock:
            self._silent[cluster, question] = why


def _by_cluster(runs: Iterable[Run]) -> dict[str, list[Run]]:
    clusters: dict[str, list[Run]] = {}
    for run in runs:
        clusters.setdefault(run.cluster, []).append(run)
    return clusters
