"""`SuiteWatchScreen`: a submitted suite: the state of each run, and a summary of all runs."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import getters
from textual.binding import Binding, BindingType
from textual.widget import Widget

from llmb_tui.answers.run_row import RunRow
from llmb_tui.errors import LlmbError
from llmb_tui.language.text import plural
from llmb_tui.suites.draft_plan import names
from llmb_tui.suites.suite_file import file_name
from llmb_tui.suites.suite_progress import OVER, RowProgress, SuiteProgress, log_to_read, progress_of
from llmb_tui.ui.background import background, errors_shown, run_detached, run_in_thread
from llmb_tui.ui.clipboard import copy
from llmb_tui.ui.dialogs import ConfirmDialog, Failure
from llmb_tui.ui.screens.runs_screen import RunsScreen
from llmb_tui.ui.screens.suite_dialogs import capacity
from llmb_tui.ui.text import MUTED, Part, line, lines, notify
from llmb_tui.ui.widgets.keyed_table import KeyedTable
from llmb_tui.ui.widgets.status_bar import notice
from llmb_tui.ui.widgets.suite_texts import progress_columns, progress_sums, progress_things
from llmb_tui.ui.widgets.texts import Paragraphs, Scroller

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from llmb_tui.cluster.profile import ClusterProfile
    from llmb_tui.cluster.prompter import Prompter
    from llmb_tui.services import Services
    from llmb_tui.suites.submissions import Submissions, SuiteSubmissionProgress
    from llmb_tui.suites.suite import Suite
    from llmb_tui.suites.suite_plan import SuitePlan
    from llmb_tui.watch.state import RunRecord, RunsChanged


class SuiteRows(KeyedTable):
    """The runs of a suite."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select_cursor", "Open", id="suite.open", tooltip="Open the run")
    ]


class SuiteWatchScreen(RunsScreen[RunRow]):
    """Shows one suite from the feed of runs. Its submission does not depend on this screen."""

    HELP = """A suite and the state of each run.
Remaining runs are submitted within the limits of the suite, also while you use other screens.
If you quit before that, open the suite again and press s to submit the remaining runs.
A verdict compares a run with the step time that was expected before it, by the recipe's rule."""
    CSS_PATH = "suite.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "resume", "Resume", id="suite.go-on", tooltip="Submit the runs that are not submitted yet"),
        Binding("c", "cancel", "Cancel…", id="suite.cancel", tooltip="Cancel active runs and submit no more"),
        Binding("r", "report", "Report", id="suite.report", tooltip="Show the report of the suite"),
        Binding("e", "export", "Export…", id="suite.export", tooltip="Export the runs as one file with all evidence"),
        Binding("y", "copy", "Copy", id="suite.copy", tooltip="Copy the command that watches the suite"),
        Binding("q,escape", "leave", "Back", id="suite.back", tooltip="Back; the suite continues"),
    ]

    TABLE = SuiteRows

    sums = getters.query_one("#watch-sums", Paragraphs)

    def __init__(self, services: Services, prompter: Prompter, suite_id: str) -> None:
        super().__init__(services, prompter)
        self._suite_id = suite_id
        self._profile: ClusterProfile | None = None
        self._submissions: Submissions | None = None
        """Submissions of this program; None until the modules that they need are imported, which takes long."""
        self._planned: SuitePlan | None = None
        self._records: dict[str, RunRecord | LlmbError] = {}
        """Newest records from the feed by run id, also of runs outside the suite."""
        self._silent: Mapping[str, str] = {}
        self._has_all_runs = False
        """True once the feed has sent each run."""
        self._usable_nodes: int | None = None
        """Nodes that were free or held by the suite when the cluster was queried."""
        self._unsubscribe: Callable[[], None] | None = None
        self._problems: dict[str, str] = {}
        """Current problems by their source, `feed` or `log`."""
        self._is_copying_logs = False
        self._columns = progress_columns()

    def compose_below(self) -> Iterable[Widget]:
        return (Scroller(Paragraphs(id="watch-sums"), id="watch-sums-box"),)

    def on_mount(self) -> None:
        self._start()

    @property
    def progress(self) -> SuiteProgress | None:
        """Progress of the suite; None until it is read."""
        if self._planned is None:
            return None
        now = progress_of(self._planned, self._records)
        if self._usable_nodes is None:
            return now
        return replace(now, free_nodes=max(self._usable_nodes - now.held_nodes, 0))

    @property
    def _sending(self) -> SuiteSubmissionProgress | None:
        """Submission of the suite by this program, if there is one."""
        return self._submissions.of(self._suite_id) if self._submissions is not None else None

    @property
    def row(self) -> RowProgress | None:
        progress, chosen = self.progress, self.table.cursor_key
        return next((row for row in progress.rows if row.planned.row.key == chosen), None) if progress else None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        progress = self.progress
        if action in ("report", "export"):
            return progress is not None and progress.count("not sent") < len(progress.rows)
        if action in ("resume", "cancel") and (progress is None or not progress.unfinished):
            return False
        sending = self._sending
        if action == "resume" and progress and (not progress.to_send or (sending and sending.is_active)):
            return False
        return super().check_action(action, parameters)

    def disabled_reason(self, action: str) -> str:
        if action in ("resume", "cancel") and self._services.policy.is_read_only(self._profile):
            return "The cluster of this suite is read-only: runs cannot be submitted or cancelled."
        return ""

    # Actions of the user.

    def open(self, thing: RunRow) -> None:  # noqa: ARG002 - the run may be newer than the row
        row = self.row
        if row is not None and row.record is not None:
            self.open_run(row.record.run.id)
        elif row is not None and row.error is not None:
            self.app.push_screen(Failure(row.error))
        elif row is not None:
            notify(self.app, "This run is not submitted yet.")

    def action_copy(self) -> None:
        command = f"llmb-tui suite watch {self._suite_id}"
        copy(self.app, command, command)

    @background(group="report", exclusive=True)
    async def action_report(self) -> None:
        await self.open_report([self._suite_id], time.time)

    @background(group="export", exclusive=True)
    async def action_export(self) -> None:
        from llmb_tui.ui.dialogs import ExportDialog
        from llmb_tui.ui.screens.result_view import ResultView, export_runs

        if (progress := self.progress) is None:
            return
        suite = progress.plan.suite
        ids = [row.record.run.id for row in progress.rows if row.record is not None]
        target = await self.app.push_screen_wait(ExportDialog(len(ids), f"{file_name(suite.name)}.tar.zst"))
        if target is not None:
            title = f"exporting {plural(len(ids), 'run')}"
            work = partial(export_runs, self._services, ids, target, [suite])
            self.app.push_screen(ResultView(title, work, is_export=True))

    def action_resume(self) -> None:
        if self._planned is not None and self._submissions is not None:
            self._submissions.begin(self._planned.suite, self._prompter)
            self._show()

    @background(group="cancel", exclusive=True)
    async def action_cancel(self) -> None:
        if (progress := self.progress) is None:
            return
        suite = progress.plan.suite
        active, unsent = progress.count("waiting", "running", "unknown"), progress.count("not sent", "refused")
        question = lines(
            line("Cancel ", (suite.name, "bold"), f" on {suite.cluster}?"),
            line(f"It has {plural(active, 'active run')} and {plural(unsent, 'run')} not submitted."),
            line(("Finished runs are kept.", MUTED)),
        )
        if await self.app.push_screen_wait(ConfirmDialog("Cancel", question, "Cancel suite", "Keep suite")):
            run_detached(self.app, self._cancel(suite))

    async def _cancel(self, suite: Suite) -> None:
        with errors_shown(self.app):
            _, cancelled = await run_in_thread(
                self._services.suite_runner.cancel, suite, lambda _: None, self._prompter
            )
            count = f"{plural(len(cancelled), 'run')} cancelled" if cancelled else "no run was active"
            notify(self.app, f"{suite.name}: {count}, and no more will be submitted.")
        if self.is_attached:
            self._reread()

    # Data.

    @background(group="start")
    async def _start(self) -> None:
        try:
            self._profile, self._submissions = await run_in_thread(self._find)
            await self._read()
        except LlmbError as error:
            self.app.push_screen(Failure(error), lambda _: self.dismiss(None))
            return
        if self._profile is None:
            return
        try:
            self._usable_nodes = await run_in_thread(self._nodes_for, self._profile)
        except LlmbError:  # then only the duration in sequence is shown
            return
        self._show()

    def _nodes_for(self, profile: ClusterProfile) -> int | None:
        """Free nodes and those that the suite's runs hold; blocks. The feed may not have read these yet."""
        free = capacity(self._services, profile).free
        suites = self._services.suites
        return None if free is None else free + suites.progress(suites.load(self._suite_id)).held_nodes

    def _find(self) -> tuple[ClusterProfile | None, Submissions]:
        """Profile of the suite's cluster, None if it is no longer saved, and the submissions; blocks."""
        cluster = self._services.suites.load(self._suite_id).cluster
        profile = next((saved for saved in self._services.clusters.profiles() if saved.name == cluster), None)
        return profile, self._services.submissions

    async def _read(self) -> None:
        """Read the suite, its plan and its runs; records from the feed are newer. Raises LlmbError."""

        def read() -> tuple[SuitePlan, dict[str, RunRecord | LlmbError]]:
            suites = self._services.suites
            suite = suites.load(self._suite_id)
            return suites.plan(suite), suites.records(suite)

        self._planned, records = await run_in_thread(read)
        self._records = records | self._records
        self._show()
        self._show_silent_cluster()
        self._begin_reading()

    @background(group="read", exclusive=True)
    async def _reread(self) -> None:
        """Read the suite again: a row may have a new run id, and the last run of a `tune` a layout."""
        await self._read()

    async def prepare(self) -> None:
        submissions = await run_in_thread(lambda: self._services.submissions)
        if self._unsubscribe is None:
            self._unsubscribe = submissions.follow(lambda suite_id: self.call_later(self._show_submission, suite_id))

    def _begin_reading(self) -> None:
        if not self._is_copying_logs and self._following is not None:
            self._is_copying_logs = True
            self._read_logs()

    def unfollow(self) -> None:
        super().unfollow()
        self.workers.cancel_group(self, "logs")
        self._is_copying_logs = False
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None

    def show_changes(self, event: RunsChanged) -> None:
        self.call_later(self._take_changes, event)

    def _take_changes(self, event: RunsChanged) -> None:
        """Show changed runs. A run that was not known may be a row's new run: then read the suite again."""
        changed = {record.run.id: record for record in event.changed}
        new = self._has_all_runs and changed.keys() - self._records.keys()
        self._records |= changed
        self._silent = event.unreachable
        self._has_all_runs = True
        if self._planned is None:
            return
        mine = changed.keys() & set(self._planned.suite.run_ids)
        if new and not new <= mine:
            self._reread()
        self._show_silent_cluster()
        if mine:
            self._show()
            self._begin_reading()

    def _show_submission(self, suite_id: str) -> None:
        """Show a change of the suite's submission."""
        sending = self._sending
        if suite_id != self._suite_id or sending is None:
            return
        self._reread()
        if sending.error is not None:
            self.app.push_screen(Failure(sending.error))

    @background(group="logs", exclusive=True)
    async def _read_logs(self) -> None:
        """Copy the logs of the suite, one run at a time, until all are complete.

        The feed reports the new steps.
        """
        last, ended = "", set[str]()
        while (progress := self.progress) is not None and (run_id := log_to_read(progress, last, ended)):
            last = run_id
            ended |= {row.record.run.id for row in progress.rows if row.record and row.standing in OVER} & {run_id}
            try:
                self._show_problem("log", await run_in_thread(self._read_log, run_id))
            except LlmbError as error:
                self._show_problem("log", error.what)
            await asyncio.sleep(self._services.timing.read_every_s)
        self._is_copying_logs = False

    def _read_log(self, run_id: str) -> str:
        """Copy the log of a run once; blocks. Returns the reason if that was not possible, otherwise an empty text."""
        state = self._services.feed.monitor(run_id).once()
        return state.link_note if state.link == "lost" else ""

    # Display.

    @property
    def title_parts(self) -> Sequence[Part]:
        if self._planned is None:
            return [("Suite", "bold")]
        suite = self._planned.suite
        shared, _ = names(suite.rows)
        return [("Suite", "bold"), f"   {suite.name}", (f"   {suite.id} on {suite.cluster}   {shared}", MUTED)]

    @property
    def notice(self) -> str:
        return notice(self._profile, self._services.policy.is_read_only(self._profile)) if self._profile else ""

    def _show(self) -> None:
        if (progress := self.progress) is None:
            return
        _, labels = names(progress.plan.suite.rows)
        self.show_things(self._columns, progress_things(progress, labels))
        self.sums.parts = progress_sums(progress, self._sending)
        self.refresh_bindings()

    def _show_silent_cluster(self) -> None:
        cluster = self._planned.suite.cluster if self._planned else ""
        silent = self._silent.get(cluster, "")
        self._show_problem("feed", f"Jobs on {cluster} could not be read: {silent}" if silent else "")

    def _show_problem(self, source: str, problem: str) -> None:
        """Show the newest problem of each source above the rows; an empty text removes it."""
        self._problems[source] = problem
        problems = "  ".join(dict.fromkeys(filter(None, self._problems.values())))
        self.show_status((f"! {problems}" if problems else "", "$text-warning"))
