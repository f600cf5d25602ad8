"""`SuiteRunner`: submits each row of a suite at most once, and goes on where an earlier program stopped.

The ids of all runs are stored before anything is sent, and each row is submitted by `Launcher`, which sends the run of
an id at most once. So whatever ends this program, the next one finds by the ids what was sent, and sends the rest; what
is unknown is settled by a look at the cluster. Only a run that certainly has no job and never will, because its
submission never reached the cluster, gets another id and is sent again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from llmb_tui.cluster.cluster import SchedulerTrouble
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.clusters import Clusters
from llmb_tui.errors import Trouble
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
from llmb_tui.suites.suite_plan import SuiteNotReady, request_of
from llmb_tui.suites.suite_progress import RowProgress, SuiteProgress
from llmb_tui.suites.suites import Suites
from llmb_tui.watch.logfeed import PATIENCE_S
from llmb_tui.watch.report import cancel_words
from llmb_tui.watch.runs_feed import LINE_TROUBLE, RunsFeed
from llmb_tui.watch.state import ENDED, RunsChanged

Tell = Callable[[str], None]
_HEARS_S = 0.5
"""How soon `stop` is heard."""
_LEAVES_WITHIN_S = 120.0
"""A program that submits sees a cancel between two rows, and one row takes this long at most."""
_REFUSALS = 3
"""After so many one after the other the next would be refused too."""


class Busy(Trouble):
    """Another program here submits the suite."""

    def __init__(self, suite: Suite) -> None:
        fix = f"`llmb-tui suite watch {suite.id}` follows it."
        super().__init__(f"Suite {suite.id} is just being submitted by another program.", "", fix)


class LogsLook(NamedTuple):
    """What came of a look at the logs of a suite."""

    note: str
    """Why the first that could not be read was not, in a sentence; empty where all were."""
    withheld: frozenset[tuple[str, int]]
    """(run, bytes that were here) of each that has ended, and whose log a cluster that answers did not give whole."""


@dataclass
class SuiteRunner:
    """What all suites have in common. Thread-safe; one program submits a suite at a time."""

    suites: Suites
    launcher: Launcher
    feed: RunsFeed
    clusters: Clusters

    def submit(
        self, suite: Suite, tell: Tell, stop: threading.Event, prompter: Prompter | None = None
    ) -> SuiteProgress:
        """Submit every row that was not yet, until all are or nothing more may be; how the suite then stands.

        All of them are checked before the first is sent. `stop` ends it between two rows; so does the end of the
        program, anywhere: `submit` goes on. Raises Busy, SuiteNotReady, and Trouble that does not pass by itself.
        """
        with self.suites.lock(suite.id) as mine:
            if not mine:
                raise Busy(suite)
            cluster = self.clusters.cluster(suite.cluster)
            cluster.require_changes()
            cluster.connect(prompter)
            return _Submission(self, suite.id, tell, stop).go_on()

    def progress(self, suite_id: str) -> SuiteProgress:
        """How a suite stands now; it is read anew, for another program may have changed it."""
        return self.suites.progress(self.suites.load(suite_id))

    def cancel(
        self, suite: Suite, tell: Tell, prompter: Prompter | None = None
    ) -> tuple[SuiteProgress, tuple[str, ...]]:
        """Send nothing more of it, and cancel what goes on; how it then stands, and the runs that were cancelled.

        Raises Trouble where a cluster cannot be asked, a cancel did not succeed, or a run may still get a job: nothing
        more is sent all the same, and the runs that were cancelled are in the Trouble's document.
        """
        self.clusters.require_withdrawing(suite.cluster)
        self.suites.change(suite.id, lambda one: replace(one, cancelled=True))
        until = time.monotonic() + _LEAVES_WITHIN_S
        while time.monotonic() < until:
            with self.suites.lock(suite.id) as mine:
                if mine:
                    return self._cancel_all(suite.id, tell, prompter)
            time.sleep(_HEARS_S)
        tell("another program still submits a row of it: cancel it again when that is over")
        return self._cancel_all(suite.id, tell, prompter)

    def read_logs(self, suite_id: str, *, going_too: bool = False) -> LogsLook:
        """Of the runs that a suite has now read what is unread of the logs of those that have ended, or of all.

        A log that is withheld holds up no other; without a line none is asked for.
        """
        first, withheld = "", set[tuple[str, int]]()
        for record in self.suites.records(self.suites.load(suite_id)).values():
            if isinstance(record, Trouble):
                continue
            state = record.state
            ended = state.stage in ENDED
            if not record.run.job_ids or not ((ended and state.log_unread) or (going_too and not ended)):
                continue
            seen = self.feed.monitor(record.run.id).once()
            if seen.link == "lost":
                return LogsLook(seen.link_note, frozenset())
            if ended and seen.log_unread:
                first = first or seen.link_note
                withheld.add((record.run.id, state.log_bytes))
        return LogsLook(first, frozenset(withheld))

    def _cancel_all(
        self, suite_id: str, tell: Tell, prompter: Prompter | None
    ) -> tuple[SuiteProgress, tuple[str, ...]]:
        """All that go on, also where the scheduler leaves it open or refuses for one of them."""
        cancelled: list[str] = []
        try:
            return self._each_cancelled(suite_id, cancelled, tell, prompter), tuple(cancelled)
        except Trouble as trouble:
            trouble.beside = {"id": suite_id, "cancelled": cancelled}
            raise

    def _each_cancelled(
        self, suite_id: str, cancelled: list[str], tell: Tell, prompter: Prompter | None
    ) -> SuiteProgress:
        """How it then stands; `cancelled` grows with each run that was, also where this raises."""
        first: Trouble | None = None
        suite = self.suites.load(suite_id)
        records = self.suites.records(suite)
        for row in suite.rows:
            try:
                if isinstance(unreadable := records.get(row.run_id), Trouble):
                    tell(f"{row.key}: {unreadable.what}")
                    first = first or unreadable
                elif self.launcher.runs.has(row.run_id):
                    run = self.feed.settle(row.run_id, prompter)
                    cancelled += [run.id] * self._cancel(run, row, tell, prompter)
            except SchedulerTrouble as trouble:
                tell(f"{row.key}: {trouble.what}")
                first = first or trouble
        progress = self.progress(suite_id)
        if unknown := [row.planned.row.key for row in progress.rows if row.standing == "unknown"]:
            what = f"It is not known yet whether there is a job of: {', '.join(unknown)}."
            first = first or Trouble(what, "", f"`llmb-tui suite cancel {suite_id}` asks again; nothing more is sent.")
        if first is not None:
            raise first
        return progress

    def _cancel(self, run: Run, row: SuiteRow, tell: Tell, prompter: Prompter | None) -> bool:
        """Cancel what a row has; True if that was a job which was not over."""
        cancelled: tuple[str, ...] = ()
        if run.submission == "intended":
            run = withdraw(self.launcher.runs, self.launcher.journal, run)
            tell(f"{row.key}: {state_label(run.submission).word}")
        elif run.job_ids and run.going:
            cancelled = self.feed.cancel(run, prompter)
            tell(f"{row.key}: {cancel_words(run, cancelled)}")
        elif run.submission == "unknown":
            tell(f"{row.key}: it is not known yet whether it has a job; `llmb-tui cancel {run.id}` asks again")
        return bool(cancelled)


class _Submission:
    """One suite on its way, while its lock is held."""

    def __init__(self, runner: SuiteRunner, suite_id: str, tell: Tell, stop: threading.Event) -> None:
        self._runner = runner
        self._id = suite_id
        self._tell = tell
        self._stop = stop
        self._evidence: dict[tuple[Plan, ProcedureId], ClusterEvidence] = {}
        self._said = ""
        self._refusals = 0
        self._withheld: dict[tuple[str, int], float] = {}
        """Since when a log is, by its run and how much of it is here."""
        self._given_up = frozenset[str]()
        self._unread = ""
        """Why a log could not be read when that was last tried."""

    def go_on(self) -> SuiteProgress:
        """Send, and wait where that is all that can be done."""
        changed = threading.Event()

        def post(event: RunsChanged) -> None:
            for cluster, why in event.silent.items():
                self._say(f"{cluster}: {why}")
            changed.set()

        for row in self._renew_refused().rows:
            if row.trouble is not None:
                self._tell(f"{row.planned.row.key}: {row.trouble.what} It is not sent again.")
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
        """How it stands, by all that its logs say; a `tune` has its best layout as soon as that is known."""
        suites = self._runner.suites
        look = self._runner.read_logs(self._id)
        progress = self._with_given_up(self._runner.progress(self._id), look)
        if look.note and look.note != self._unread:
            self._tell(f"{progress.plan.suite.cluster}: {look.note}")
        self._unread = look.note
        best = with_best(progress)
        last = progress.rows[-1]
        if best is None or best == last.planned.row or last.record is not None or last.trouble is not None:
            return progress
        words = ", ".join(f"{name} {value}" for name, value in best.selection.overrides.set_fields().items())
        self._tell(f"the fastest layout is {words or 'that of the recipe'}; now its full run")
        now = suites.progress(suites.change(self._id, lambda suite: suite.with_row(best)))
        return replace(now, given_up=self._given_up)

    def _with_given_up(self, progress: SuiteProgress, look: LogsLook) -> SuiteProgress:
        """Without waiting for logs that stay withheld for as long as who watches a run waits: they may never come.

        One that grows is on its way, and a line that breaks says nothing of any.
        """
        now = time.monotonic()
        self._withheld = {log: self._withheld.get(log, now) for log in look.withheld}
        patience_over = {run_id for (run_id, _), since in self._withheld.items() if now - since >= PATIENCE_S}
        for row in progress.rows if progress.plan.suite.kind == "tune" else ():
            if row.planned.row.run_id in patience_over - self._given_up:
                self._tell(f"{row.planned.row.key}: its log cannot be read, and is not waited for any longer")
        self._given_up |= patience_over
        return replace(progress, given_up=self._given_up)

    def _renew_refused(self) -> SuiteProgress:
        """Who submits a suite again has mended what it was refused for. How it stood before."""
        progress = self._runner.progress(self._id)
        for row in progress.rows:
            if row.standing == "refused" and not progress.plan.suite.cancelled:
                self._runner.suites.with_new_run(self._id, row.planned.row)
        return progress

    def _send_next(self, progress: SuiteProgress) -> bool:
        """Send the next row, if one may be sent now; False where it has to wait, or the line is broken."""
        suite = progress.plan.suite
        going = progress.count("unknown", "waiting", "running") - progress.unreadable
        row = next((row for row in progress.rows if row.standing == "not sent"), None)
        if row is None or (suite.at_most is not None and not suite.chain and going >= suite.at_most):
            return False
        if row.planned.row.of_best and progress.trying:
            return False
        if row.record is not None and row.record.run.submission == "withdrawn":
            self._tell(f"{row.planned.row.key}: run {row.record.run.id} never reached the cluster; it is sent again")
            self._runner.suites.with_new_run(self._id, row.planned.row)
            return True
        dependency = _dependency(progress, row) if suite.chain else ""
        return dependency is not None and self._send(row.planned.row, self._request(row, suite, dependency))

    def _request(self, row: RowProgress, suite: Suite, dependency: str = "") -> RunRequest:
        profile = self._runner.clusters.profile(suite.cluster)
        request = request_of(row.planned.row, self._runner.launcher.catalog, profile)
        return replace(request, dependency=dependency)

    def _send(self, row: SuiteRow, request: RunRequest) -> bool:
        """Send one row, once. False where the line broke before anything was sent."""
        launcher = self._runner.launcher
        runs = launcher.runs
        try:
            evidence = self._evidence_of(request, launcher)
            if runs.has(row.run_id):
                run = launcher.resume(request, runs.load(row.run_id), evidence=evidence)
            else:
                run = launcher.submit(launcher.prepare(request, run_id=row.run_id), evidence)
        except Trouble as trouble:
            if isinstance(trouble, LINE_TROUBLE) or isinstance(trouble.__cause__, LINE_TROUBLE):
                self._say(f"{row.key}: {trouble.what}")
                return False
            now = runs.load(row.run_id).submission if runs.has(row.run_id) else None
            self._refusals += now == "refused"
            if now not in ("refused", "withdrawn") or self._refusals >= _REFUSALS:
                raise
            self._tell(f"{row.key}: {state_label(now).word}. {trouble.what}")
            return True
        self._refusals = 0
        words = f"job {', '.join(run.job_ids)}" if run.job_ids else f"{state_label(run.submission).word}. {run.note}"
        self._tell(f"{row.key}: run {run.id}, {words}".rstrip())
        return True

    def _checked(self) -> bool:
        """True if every row that is still to be sent may start; False where the line broke.

        What they have in common is asked of the cluster once. Raises SuiteNotReady where one may not start.
        """
        progress = self._runner.progress(self._id)
        suite, launcher = progress.plan.suite, self._runner.launcher.asking_once()
        against: list[tuple[SuiteRow, Problem]] = []
        try:
            for row in progress.rows if not progress.stopped else ():
                if row.standing == "not sent":
                    request = self._request(row, suite)
                    found = blockers(request, launcher.policy, self._evidence_of(request, launcher))
                    against += [(row.planned.row, problem) for problem in found]
        except LINE_TROUBLE as trouble:
            self._say(trouble.what)
            return False
        if against:
            raise SuiteNotReady(suite, against)
        return True

    def _evidence_of(self, request: RunRequest, launcher: Launcher) -> ClusterEvidence:
        """What was seen of the cluster for such a request, looked for once."""
        key = (request.plan, request.procedure)
        if key not in self._evidence:
            selection = request.plan.selection
            self._say(f"checking {request.profile.name} for {selection.workload} {selection.size} on {selection.scale}")
            self._evidence[key] = launcher.evidence(request)
        return self._evidence[key]

    def _wait(self, changed: threading.Event) -> None:
        """Wait until a run stands otherwise, or for as long as one waits to ask again."""
        left = self._runner.feed.timing.settle_every_s
        while left > 0 and not self._stop.is_set() and not changed.wait(min(_HEARS_S, left)):
            left -= _HEARS_S

    def _say(self, words: str) -> None:
        """Tell it, unless that was the last that was told."""
        if words != self._said:
            self._said = words
            self._tell(words)


def _dependency(progress: SuiteProgress, row: RowProgress) -> str | None:
    """Sbatch's words for what the row waits for; empty: nothing. None: that is not known yet.

    That is the last job that its place got and that goes on, wherever its row stands: what was refused is sent later.
    """
    suite = progress.plan.suite
    places = suite.at_a_time or 1
    lane = progress.rows[progress.rows.index(row) % places :: places]
    if any(one.standing == "unknown" and one.trouble is None for one in lane):
        return None
    runs = [one.record.run for one in lane if one.record is not None]
    going = [(run.sent_at or 0.0, at, run.job_ids) for at, run in enumerate(runs) if run.going and run.job_ids]
    if not going:
        return ""
    return f"{'afterok' if suite.stop_after == 1 else 'afterany'}:{':'.join(max(going)[-1])}"
