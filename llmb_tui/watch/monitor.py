"""`Monitor`: watches one run until it ends, and publishes a `RunState` at each change."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from queue import Empty, SimpleQueue

from llmb_tui.cluster.cluster import Cluster, PartialAnswerError, SchedulerError
from llmb_tui.cluster.job import Job
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.remote_file import OutputUnreachableError, UnreadableFileError
from llmb_tui.errors import LlmbError
from llmb_tui.language.states import RunLink
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import Runs
from llmb_tui.store.settings import THRESHOLD
from llmb_tui.watch.accounting import keep_accounting
from llmb_tui.watch.events import (
    LOGIN_ERRORS,
    BatchTail,
    Ended,
    EventSink,
    JobUpdated,
    LinkChanged,
    LogProblem,
    PollFailed,
    WatchEvent,
)
from llmb_tui.watch.follow import LogReplacedError
from llmb_tui.watch.job_poller import GONE_AFTER_S, JobPoller
from llmb_tui.watch.local_run import LocalRun
from llmb_tui.watch.logfeed import PATIENCE_S, LogFeed, log_problem
from llmb_tui.watch.network_lines import keep_network_lines
from llmb_tui.watch.state import RunState

_PUBLISH_EVERY_S = 0.1
_AGAIN_AFTER_S = 60.0
"""An unchanged state is published again after this time, for receivers that show how long it lasts."""
# Threads post their news; this is the interval for updating ages and checking `stop`.
_QUIET_S = 0.45


class Monitor:
    """Watches one run; `watch` may be called again after it has returned."""

    def __init__(  # noqa: PLR0913 - settings with defaults
        self,
        cluster: Cluster,
        runs: Runs,
        run: Run,
        poller: JobPoller,
        *,
        gone_after_s: float = GONE_AFTER_S,
        threshold: float = THRESHOLD,
    ) -> None:
        self._cluster = cluster
        self._poller = poller
        self._runs = runs
        self._run = run
        self._gone_after_s = gone_after_s
        self._threshold = threshold

    def watch(
        self, publish: Callable[[RunState], None], stop: threading.Event, prompter: Prompter | None = None
    ) -> RunState:
        """Watch until the run has ended and its log is completely copied, or until `stop`; return the last state.

        It also returns if the cluster refuses the login, and at most half a second after `stop` is set. `prompter`
        answers questions of the first connection; None answers none.

        `publish` is called in this thread, at most ten times a second: first with the data of the local copy of the
        log, then at each change, and after a minute without one.
        """
        local = LocalRun(self._runs, self._run, self._threshold)
        if not self._run.job_ids:
            state = local.state()
            publish(state)
            return state
        inbox: SimpleQueue[WatchEvent] = SimpleQueue()
        leave = threading.Event()
        log_feed = None if local.log_removed else self._log_feed(self._and_keep(local, inbox.put, leave), leave)
        patience_s = 0.0 if local.reducer.job_over else self._gone_after_s
        try:
            while local.read() and not stop.is_set():
                pass
            publish(local.state())
            if prompter is not None and (refused := self._connect(prompter, stop)):
                local.take(LinkChanged("closed", refused.what))
                local.read_on("closed")
                publish(state := local.state())
                return state
            if log_feed:
                log_feed.start()
            with ExitStack() as followings:
                job_id = self._run.job_ids[-1]
                followings.callback(self._poller.follow(job_id, inbox.put, gone_after_s=patience_s).end)
                for other in self._poller.follow_all(self._run.job_ids[:-1], _only_jobs(inbox.put)):
                    followings.callback(other.end)
                return self._publish_on(local, inbox, log_feed, publish, stop)
        finally:
            leave.set()

    def once(self, prompter: Prompter | None = None) -> RunState:
        """Current state of the run, after one query about the job and after copying the current content of its log.

        If the cluster does not answer, the last known state is returned with a note that gives the reason. `prompter`
        answers questions of the connection; None answers none.
        """
        local = LocalRun(self._runs, self._run, self._threshold)
        inbox: SimpleQueue[WatchEvent] = SimpleQueue()
        link: RunLink = "closed"
        if self._run.job_ids:
            link = "live"
            try:
                self._cluster.connect(prompter)
                self._look_once(local)
                log_feed = None if local.log_removed else self._log_feed(inbox.put, threading.Event())
                if log_feed:
                    log_feed.catch_up(job_over=local.reducer.job_over)
            except (LogReplacedError, OutputUnreachableError, UnreadableFileError) as error:
                inbox.put(log_problem(error))
            except LlmbError as error:
                link = "lost"
                inbox.put(LinkChanged(link, error.what))
            for event in _receive(inbox, 0.0):
                local.take(event)
        if link == "live" and local.reducer.job_over:
            self._keep_evidence()
        local.read_on(link)
        return local.state()

    def _connect(self, prompter: Prompter, stop: threading.Event) -> LlmbError | None:
        """Connect before the following threads do, because they ask nobody. Returns the error of a refused login."""
        refused: list[LlmbError] = []

        def connect() -> None:
            try:
                self._cluster.connect(prompter)
            except LOGIN_ERRORS as error:
                refused.append(error)
            except LlmbError:
                pass  # the threads that follow the run report the connection error and try again

        thread = threading.Thread(target=connect, name="watch-connect", daemon=True)
        thread.start()
        while thread.is_alive() and not stop.is_set():
            thread.join(_PUBLISH_EVERY_S)
        return refused[0] if refused else None

    def _publish_on(
        self,
        local: LocalRun,
        inbox: SimpleQueue[WatchEvent],
        log_feed: LogFeed | None,
        publish: Callable[[RunState], None],
        stop: threading.Event,
    ) -> RunState:
        """Fold the events of both threads into states, until both have ended or `stop` is set."""
        last, published_at = local.state(), time.monotonic()
        running = {"watch-log", "watch-job"} if log_feed else {"watch-job"}
        more = False
        while True:
            began = time.monotonic()
            for event in _receive(inbox, 0.0 if more else _QUIET_S):
                if isinstance(event, Ended):
                    running.discard(event.thread)
                elif isinstance(event, LinkChanged) and event.link == "live" and local.reducer.link == "lost":
                    self._poller.poll_soon()
                    local.take(event)
                elif local.take(event) and log_feed:
                    log_feed.job_moved(local.reducer.restarts, over=local.reducer.job_over)
            more = local.read()
            if local.reducer.outran_slurm():
                self._poller.poll_soon()
            ended = not running and not more
            if ended and local.reducer.job_over:
                local.end()
            state = local.state()
            if state != last or time.monotonic() - published_at >= _AGAIN_AFTER_S:
                publish(state)
                last, published_at = state, time.monotonic()
            if ended or stop.is_set():
                return state
            if not more:
                stop.wait(max(0.0, _PUBLISH_EVERY_S - (time.monotonic() - began)))

    def _look_once(self, local: LocalRun) -> None:
        *others, job_id = self._run.job_ids
        jobs: Mapping[str, Job] = {}
        silent: SchedulerError | None = None
        try:
            jobs = self._cluster.query_jobs(self._run.job_ids)
        except SchedulerError as error:
            jobs, silent = error.queued if isinstance(error, PartialAnswerError) else {}, error
        if job_id in jobs or silent is None:
            local.take(JobUpdated(jobs.get(job_id), gone=job_id not in jobs and local.reducer.job_over))
        else:
            local.take(PollFailed(f"{silent.what} {silent.why}"))
        for other in filter(jobs.get, others):
            local.take(JobUpdated(jobs[other]))

    def _log_feed(self, post: EventSink, leave: threading.Event) -> LogFeed | None:
        """Create the copier of the log; None while the path of the log is unknown."""
        folder, log = self._runs.folder(self._run.id), self._run.job_log
        if log is None:
            return None
        output = self._cluster.output(log, self._run.job_ids[-1])
        # A log that was read to its end may be removed without loss.
        patience_s = 0.0 if self._run.log_read else PATIENCE_S
        return LogFeed(output, folder, state=lambda: self._cluster.state, post=post, stop=leave, patience_s=patience_s)

    def _and_keep(self, local: LocalRun, post: EventSink, leave: threading.Event) -> EventSink:
        """Return a function that posts an event, and saves the cluster's other evidence once the log is complete."""

        def post_and_keep(event: WatchEvent) -> None:
            post(event)
            is_no_log = isinstance(event, LogProblem) and (event.for_good or event.given_up)
            if (is_no_log and local.reducer.job_over) or isinstance(event, BatchTail):
                self._keep_evidence(leave)

        return post_and_keep

    def _keep_evidence(self, leave: threading.Event | None = None) -> None:
        """Copy the cluster's other evidence about a finished run."""
        keep_network_lines(self._cluster, self._runs, self._run)
        keep_accounting(self._cluster, self._runs, self._run, leave)


def _only_jobs(post: EventSink) -> EventSink:
    """Return a function that posts only Slurm's answers about known jobs."""
    return lambda event: post(event) if isinstance(event, JobUpdated) and event.job else None


def _receive(inbox: SimpleQueue[WatchEvent], timeout_s: float) -> list[WatchEvent]:
    """All events in the inbox, after waiting for the first one."""
    events = []
    try:
        events.append(inbox.get(timeout=timeout_s) if timeout_s else inbox.get_nowait())
        while True:
            events.append(inbox.get_nowait())
    except Empty:
        return events
