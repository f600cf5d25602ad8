"""`Monitor`: watches one run from wherever it is to its end, and publishes a `RunState` at each change."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from queue import Empty, SimpleQueue

from llmb_tui.cluster.session import Session
from llmb_tui.cluster.slurm.client import look
from llmb_tui.cluster.slurm.job import TERMINAL_STATES, Job
from llmb_tui.cluster.slurm.trouble import SlurmTrouble
from llmb_tui.errors import Trouble
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import Runs
from llmb_tui.watch.beside import Beside
from llmb_tui.watch.follow import LogReplaced
from llmb_tui.watch.job_failure import of_job
from llmb_tui.watch.locallog import LocalLog, local_name, newest_restart
from llmb_tui.watch.logfeed import LogFeed
from llmb_tui.watch.lookout import GONE_AFTER_S, Lookout
from llmb_tui.watch.news import BatchTail, Ended, JobNews, LinkNews, LogNews, LogTrouble, LookFailed, News, Post
from llmb_tui.watch.progress import Pace, with_failure
from llmb_tui.watch.stage import stage_of
from llmb_tui.watch.state import Link, Progress, RunState, Stage, Verdict
from llmb_tui.watch.verdict import THRESHOLD, judge

_PUBLISH_EVERY_S = 0.1
_MISSING = "Slurm does not name the job at the moment; this is what it said last."
_FORGOTTEN = "Slurm no longer knows the job."


def replay(runs: Runs, run: Run, *, threshold: float = THRESHOLD) -> RunState:
    """What is known of a run here, without the cluster. Reads the whole copy of its log."""
    view = _View(runs, run, threshold)
    view.read_on("closed")
    return view.state()


class Monitor:
    """Watches one run; `watch` may be called again after it has returned."""

    def __init__(  # noqa: PLR0913 - settings with defaults
        self,
        session: Session,
        runs: Runs,
        run: Run,
        lookout: Lookout,
        *,
        gone_after_s: float = GONE_AFTER_S,
        threshold: float = THRESHOLD,
    ) -> None:
        self._session = session
        self._lookout = lookout
        self._runs = runs
        self._run = run
        self._gone_after_s = gone_after_s
        self._threshold = threshold

    def watch(self, publish: Callable[[RunState], None], stop: threading.Event) -> RunState:
        """Watch until the run is over and its log is copied whole, or until `stop`; the last state.

        It also returns when nothing can come any more because the cluster does not let us in, and at the latest
        half a second after `stop` is set.

        `publish` is called in this thread, at most ten times a second, and only when something changed; first of
        all with what the local copy of the log holds.
        """
        view = _View(self._runs, self._run, self._threshold)
        if not self._run.job_ids:
            state = view.state()
            publish(state)
            return state
        inbox: SimpleQueue[News] = SimpleQueue()
        leave = threading.Event()
        log_feed = self._log_feed(inbox.put, leave)
        patience_s = 0.0 if view.job_over else self._gone_after_s
        try:
            while view.log.read() and not stop.is_set():
                pass
            publish(view.state())
            if log_feed:
                log_feed.start()
            with ExitStack() as followings:
                job_id = self._run.job_ids[-1]
                followings.enter_context(self._lookout.follow(job_id, inbox.put, gone_after_s=patience_s))
                for other in self._lookout.follow_all(self._run.job_ids[:-1], _only_jobs(inbox.put)):
                    followings.enter_context(other)
                return self._publish_on(view, inbox, log_feed, publish, stop)
        finally:
            leave.set()

    def look_soon(self) -> None:
        """Do not wait for the next look at the job: it was cancelled, or its log says that it has moved on."""
        self._lookout.look_soon()

    def once(self) -> RunState:
        """How the run stands now: one look at the job, and its log copied as far as it is written.

        A cluster that does not answer changes nothing: then it is what was known before, and a note says why.
        """
        view = _View(self._runs, self._run, self._threshold)
        link: Link = "closed"
        if self._run.job_ids:
            link = "live"
            try:
                self._look_once(view)
                inbox: SimpleQueue[News] = SimpleQueue()
                if log_feed := self._log_feed(inbox.put, threading.Event()):
                    log_feed.catch_up(job_over=view.job_over)
                for news in _receive(inbox, 0.0):
                    view.take(news)
            except LogReplaced as trouble:
                view.take(LogTrouble(f"{trouble.what} {trouble.why}"))
            except Trouble as trouble:
                link = "lost"
                view.take(LinkNews(link, trouble.what))
        view.read_on(link)
        return view.state()

    def _publish_on(
        self,
        view: _View,
        inbox: SimpleQueue[News],
        log_feed: LogFeed | None,
        publish: Callable[[RunState], None],
        stop: threading.Event,
    ) -> RunState:
        """Fold the news of both threads into states, until they have ended or `stop` is set."""
        last = view.state()
        running = {"watch-log", "watch-job"} if log_feed else {"watch-job"}
        more = False
        while True:
            began = time.monotonic()
            for news in _receive(inbox, 0.0 if more else _PUBLISH_EVERY_S):
                if isinstance(news, Ended):
                    running.discard(news.thread)
                elif isinstance(news, LinkNews) and news.link == "live" and view.link == "lost":
                    self.look_soon()
                    view.take(news)
                elif view.take(news) and log_feed:
                    (log_feed.job_ended if view.job_over else log_feed.job_moved)(view.restarts)
            more = view.log.read()
            if view.outran_slurm():
                self.look_soon()
            ended = not running and not more
            if ended and view.job_over:
                view.end()
            state = view.state(self._lookout.calls_last_minute)
            if state != last:
                publish(state)
                last = state
            if ended or stop.is_set():
                return state
            if not more:
                stop.wait(max(0.0, _PUBLISH_EVERY_S - (time.monotonic() - began)))

    def _look_once(self, view: _View) -> None:
        *others, job_id = self._run.job_ids
        try:
            jobs = look(self._session, self._run.job_ids)
            view.take(JobNews(jobs.get(job_id), gone=job_id not in jobs and view.job_over))
            for other in filter(jobs.get, others):
                view.take(JobNews(jobs[other]))
        except SlurmTrouble as trouble:
            view.take(LookFailed(f"{trouble.what} {trouble.why}"))

    def _log_feed(self, post: Post, leave: threading.Event) -> LogFeed | None:
        """What copies the log; None while it is not known where the job writes it."""
        folder, log = self._runs.folder(self._run.id), self._run.job_log
        if log is None:
            return None
        return LogFeed(self._session, log, self._run.job_ids[-1], folder, post=post, stop=leave)


def _only_jobs(post: Post) -> Post:
    """Passes on what Slurm says of jobs that it knows, and nothing else."""
    return lambda news: post(news) if isinstance(news, JobNews) and news.job else None


def _receive(inbox: SimpleQueue[News], timeout_s: float) -> list[News]:
    """All that is there, after waiting for the first."""
    news = []
    try:
        news.append(inbox.get(timeout=timeout_s) if timeout_s else inbox.get_nowait())
        while True:
            news.append(inbox.get_nowait())
    except Empty:
        return news


class _View:
    """All that is known of a run at one moment."""

    def __init__(self, runs: Runs, run: Run, threshold: float) -> None:
        self._runs = runs
        self._run = run
        self._threshold = threshold
        self._folder = runs.folder(run.id)
        self._restart = newest_restart(self._folder)
        self.log = LocalLog(run, self._folder / local_name(self._restart))
        self._saved = {job_id: run.state_of(job_id) for job_id in run.job_ids}
        self._others = {job_id: Job(job_id, "", state) for job_id, state in run.other_states}
        known = run.job_state if run.job_ids and run.job_state in TERMINAL_STATES else None
        self._job = Job(run.job_ids[-1], run.job_name, known) if known else None
        self._said: tuple[str | None, int, bool] | None = None
        self.job_over = self._job is not None
        """Slurm has ended the job; its log may not be whole yet."""
        self.over = False
        """Nothing more will come."""
        self.link: Link = "connecting"
        self._notes: dict[str, str] = {}
        self._slurm_note = ""
        self._looked_at: float | None = None
        self._beside = Beside(self._folder)
        self._heard = (False, False)
        self._pace = Pace()
        self._size = 0
        self._grew_at = time.monotonic() - self.log.age_s()

    def take(self, news: News) -> bool:
        """Take in one piece of news; True if the job moved to another state."""
        if isinstance(news, JobNews):
            if news.job and news.job.id != self._run.job_ids[-1]:
                self._others[news.job.id] = news.job
                self._remember(news.job)
                return False
            return self._take_job(news)
        if isinstance(news, LinkNews):
            self.link = news.link
            self._notes["link"] = news.note
        elif isinstance(news, LookFailed):
            self._slurm_note = news.note if news.slurm else ""
        elif isinstance(news, LogTrouble):
            self._notes["log"] = news.note
        elif isinstance(news, BatchTail):
            self._beside.take(news.text)
        elif isinstance(news, LogNews):
            self._notes.pop("log", None)
            if news.note:
                self._notes["start"] = news.note
            if news.restart != self._restart:
                self._restart = news.restart
                self.log = LocalLog(self._run, self._folder / local_name(news.restart))
        return False

    @property
    def restarts(self) -> int:
        """How often Slurm has started the job again."""
        return self._job.restarts if self._job else 0

    def outran_slurm(self) -> bool:
        """True once when the log begins, and once when it has its last step: Slurm's answer is older than that."""
        progress = self.log.progress
        heard = (self.log.size > 0, progress.steps_total is not None and progress.steps_done >= progress.steps_total)
        before, self._heard = self._heard, heard
        return heard != before and not self.job_over

    def read_on(self, link: Link) -> None:
        """Read the copy to its end, once; nobody adds to it meanwhile."""
        while self.log.read():
            pass
        self.link = link
        if self.job_over:
            self.end()

    def end(self) -> None:
        """Both threads have ended and the copy was read to its end."""
        self.log.end()
        self.over = True

    def state(self, calls_per_minute: int = 0) -> RunState:
        """The snapshot to publish."""
        now = time.monotonic()
        progress = self.log.progress
        if self.log.size != self._size:
            self._size, self._grew_at = self.log.size, now
        if progress.steps_done:
            self._pace.note(progress.steps_done, now)
        stage = stage_of(self._job, progress, started=self.log.started, ended=self.over)
        verdict, why_not = self._judge(progress)
        return RunState(
            run_id=self._run.id,
            stage=stage,
            job=self._job,
            others=tuple(self._others.values()),
            progress=self._with_reason(progress, stage),
            eta_s=None if self.job_over else self._pace.eta_s(progress.steps_total, now),
            log_name=self.log.path.name,
            log_bytes=self.log.size,
            silent_s=0.0 if self.over or not self.log.size else _coarse(now - self._grew_at),
            link=self.link,
            link_note=" ".join(note for note in self._notes.values() if note),
            slurm_note=self._slurm_note,
            looked_at=self._looked_at,
            calls_per_minute=calls_per_minute,
            verdict=verdict,
            no_verdict=why_not,
        )

    def _take_job(self, news: JobNews) -> bool:
        self._looked_at = time.time()
        self._slurm_note = ""
        if news.job:
            self._job = news.job
            self._remember(news.job)
        elif not self.job_over:
            self._slurm_note = _FORGOTTEN if news.gone else _MISSING
            self._job = None if news.gone else self._job
        self.job_over = news.gone or (self._job is not None and self._job.finished)
        now = (news.job.state, news.job.restarts, news.gone) if news.job else (None, 0, news.gone)
        moved, self._said = now != self._said, now
        return moved

    def _remember(self, job: Job) -> None:
        """Save a job's state, unless another process here is at work on the run: then at the next look."""
        if job.state == self._saved.get(job.id) or not self._runs.has(self._run.id):
            return
        with self._runs.lock(self._run.id, wait=False) as mine:
            if mine:
                self._runs.save(self._runs.load(self._run.id).told(job.id, job.state))
                self._saved[job.id] = job.state

    def _judge(self, progress: Progress) -> tuple[Verdict | None, str]:
        if not self._run.job_ids:
            return None, self._run.note or f"No verdict: the run has no job, its submission is {self._run.submission}."
        if self._run.job_log is None:
            return None, "No verdict: it is not known where the job writes its log."
        return judge(self._run.plan, self._run.rule, progress, finished=self.over, threshold=self._threshold)

    def _with_reason(self, progress: Progress, stage: Stage) -> Progress:
        """A failed run says why, from its log, its batch script's output or Slurm, whichever tells most."""
        if stage in ("done", "cancelled"):
            return with_failure(progress, None)
        if stage != "failed":
            return progress
        said = [self.log.failure, self._beside.failure, of_job(self._job) if self._job else None]
        return with_failure(progress, max(filter(None, said), key=lambda failure: failure.weight, default=None))


def _coarse(seconds: float) -> float:
    """Whole seconds, and tens of them from a minute on: a state that only differs in them is a new one."""
    step = 1 if seconds < 60 else 10
    return float(int(seconds) // step * step)
