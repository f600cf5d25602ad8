"""`Monitor`: watches one run from wherever it is to its end, and publishes a `RunState` at each change."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from queue import Empty, SimpleQueue

from llmb_tui.cluster.cluster import Cluster, HalfAnswer, SchedulerTrouble
from llmb_tui.cluster.job import Job
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.remote_file import OutOfReach, Unreadable
from llmb_tui.errors import Trouble
from llmb_tui.language.states import RunLink
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import Runs
from llmb_tui.store.settings import THRESHOLD
from llmb_tui.watch.accounting import keep_accounting
from llmb_tui.watch.events import (
    LOGIN_TROUBLE,
    BatchTail,
    Ended,
    EventSink,
    JobUpdated,
    LinkChanged,
    LogTrouble,
    PollFailed,
    WatchEvent,
)
from llmb_tui.watch.follow import LogReplaced
from llmb_tui.watch.job_poller import GONE_AFTER_S, JobPoller
from llmb_tui.watch.local_run import LocalRun
from llmb_tui.watch.logfeed import PATIENCE_S, LogFeed, log_trouble
from llmb_tui.watch.network_lines import keep_network_lines
from llmb_tui.watch.state import RunState

_PUBLISH_EVERY_S = 0.1
_AGAIN_AFTER_S = 60.0
"""What stays as it is is published again, for those who say how long it is so."""
# What goes on tells itself; without news there are only ages to count on, and `stop` to be heard.
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
        """Watch until the run is over and its log is copied whole, or until `stop`; the last state.

        It also returns when nothing can come any more because the cluster does not let us in, and at the latest
        half a second after `stop` is set. `prompter` answers what connecting asks at the beginning; None: nobody.

        `publish` is called in this thread, at most ten times a second, when something changed and when nothing did for
        a minute; first of all with what the local copy of the log holds.
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
        """How the run stands now: one look at the job, and its log copied as far as it is written.

        A cluster that does not answer changes nothing: then it is what was known before, and a note says why.
        `prompter` answers what connecting asks; None: nobody.
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
            except (LogReplaced, OutOfReach, Unreadable) as trouble:
                inbox.put(log_trouble(trouble))
            except Trouble as trouble:
                link = "lost"
                inbox.put(LinkChanged(link, trouble.what))
            for event in _receive(inbox, 0.0):
                local.take(event)
        if link == "live" and local.reducer.job_over:
            self._keep_evidence()
        local.read_on(link)
        return local.state()

    def _connect(self, prompter: Prompter, stop: threading.Event) -> Trouble | None:
        """Connect before the threads that follow the run do so, as they ask nobody. Why we were not let in, if so."""
        refused: list[Trouble] = []

        def connect() -> None:
            try:
                self._cluster.connect(prompter)
            except LOGIN_TROUBLE as trouble:
                refused.append(trouble)
            except Trouble:
                pass  # who follows the run says what is the matter with the line, and tries again

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
        """Fold the events of both threads into states, until they have ended or `stop` is set."""
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
            state = local.state(self._poller.calls_last_minute)
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
        silent: SchedulerTrouble | None = None
        try:
            jobs = self._cluster.look(self._run.job_ids)
        except SchedulerTrouble as trouble:
            jobs, silent = trouble.queued if isinstance(trouble, HalfAnswer) else {}, trouble
        if job_id in jobs or silent is None:
            local.take(JobUpdated(jobs.get(job_id), gone=job_id not in jobs and local.reducer.job_over))
        else:
            local.take(PollFailed(f"{silent.what} {silent.why}"))
        for other in filter(jobs.get, others):
            local.take(JobUpdated(jobs[other]))

    def _log_feed(self, post: EventSink, leave: threading.Event) -> LogFeed | None:
        """What copies the log; None while it is not known where the job writes it."""
        folder, log = self._runs.folder(self._run.id), self._run.job_log
        if log is None:
            return None
        output = self._cluster.output(log, self._run.job_ids[-1])
        # Of a log that was read to its end nothing is lost when it is removed.
        patience_s = 0.0 if self._run.log_read else PATIENCE_S
        return LogFeed(output, folder, state=lambda: self._cluster.state, post=post, stop=leave, patience_s=patience_s)

    def _and_keep(self, local: LocalRun, post: EventSink, leave: threading.Event) -> EventSink:
        """Posts, and once the log has nothing more to say has kept what else the cluster knows of the run."""

        def post_and_keep(event: WatchEvent) -> None:
            post(event)
            is_no_log = isinstance(event, LogTrouble) and (event.for_good or event.given_up)
            if (is_no_log and local.reducer.job_over) or isinstance(event, BatchTail):
                self._keep_evidence(leave)

        return post_and_keep

    def _keep_evidence(self, leave: threading.Event | None = None) -> None:
        """Copy from the cluster what it knows of a run that is over, besides its log."""
        keep_network_lines(self._cluster, self._runs, self._run)
        keep_accounting(self._cluster, self._runs, self._run, leave)


def _only_jobs(post: EventSink) -> EventSink:
    """Passes on what Slurm says of jobs that it knows, and nothing else."""
    return lambda event: post(event) if isinstance(event, JobUpdated) and event.job else None


def _receive(inbox: SimpleQueue[WatchEvent], timeout_s: float) -> list[WatchEvent]:
    """All that is there, after waiting for the first."""
    events = []
    try:
        events.append(inbox.get(timeout=timeout_s) if timeout_s else inbox.get_nowait())
        while True:
            events.append(inbox.get_nowait())
    except Empty:
        return events
