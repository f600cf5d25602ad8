"""`SuiteRunner`: submits each row of a suite at most once, and continues where an earlier program stopped.

The ids of all runs are stored before any submission, and each row is submitted by `Launcher`, which submits the run of
an id at most once. So however this program ends, the next one finds the submitted runs by their ids and submits the
rest; an unknown submission is resolved by a query to the cluster. Only a run that certainly has no job and never will,
because its submission never reached the cluster, gets another id and is submitted again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from llmb_tui.cluster.cluster import SchedulerError
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.clusters import Clusters
from llmb_tui.errors import LlmbError
from llmb_tui.language.states import state_label
from llmb_tui.launch.launcher import Launcher
from llmb_tui.launch.readiness import ClusterEvidence, blockers
from llmb_tui.launch.run import Run
from llmb_tui.launch.submit import withdraw
from llmb_tui.plan.plan import Plan, Problem
from llmb_tui.plan.selection import ProcedureId
from llmb_tui.request import RunRequest
from llmb_tui.suites.outcome import with_best
from llmb_tui.suites.suite import Suite, SuiteRow
from llmb_tui.suites.suite_plan import SuiteNotReadyError, request_of
from llmb_tui.suites.suite_progress import RowProgress, SuiteProgress
from llmb_tui.suites.suites import Suites
from llmb_tui.watch.logfeed import PATIENCE_S
from llmb_tui.watch.report import cancel_words
from llmb_tui.watch.runs_feed import TRANSIENT_ERRORS, RunsFeed
from llmb_tui.watch.state import ENDED, RunsChanged

OnStatus = Callable[[str], None]
_HEARS_S = 0.5
"""Interval of checking `stop`."""
_LEAVES_WITHIN_S = 120.0
"""Maximum wait for another submitting program: it notices a cancel between two rows, and one row takes this long."""
_REFUSALS = 3
"""After this number of consecutive rejections the next submission would be rejected too."""


class SuiteLockedError(LlmbError):
    """Another program on this machine is submitting the suite."""

    def __init__(self, suite: Suite) -> None:
        fix = f"`llmb-tui suite watch {suite.id}` follows it."
        super().__init__(f"Suite {suite.id} is being submitted by another program.", "", fix)


class LogFetchResult(NamedTuple):
    """Result of reading the logs of a suite's runs."""

    note: str
    """Reason why the first unreadable log could not be read; empty if all were read."""
    withheld: frozenset[tuple[str, int]]
    """(run, bytes on this machine) of each finished run whose log the cluster, although it answers, did not give
    whole."""


@dataclass
class SuiteRunner:
    """Submits and cancels suites. Thread-safe; one program submits a suite at a time."""

    suites: Suites
    launcher: Launcher
    feed: RunsFeed
    clusters: Clusters

    def submit(
        self, suite: Suite, tell: OnStatus, stop: threading.Event, prompter: Prompter | None = None
    ) -> SuiteProgress:
        """Submit every remaining row, until all are submitted or no more may be; return the suite's progress.

        All rows are checked before the first submission. `stop` ends it between two rows. If the program itself ends at
        any point, a later `submit` continues. Raises SuiteLockedError, SuiteNotReadyError, and LlmbError that does not
        pass by itself.
        """
        with self.suites.lock(suite.id) as mine:
            if not mine:
                raise SuiteLockedError(suite)
            cluster = self.clusters.cluster(suite.cluster)
            cluster.require_changes()
            cluster.connect(prompter)
            return _Submission(self, suite.id, tell, stop).submit_remaining()

    def progress(self, suite_id: str) -> SuiteProgress:
        """Current progress of a suite; its file is read again, because another program may have changed it."""
        return self.suites.progress(self.suites.load(suite_id))

    def cancel(
        self, suite: Suite, tell: OnStatus, prompter: Prompter | None = None
    ) -> tuple[SuiteProgress, tuple[str, ...]]:
        """Submit nothing more of a suite, and cancel its active runs; return its progress and the cancelled runs.

        Raises LlmbError if a cluster cannot be asked, a cancel failed, or a run may still get a job. Nothing more is
        submitted in that case either, and the cancelled runs are in the error document.
        """
        self.clusters.require_withdrawing(suite.cluster)
        self.suites.change(suite.id, lambda stored: replace(stored, cancelled=True))
        until = time.monotonic() + _LEAVES_WITHIN_S
        while time.monotonic() < until:
            with self.suites.lock(suite.id) as mine:
                if mine:
                    return self._cancel_all(suite.id, tell, prompter)
            time.sleep(_HEARS_S)
        tell("another program is still submitting a row: cancel the suite again afterwards")
        return self._cancel_all(suite.id, tell, prompter)

    def read_logs(self, suite_id: str, *, include_active: bool = False) -> LogFetchResult:
        """Read the unread logs of a suite's finished runs, or of all its runs with `include_active`.

        A log that is withheld does not delay the others; without a connection no log is requested.
        """
        first, withheld = "", set[tuple[str, int]]()
        for record in self.suites.records(self.suites.load(suite_id)).values():
            if isinstance(record, LlmbError):
                continue
            state = record.state
            ended = state.stage in ENDED
            if not record.run.job_ids or not ((ended and state.log_unread) or (include_active and not ended)):
                continue
            seen = self.feed.monitor(record.run.id).once()
            if seen.link == "lost":
                return LogFetchResult(seen.link_note, frozenset())
            if ended and seen.log_unread:
                first = first or seen.link_note
                withheld.add((record.run.id, state.log_bytes))
        return LogFetchResult(first, frozenset(withheld))

    def _cancel_all(
        self, suite_id: str, tell: OnStatus, prompter: Prompter | None
    ) -> tuple[SuiteProgress, tuple[str, ...]]:
        """Cancel all active runs, even if the scheduler gives no answer or refuses for one of them."""
        cancelled: list[str] = []
        try:
            return self._each_cancelled(suite_id, cancelled, tell, prompter), tuple(cancelled)
        except LlmbError as error:
            error.extra_fields = {"id": suite_id, "cancelled": cancelled}
            raise

    def _each_cancelled(
        self, suite_id: str, cancelled: list[str], tell: OnStatus, prompter: Prompter | None
    ) -> SuiteProgress:
        """Return the progress after cancelling; `cancelled` collects the cancelled runs, also if this raises."""
        first: LlmbError | None = None
        suite = self.suites.load(suite_id)
        records = self.suites.records(suite)
        for row in suite.rows:
            try:
                if isinstance(unreadable := records.get(row.run_id), LlmbError):
                    tell(f"{row.key}: {unreadable.what}")
                    first = first or unreadable
                elif self.launcher.runs.has(row.run_id):
                    run = self.feed.settle(row.run_id, prompter)
                    cancelled += [run.id] * self._cancel(run, row, tell, prompter)
            except SchedulerError as error:
                tell(f"{row.key}: {error.what}")
                first = first or error
        progress = self.progress(suite_id)
        if unknown := [row.planned.row.key for row in progress.rows if row.standing == "unknown"]:
            what = f"It is unknown whether these rows have jobs: {', '.join(unknown)}."
            first = first or LlmbError(
                what, "", f"`llmb-tui suite cancel {suite_id}` asks again; nothing more is submitted."
            )
        if first is not None:
            raise first
        return progress

    def _cancel(self, run: Run, row: SuiteRow, tell: OnStatus, prompter: Prompter | None) -> bool:
        """Cancel the run of a row; True if it had an unfinished job."""
        cancelled: tuple[str, ...] = ()
        if run.submission == "intended":
            run = withdraw(self.launcher.runs, self.launcher.journal, run)
            tell(f"{row.key}: {state_label(run.submission).word}")
        elif run.job_ids and run.is_active:
            cancelled = self.feed.cancel(run, prompter)
            tell(f"{row.key}: {cancel_words(run, cancelled)}")
        elif run.submission == "unknown":
            tell(f"{row.key}: it is unknown whether it has a job; `llmb-tui cancel {run.id}` asks again")
        return bool(cancelled)


class _Submission:
    """Submission of one suite, while its lock is held."""

    def __init__(self, runner: SuiteRunner, suite_id: str, tell: OnStatus, stop: threading.Event) -> None:
        self._runner = runner
        self._id = suite_id
        self._tell = tell
        self._stop = stop
        self._evidence: dict[tuple[Plan, ProcedureId], ClusterEvidence] = {}
        self._last_words = ""
        self._refusals = 0
        self._withheld: dict[tuple[str, int], float] = {}
        """Time since which a log is withheld, by its run and its bytes on this machine."""
        self._given_up = frozenset[str]()
        self._unread = ""
        """Reason why a log could not be read in the last attempt."""

    def submit_remaining(self) -> SuiteProgress:
        """Submit rows, and wait if no row may be submitted."""
        changed = threading.Event()

        def post(event: RunsChanged) -> None:
            for cluster, why in event.unreachable.items():
                self._say(f"{cluster}: {why}")
            changed.set()

        for row in self._renew_refused().rows:
            if row.error is not None:
                self._tell(f"{row.planned.row.key}: {row.error.what} It is not submitted again.")
        following = self._runner.feed.follow(post)
        try:
            while not self._stop.is_set() and not self._checked():
                self._wait(changed)
            while True:
                changed.clear()
                progress = self._progress()
                open_ = progress.count("not sent", "unknown") - progress.unreadable
                if self._stop.is_set() or progress.stopped or not open_:
                    return progress
                if not self._send_next(progress):
                    self._say(progress.words)
                    self._wait(changed)
        finally:
            following.end()

    def _progress(self) -> SuiteProgress:
        """Progress including new log data; a `tune` gets its best layout as soon as it is known."""
        suites = self._runner.suites
        look = self._runner.read_logs(self._id)
        progress = self._with_given_up(self._runner.progress(self._id), look)
        if look.note and look.note != self._unread:
            self._tell(f"{progress.plan.suite.cluster}: {look.note}")
        self._unread = look.note
        best = with_best(progress)
        last = progress.rows[-1]
        if best is None or best == last.planned.row or last.record is not None or last.error is not None:
            return progress
        words = ", ".join(f"{name} {value}" for name, value in best.selection.overrides.set_fields().items())
        self._tell(f"the fastest layout is {words or 'that of the recipe'}; its full run is next")
        updated = suites.progress(suites.change(self._id, lambda suite: suite.with_row(best)))
        return replace(updated, given_up=self._given_up)

    def _with_given_up(self, progress: SuiteProgress, look: LogFetchResult) -> SuiteProgress:
        """Give up waiting for logs that stay withheld as long as the patience of a run's monitor: they may never come.

        A log that grows is still arriving, and a broken connection proves nothing about any log.
        """
        now = time.monotonic()
        self._withheld = {log: self._withheld.get(log, now) for log in look.withheld}
        patience_over = {run_id for (run_id, _), since in self._withheld.items() if now - since >= PATIENCE_S}
        for row in progress.rows if progress.plan.suite.kind == "tune" else ():
            if row.planned.row.run_id in patience_over - self._given_up:
                self._tell(f"{row.planned.row.key}: gave up waiting for its log, which cannot be read")
        self._given_up |= patience_over
        return replace(progress, given_up=self._given_up)

    def _renew_refused(self) -> SuiteProgress:
        """Give rejected rows new runs, as the user has presumably fixed the reason. Return the earlier progress."""
        progress = self._runner.progress(self._id)
        for row in progress.rows:
            if row.standing == "refused" and not progress.plan.suite.cancelled:
                self._runner.suites.with_new_run(self._id, row.planned.row)
        return progress

    def _send_next(self, progress: SuiteProgress) -> bool:
        """Submit the next row if it may be submitted now; False if it has to wait, or if the connection failed."""
        suite = progress.plan.suite
        going = progress.count("unknown", "waiting", "running") - progress.unreadable
        row = next((row for row in progress.rows if row.standing == "not sent"), None)
        if row is None or (suite.at_most is not None and not suite.chain and going >= suite.at_most):
            return False
        if row.planned.row.of_best and progress.trying:
            return False
        if row.record is not None and row.record.run.submission == "withdrawn":
            self._tell(
                f"{row.planned.row.key}: run {row.record.run.id} never reached the cluster; the row is submitted again"
            )
            self._runner.suites.with_new_run(self._id, row.planned.row)
            return True
        dependency = _dependency(progress, row) if suite.chain else ""
        return dependency is not None and self._send(row.planned.row, self._request(row, suite, dependency))

    def _request(self, row: RowProgress, suite: Suite, dependency: str = "") -> RunRequest:
        profile = self._runner.clusters.profile(suite.cluster)
        request = request_of(row.planned.row, self._runner.launcher.catalog, profile)
        return replace(request, dependency=dependency)

    def _send(self, row: SuiteRow, request: RunRequest) -> bool:
        """Submit one row, once. False if the connection failed before anything was sent."""
        launcher = self._runner.launcher
        runs = launcher.runs
        try:
            evidence = self._evidence_of(request, launcher)
            if runs.has(row.run_id):
                run = launcher.resume(request, runs.load(row.run_id), evidence=evidence)
            else:
                run = launcher.submit(launcher.prepare(request, run_id=row.run_id), evidence)
        except LlmbError as error:
            if isinstance(error, TRANSIENT_ERRORS) or isinstance(error.__cause__, TRANSIENT_ERRORS):
                self._say(f"{row.key}: {error.what}")
                return False
            submission = runs.load(row.run_id).submission if runs.has(row.run_id) else None
            self._refusals += submission == "refused"
            if submission not in ("refused", "withdrawn") or self._refusals >= _REFUSALS:
                raise
            self._tell(f"{row.key}: {state_label(submission).word}. {error.what}")
            return True
        self._refusals = 0
        words = f"job {', '.join(run.job_ids)}" if run.job_ids else f"{state_label(run.submission).word}. {run.note}"
        self._tell(f"{row.key}: run {run.id}, {words}".rstrip())
        return True

    def _checked(self) -> bool:
        """Whether every remaining row may start; False if the connection failed.

        Checks that rows have in common are made on the cluster once. Raises SuiteNotReadyError if a row may not start.
        """
        progress = self._runner.progress(self._id)
        suite, launcher = progress.plan.suite, self._runner.launcher.with_answer_cache()
        blocked: list[tuple[SuiteRow, Problem]] = []
        try:
            for row in progress.rows if not progress.stopped else ():
                if row.standing == "not sent":
                    request = self._request(row, suite)
                    problems = blockers(request, launcher.policy, self._evidence_of(request, launcher))
                    blocked += [(row.planned.row, problem) for problem in problems]
        except TRANSIENT_ERRORS as error:
            self._say(error.what)
            return False
        if blocked:
            raise SuiteNotReadyError(suite, blocked)
        return True

    def _evidence_of(self, request: RunRequest, launcher: Launcher) -> ClusterEvidence:
        """Evidence of the cluster for such a request, gathered once."""
        key = (request.plan, request.procedure)
        if key not in self._evidence:
            selection = request.plan.selection
            self._say(f"checking {request.profile.name} for {selection.workload} {selection.size} on {selection.scale}")
            self._evidence[key] = launcher.evidence(request)
        return self._evidence[key]

    def _wait(self, changed: threading.Event) -> None:
        """Wait until a run has changed, or until it is time to ask again."""
        remaining_s = self._runner.feed.timing.settle_every_s
        while remaining_s > 0 and not self._stop.is_set() and not changed.wait(min(_HEARS_S, remaining_s)):
            remaining_s -= _HEARS_S

    def _say(self, words: str) -> None:
        """Report a message, unless it was the last one reported."""
        if words != self._last_words:
            self._last_words = words
            self._tell(words)


def _dependency(progress: SuiteProgress, row: RowProgress) -> str | None:
    """Sbatch's dependency for a row; empty if there is none, None if it is not known yet.

    It is the last active job of the row's place, wherever its row is, because rejected rows are submitted later.
    """
    suite = progress.plan.suite
    places = suite.at_a_time or 1
    lane = progress.rows[progress.rows.index(row) % places :: places]
    if any(entry.standing == "unknown" and entry.error is None for entry in lane):
        return None
    runs = [entry.record.run for entry in lane if entry.record is not None]
    going = [
        (run.sent_at or 0.0, position, run.job_ids)
        for position, run in enumerate(runs)
        if run.is_active and run.job_ids
    ]
    if not going:
        return ""
    return f"{'afterok' if suite.stop_after == 1 else 'afterany'}:{':'.join(max(going)[-1])}"
