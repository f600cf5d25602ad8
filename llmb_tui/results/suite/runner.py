"""`SuiteRunner`: submits each row of a suite at most once, and goes on where an earlier program stopped.

The ids of all runs are stored before anything is sent, and each row is submitted by `Launcher`, which sends the run of
an id at most once. So whatever ends this program, the next one finds by the ids what was sent, and sends the rest; what
is unknown is settled by a look at the cluster. Only a run that certainly has no job and never will, because its
submission never reached the cluster, gets another id and is sent again.

A screen calls `submit` in a thread, with a `tell` that posts the words, and an event that ends it between two rows.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.clusters import Clusters
from llmb_tui.errors import Trouble
from llmb_tui.launch.launcher import Launcher
from llmb_tui.launch.readiness import ClusterEvidence, blockers
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import Runs
from llmb_tui.launch.submit import withdraw
from llmb_tui.plan.plan import Plan, Problem
from llmb_tui.plan.selection import ProcedureId
from llmb_tui.request import RunRequest
from llmb_tui.results.suite.outcome import with_best
from llmb_tui.results.suite.suite import Suite, SuiteRow
from llmb_tui.results.suite.suite_plan import request_of
from llmb_tui.results.suite.suite_progress import RowProgress, SuiteProgress
from llmb_tui.results.suite.suites import Suites
from llmb_tui.store.journal import Journal
from llmb_tui.text import plural
from llmb_tui.watch.run_records import RunsChanged
from llmb_tui.watch.runs_feed import LINE_TROUBLE, RunsFeed
from llmb_tui.watch.state import ENDED

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


class SuiteNotReady(Trouble):
    """Rows may not start, so nothing is sent. Exit code 2 where checks of the cluster itself failed, else 1."""

    def __init__(self, suite: Suite, against: list[tuple[SuiteRow, Problem]]) -> None:
        rows: dict[Problem, list[str]] = {}
        for row, problem in against:
            rows.setdefault(problem, []).append(row.key)
        lines = [f"{', '.join(keys)}: {problem.reason}" for problem, keys in rows.items()]
        fixes = dict.fromkeys(problem.fix for problem in rows if problem.fix)
        count = len({row.key for row, _ in against})
        what = f"{suite.name} is not submitted: {count} of {plural(len(suite.rows), 'run')} cannot start."
        code = 2 if any(problem.field == "cluster" for problem in rows) else 1
        super().__init__(what, "\n".join(lines), "\n".join(fixes), exit_code=code)


@dataclass
class SuiteRunner:
    """What all suites have in common. Thread-safe; one program submits a suite at a time."""

    suites: Suites
    launcher: Launcher
    feed: RunsFeed
    clusters: Clusters
    catalog: Catalog
    runs: Runs
    journal: Journal

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

    def cancel(self, suite: Suite, tell: Tell, prompter: Prompter | None = None) -> SuiteProgress:
        """Send nothing more of it, and cancel what goes on.

        Raises Trouble where a cluster cannot be asked: nothing more is sent all the same.
        """
        self.clusters.cluster(suite.cluster).require_changes()
        self.suites.change(suite.id, lambda one: replace(one, cancelled=True))
        until = time.monotonic() + _LEAVES_WITHIN_S
        while time.monotonic() < until:
            with self.suites.lock(suite.id) as mine:
                if mine:
                    return self._cancel_all(suite.id, tell, prompter)
            time.sleep(_HEARS_S)
        tell("another program still submits a row of it: cancel it again when that is over")
        return self._cancel_all(suite.id, tell, prompter)

    def look(self, suite: Suite, prompter: Prompter | None = None, *, going_too: bool = False) -> str:
        """Read what is still unread of the logs of runs that have ended, `going_too` those of the others.

        Why that was not possible, in a sentence; empty where it was.
        """
        for record in self.suites.records(suite).values():
            state = record.state
            ended = state.stage in ENDED
            if record.run.job_ids and ((ended and state.log_unread) or (going_too and not ended)):
                seen = self.feed.monitor(record.run.id).once(prompter)
                if seen.link == "lost":
                    return seen.link_note
        return ""

    def _cancel_all(self, suite_id: str, tell: Tell, prompter: Prompter | None) -> SuiteProgress:
        suite = self.suites.load(suite_id)
        for row in suite.rows:
            if self.runs.has(row.run_id):
                self._cancel(self.runs.load(row.run_id), row, tell, prompter)
        return self.suites.progress(suite)

    def _cancel(self, run: Run, row: SuiteRow, tell: Tell, prompter: Prompter | None) -> None:
        run = self.feed.settle(run.id, prompter)
        if run.submission == "intended":
            run = withdraw(self.runs, self.journal, run)
            tell(f"{row.key}: {run.submission}")
        elif run.job_ids and run.going:
            cancelled = self.feed.cancel(run, prompter)
            tell(f"{row.key}: {run.words.scheduler} was asked to cancel {run.words.named(cancelled)}")
        elif run.submission == "unknown":
            tell(f"{row.key}: it is not known yet whether it has a job; `llmb-tui cancel {run.id}` asks again")


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

    def go_on(self) -> SuiteProgress:
        """Send, and wait where that is all that can be done."""
        changed = threading.Event()

        def post(event: RunsChanged) -> None:
            for cluster, why in event.silent.items():
                self._say(f"{cluster}: {why}")
            changed.set()

        self._send_refused_again()
        following = self._runner.feed.follow(post)
        try:
            while not self._stop.is_set() and not self._checked():
                self._wait(changed)
            while True:
                changed.clear()
                progress = self._progress()
                if (
                    self._stop.is_set()
                    or progress.stopped
                    or progress.over
                    or not progress.count("not sent", "unknown")
                ):
                    return progress
                if not self._send_next(progress):
                    self._say(progress.words)
                    self._wait(changed)
        finally:
            following.end()

    def _progress(self) -> SuiteProgress:
        """As it now stands; it is read anew, for another program may have cancelled it."""
        suite = self._runner.suites.load(self._id)
        self._runner.look(suite)
        progress = self._runner.suites.progress(suite)
        if (best := with_best(suite, progress)) is not None and best != suite:
            last = progress.rows[-1]
            if last.record is None:
                row = best.rows[-1]
                best = self._runner.suites.change(self._id, lambda one: one.with_row(row))
                words = ", ".join(f"{name} {value}" for name, value in row.selection.overrides.set_fields().items())
                self._tell(f"the fastest layout is {words or 'that of the recipe'}; now its full run")
                return self._runner.suites.progress(best)
        return progress

    def _send_refused_again(self) -> None:
        """Who submits a suite again has mended what it was refused for."""
        progress = self._runner.suites.progress(self._runner.suites.load(self._id))
        for row in progress.rows:
            if row.standing == "refused" and not progress.plan.suite.cancelled:
                self._runner.suites.with_new_run(self._id, row.planned.row)

    def _send_next(self, progress: SuiteProgress) -> bool:
        """Send the next row, if one may be sent now; False where it has to wait, or the line is broken."""
        suite = progress.plan.suite
        going = progress.count("unknown", "waiting", "running")
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
        return dependency is not None and self._send(row.planned.row, dependency)

    def _send(self, row: SuiteRow, dependency: str) -> bool:
        """Send one row, once. False where the line broke before anything was sent."""
        runner, profile = self._runner, self._runner.clusters.profile(self._runner.suites.load(self._id).cluster)
        request = replace(request_of(row, runner.catalog, profile), dependency=dependency)
        stored = runner.runs.load(row.run_id) if runner.runs.has(row.run_id) else None
        try:
            if stored is not None:
                run = runner.launcher.resume(request, stored, evidence=self._evidence_of(request))
            else:
                prepared = runner.launcher.prepare(request, run_id=row.run_id)
                run = runner.launcher.submit(prepared, self._evidence_of(request))
        except Trouble as trouble:
            if _passes(trouble):
                self._say(f"{row.key}: {trouble.what}")
                return False
            now = runner.runs.load(row.run_id).submission if runner.runs.has(row.run_id) else None
            self._refusals += now == "refused"
            if now not in ("refused", "withdrawn") or self._refusals >= _REFUSALS:
                raise
            self._tell(f"{row.key}: {now}. {trouble.what}")
            return True
        self._refusals = 0
        words = f"job {', '.join(run.job_ids)}" if run.job_ids else f"{run.submission}. {run.note}"
        self._tell(f"{row.key}: run {run.id}, {words}".rstrip())
        return True

    def _checked(self) -> bool:
        """True if every row that is still to be sent may start; False where the line broke.

        Raises SuiteNotReady where one may not.
        """
        try:
            self._check()
        except LINE_TROUBLE as trouble:
            self._say(trouble.what)
            return False
        return True

    def _check(self) -> None:
        progress = self._runner.suites.progress(self._runner.suites.load(self._id))
        suite = progress.plan.suite
        profile = self._runner.clusters.profile(suite.cluster)
        to_send = [one.planned.row for one in progress.rows if one.standing == "not sent"]
        against: list[tuple[SuiteRow, Problem]] = []
        for row in to_send if not progress.stopped else ():
            request = request_of(row, self._runner.catalog, profile)
            found = blockers(request, self._runner.launcher.policy, self._evidence_of(request))
            against += [(row, problem) for problem in found]
        if against:
            raise SuiteNotReady(suite, against)

    def _evidence_of(self, request: RunRequest) -> ClusterEvidence:
        """What was seen of the cluster for such a request, looked for once."""
        key = (request.plan, request.procedure)
        if key not in self._evidence:
            selection = request.plan.selection
            self._say(f"checking {request.profile.name} for {selection.workload} {selection.size} on {selection.scale}")
            launcher = self._runner.launcher
            self._evidence[key] = ClusterEvidence(launcher.preflight(request), launcher.installer(request).probe())
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
    """Sbatch's words for what the row waits for; empty: nothing. None: that is not known yet."""
    suite = progress.plan.suite
    lanes = suite.at_most or 1
    at = progress.rows.index(row)
    for before in reversed(progress.rows[at % lanes : at : lanes]):
        if before.standing == "unknown":
            return None
        if before.record is not None and before.record.run.going and before.record.run.job_ids:
            how = "afterok" if suite.stop_after == 1 else "afterany"
            return f"{how}:{':'.join(before.record.run.job_ids)}"
    return ""


def _passes(trouble: Trouble) -> bool:
    """True for a broken line, or a Slurm that does not answer: it is tried again."""
    return isinstance(trouble, LINE_TROUBLE) or isinstance(trouble.__cause__, LINE_TROUBLE)
