"""`SuiteWatchScreen`: a suite that was submitted: how each of its runs stands, and how all of them do."""

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
from llmb_tui.ui.dialogs import Confirm, Failure
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
    """It shows one suite as the feed of runs says. Its submission goes on whether it is shown or not."""

    HELP = """A suite, and how each of its runs stands. What is not sent yet is sent as the suite allows, also while you
look at something else; what this program has not sent when it ends is sent when you open the suite again and press s.
The verdict of a run is the recipe's rule against the figure that was expected of it before."""
    CSS_PATH = "suite.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "resume", "Go on", id="suite.go-on", tooltip="Submit the runs that are not submitted yet"),
        Binding("c", "cancel", "Cancel…", id="suite.cancel", tooltip="Send nothing more, and cancel what goes on"),
        Binding("r", "report", "Report", id="suite.report", tooltip="The report of the suite, to read and to copy"),
        Binding("e", "export", "Export…", id="suite.export", tooltip="Its runs as one file with all evidence"),
        Binding("y", "copy", "Copy", id="suite.copy", tooltip="Copy the command that watches it"),
        Binding("q,escape", "leave", "Back", id="suite.back", tooltip="Back; the suite continues"),
    ]

    TABLE = SuiteRows

    sums = getters.query_one("#watch-sums", Paragraphs)

    def __init__(self, services: Services, prompter: Prompter, suite_id: str) -> None:
        super().__init__(services, prompter)
        self._suite_id = suite_id
        self._profile: ClusterProfile | None = None
        self._submissions: Submissions | None = None
        """Those of the program, once they are there: what they need takes long to import."""
        self._planned: SuitePlan | None = None
        self._records: dict[str, RunRecord | LlmbError] = {}
        """Of these runs and of others, as the feed last told."""
        self._silent: Mapping[str, str] = {}
        self._told = False
        """The feed has told of every run that there was."""
        self._share: int | None = None
        """Nodes that were free or the suite's own when the cluster was asked."""
        self._end_hearing: Callable[[], None] | None = None
        self._missing: dict[str, str] = {}
        """What cannot be learned at the moment, by who would."""
        self._reading = False
        """Logs are being copied."""
        self._columns = progress_columns()

    def below(self) -> Iterable[Widget]:
        return (Scroller(Paragraphs(id="watch-sums"), id="watch-sums-box"),)

    def on_mount(self) -> None:
        self._start()

    @property
    def progress(self) -> SuiteProgress | None:
        """How it stands; None until it is read."""
        if self._planned is None:
            return None
        now = progress_of(self._planned, self._records)
        return now if self._share is None else replace(now, free_nodes=max(self._share - now.held_nodes, 0))

    @property
    def _sending(self) -> SuiteSubmissionProgress | None:
        """How its submission stands, where this program has sent it."""
        return self._submissions.of(self._suite_id) if self._submissions is not None else None

    @property
    def row(self) -> RowProgress | None:
        progress, chosen = self.progress, self.table.chosen
        return next((row for row in progress.rows if row.planned.row.key == chosen), None) if progress else None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        progress = self.progress
        if action in ("report", "export"):
            return progress is not None and progress.count("not sent") < len(progress.rows)
        if action in ("resume", "cancel") and (progress is None or not progress.unfinished):
            return False
        sending = self._sending
        if action == "resume" and progress and (not progress.to_send or (sending and sending.goes_on)):
            return False
        return super().check_action(action, parameters)

    def why_not(self, action: str) -> str:
        if action in ("resume", "cancel") and self._services.policy.is_read_only(self._profile):
            return "The cluster of this suite is read-only: nothing is submitted or cancelled there."
        return ""

    # What the person does.

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
            self.app.push_screen(ResultView(title, work, agreed=True))

    def action_resume(self) -> None:
        if self._planned is not None and self._submissions is not None:
            self._submissions.begin(self._planned.suite, self._prompter)
            self._show()

    @background(group="cancel", exclusive=True)
    async def action_cancel(self) -> None:
        if (progress := self.progress) is None:
            return
        suite = progress.plan.suite
        going, unsent = progress.count("waiting", "running", "unknown"), progress.count("not sent", "refused")
        question = lines(
            line("Cancel ", (suite.name, "bold"), f" on {suite.cluster}?"),
            line(f"{plural(going, 'run')} that wait or run, and {plural(unsent, 'run')} not submitted yet."),
            line(("What has ended stays.", MUTED)),
        )
        if await self.app.push_screen_wait(Confirm("Cancel", question, "Cancel the suite", "Keep it")):
            run_detached(self.app, self._cancel(suite))

    async def _cancel(self, suite: Suite) -> None:
        with errors_shown(self.app):
            _, cancelled = await run_in_thread(
                self._services.suite_runner.cancel, suite, lambda _: None, self._prompter
            )
            ended = f"{plural(len(cancelled), 'run')} {'was' if len(cancelled) == 1 else 'were'} cancelled"
            notify(self.app, f"{suite.name}: nothing more is sent, and {ended if cancelled else 'nothing went on'}.")
        if self.is_attached:
            self._reread()

    # What is learned.

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
            self._share = await run_in_thread(self._nodes_for, self._profile)
        except LlmbError:  # it is only said how long it takes one after the other
            return
        self._show()

    def _nodes_for(self, profile: ClusterProfile) -> int | None:
        """In a thread: free nodes with those that its runs hold, by all that is here: the feed may not have read it."""
        free = capacity(self._services, profile).free
        suites = self._services.suites
        return None if free is None else free + suites.progress(suites.load(self._suite_id)).held_nodes

    def _find(self) -> tuple[ClusterProfile | None, Submissions]:
        """In a thread. Without a profile the cluster is saved no more."""
        cluster = self._services.suites.load(self._suite_id).cluster
        profile = next((one for one in self._services.clusters.profiles() if one.name == cluster), None)
        return profile, self._services.submissions

    async def _read(self) -> None:
        """Read the suite, its plan and its runs' records; newer changes of the feed win. Raises LlmbError."""

        def read() -> tuple[SuitePlan, dict[str, RunRecord | LlmbError]]:
            suites = self._services.suites
            suite = suites.load(self._suite_id)
            return suites.plan(suite), suites.records(suite)

        self._planned, records = await run_in_thread(read)
        self._records = records | self._records
        self._show()
        self._say_silent()
        self._begin_reading()

    @background(group="read", exclusive=True)
    async def _reread(self) -> None:
        """A run that never reached its cluster has another id by now, and a `tune` the layout of its last run."""
        await self._read()

    async def prepare(self) -> None:
        submissions = await run_in_thread(lambda: self._services.submissions)
        if self._end_hearing is None:
            self._end_hearing = submissions.follow(lambda suite_id: self.call_later(self._take_words, suite_id))

    def _begin_reading(self) -> None:
        if not self._reading and self._following is not None:
            self._reading = True
            self._read_logs()

    def unfollow(self) -> None:
        super().unfollow()
        self.workers.cancel_group(self, "logs")
        self._reading = False
        if self._end_hearing is not None:
            self._end_hearing()
            self._end_hearing = None

    def show_changes(self, event: RunsChanged) -> None:
        self.call_later(self._take_changes, event)

    def _take_changes(self, event: RunsChanged) -> None:
        """One that nobody has told of may be a row's new run: the suite is read again."""
        changed = {record.run.id: record for record in event.changed}
        new = self._told and changed.keys() - self._records.keys()
        self._records |= changed
        self._silent = event.silent
        self._told = True
        if self._planned is None:
            return
        mine = changed.keys() & set(self._planned.suite.run_ids)
        if new and not new <= mine:
            self._reread()
        self._say_silent()
        if mine:
            self._show()
            self._begin_reading()

    def _take_words(self, suite_id: str) -> None:
        """The submission of a suite stands otherwise."""
        sending = self._sending
        if suite_id != self._suite_id or sending is None:
            return
        self._reread()
        if sending.error is not None:
            self.app.push_screen(Failure(sending.error))

    @background(group="logs", exclusive=True)
    async def _read_logs(self) -> None:
        """Copy what the runs write, one run at a time, however many there are; until none writes any more.

        The feed tells what was read as it tells every change.
        """
        last, ended = "", set[str]()
        while (progress := self.progress) is not None and (run_id := log_to_read(progress, last, ended)):
            last = run_id
            ended |= {row.record.run.id for row in progress.rows if row.record and row.standing in OVER} & {run_id}
            try:
                self._say("log", await run_in_thread(self._read_log, run_id))
            except LlmbError as error:
                self._say("log", error.what)
            await asyncio.sleep(self._services.timing.read_every_s)
        self._reading = False

    def _read_log(self, run_id: str) -> str:
        """In a thread. Why that was not possible; empty where it was."""
        state = self._services.feed.monitor(run_id).once()
        return state.link_note if state.link == "lost" else ""

    # What is shown.

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
        self.take(self._columns, progress_things(progress, labels))
        self.sums.parts = progress_sums(progress, self._sending)
        self.refresh_bindings()

    def _say_silent(self) -> None:
        cluster = self._planned.suite.cluster if self._planned else ""
        silent = self._silent.get(cluster, "")
        self._say("feed", f"{cluster} could not be asked: {silent}" if silent else "")

    def _say(self, of: str, words: str) -> None:
        """Say above the rows what cannot be learned at the moment; of each source the last."""
        self._missing[of] = words
        said = "  ".join(dict.fromkeys(filter(None, self._missing.values())))
        self.show_status((f"! {said}" if said else "", "$text-warning"))
