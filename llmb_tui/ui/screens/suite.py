"""`SuiteScreen`: plan a suite before its submission: the values to vary, each run, and the cost of all runs."""

from __future__ import annotations

import shlex
from typing import ClassVar

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import DataTable, Input, Static

from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.errors import LlmbError
from llmb_tui.plan.layouts import Layout
from llmb_tui.services import Services
from llmb_tui.store.files import write_atomic
from llmb_tui.store.paths import expand_user
from llmb_tui.suites.draft import SuiteDraft, offers, toggle_excluded
from llmb_tui.suites.draft_plan import DraftPlan, kinds, plan_draft
from llmb_tui.suites.suite import Suite
from llmb_tui.suites.suite_file import file_name, suite_toml
from llmb_tui.suites.suite_plan import Nodes, PlannedRow, SuitePlan
from llmb_tui.suites.suites import SuiteChangedError
from llmb_tui.ui.background import background, run_detached, run_in_thread
from llmb_tui.ui.clipboard import copy
from llmb_tui.ui.dialogs import ConfirmDialog, Failure, InputDialog
from llmb_tui.ui.screens.suite_dialogs import ConfirmHours, capacity, submit_question
from llmb_tui.ui.text import MUTED, heading, line, lines, notify
from llmb_tui.ui.widgets.key_bar import KeyBar
from llmb_tui.ui.widgets.keyed_table import KeyedTable, Rows
from llmb_tui.ui.widgets.status_bar import notice
from llmb_tui.ui.widgets.suite_form import SuiteForm
from llmb_tui.ui.widgets.suite_texts import DRAFT, about_row, draft_sums, draft_things
from llmb_tui.ui.widgets.texts import Paragraphs, Scroller, fact

_PATIENCE_S = 0.5
"""Planning that takes longer shows a note."""
_LAYOUTS = 12
"""Number of the fastest layouts that are offered."""


class DraftRows(KeyedTable):
    """The runs of a draft."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select_cursor", "Choices", show=False, id="suite.choices", tooltip="Back to the choices")
    ]


class SuiteScreen(Screen[SuiteDraft]):
    """Shows one draft and its plan; each change makes a new draft, which is planned in a thread.

    Dismisses with the current draft.
    """

    HELP = """Several runs as one suite: each combination of the values that are switched on is a row.
On the left are the values, the number of repeats and the limits; on the right is each run with its nodes and cost.
A row that cannot run has the mark ✗ and a reason. x excludes a row, or includes it again."""
    CSS_PATH = "suite.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-normal"), (160, "-wide")]  # noqa: RUF012 - Textual's own form
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "submit", "Submit…", id="suite.submit", tooltip="Submit the suite, after a confirmation"),
        Binding("t", "switch_side", "Rows", id="suite.rows", tooltip="Switch between choices and rows"),
        Binding("x", "exclude", "Exclude", id="suite.out", tooltip="Exclude the row, or include it again"),
        Binding("w", "write", "Write…", id="suite.write", tooltip="Write the suite as a file for `llmb-tui suite`"),
        Binding("o", "suites", "Suites…", id="suite.others", tooltip="List the submitted suites"),
        # Texts of the screen name these keys; the key bar of a small terminal has no room for them.
        Binding(
            "X",
            "exclude_blocked",
            "Exclude ✗",
            show=False,
            id="suite.out-blocked",
            tooltip="Exclude the rows that cannot run",
        ),
        Binding("l", "layouts", "Layouts", show=False, id="suite.layouts", tooltip="List the fastest valid layouts"),
        Binding("f", "query_nodes", "Free nodes", show=False, id="suite.look", tooltip="Query the free nodes"),
        Binding("q,escape", "leave", "Back", id="suite.leave", tooltip="Back; choices are kept"),
    ]

    form = getters.query_one(SuiteForm)
    table = getters.query_one(DraftRows)
    about = getters.query_one("#suite-about", Paragraphs)
    sums = getters.query_one("#suite-sums", Paragraphs)
    head = getters.query_one("#suite-head", Static)

    def __init__(self, services: Services, prompter: Prompter, draft: SuiteDraft) -> None:
        super().__init__()
        self._services = services
        self._prompter = prompter
        self.draft = draft
        """Current choices. The wizard keeps them and passes them in again when the user returns."""
        self.plan: DraftPlan | None = None
        """None until the first plan is ready."""
        self._profile: ClusterProfile | None = None
        self._capacity = Nodes()
        self._layouts: tuple[Layout, ...] = ()
        self._is_read_only = False
        self._rows = Rows()

    def compose(self) -> ComposeResult:
        yield Static(id="suite-head", markup=False)
        with Horizontal(id="suite-body"):
            yield SuiteForm(self.change_draft)
            with Vertical(id="suite-right"):
                yield DraftRows()
                with Scroller(id="suite-about-box"):
                    yield Paragraphs(id="suite-about")
                with Scroller(id="suite-sums-box"):
                    yield Paragraphs(id="suite-sums")
        yield KeyBar()

    def on_mount(self) -> None:
        self.form.border_title = "Vary"
        self._start()

    def on_resize(self) -> None:
        self.call_after_refresh(self._show_rows)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 (Textual's)
        if action == "submit":
            return None if self._is_read_only or self.plan is None or self.plan.submission is None else True
        return self.draft.kind == "custom" if action == "layouts" else True

    # Actions of the user.

    def change_draft(self, draft: SuiteDraft) -> None:
        """Show the choices of a new draft at once, and its rows when it is planned."""
        self.draft = draft
        self._show_choices()
        self._plan()

    @property
    def row(self) -> PlannedRow | None:
        chosen = self.table.cursor_key
        return next((row for row in self.plan.rows if row.row.key == chosen), None) if self.plan else None

    def action_switch_side(self) -> None:
        if self.table.has_focus:
            self.form.focus_first()
        else:
            self.table.focus()

    def action_exclude(self) -> None:
        """Exclude the row, or include it again. From the choices only go to the rows, to exclude no row unseen."""
        if (row := self.row) is None:
            return
        if not self.table.has_focus:
            self.table.focus()
        elif not row.row.of_best:
            self.change_draft(toggle_excluded(self.draft, [row.row.key]))
        else:
            notify(self.app, "The last run cannot be excluded: the others select its layout.", "warning")

    def action_exclude_blocked(self) -> None:
        blocked = [row.row.key for row in (self.plan.blocked if self.plan else ()) if not row.row.of_best]
        if blocked:
            self.change_draft(toggle_excluded(self.draft, blocked))

    def action_leave(self) -> None:
        """Go from a field to the rows; from elsewhere leave the screen."""
        if isinstance(self.focused, Input):
            self.table.focus()
        else:
            self.dismiss(self.draft)

    @on(Input.Submitted)
    @on(DataTable.RowSelected)
    def _switch_side(self) -> None:
        self.action_switch_side()

    @background(group="layouts", exclusive=True)
    async def action_layouts(self) -> None:
        from llmb_tui.plan.layouts import layouts

        focused = self.focused
        self._layouts = (await run_in_thread(layouts, self._services.catalog, self.draft.base, _LAYOUTS)).best
        self._show_choices()
        if self.focused is focused:
            self.form.arrive_at("layouts")

    @background(group="look", exclusive=True)
    async def action_query_nodes(self) -> None:
        await self._query_nodes(self._prompter)

    @background(group="submit", exclusive=True)
    async def action_submit(self) -> None:
        if (plan := self._plan_to_submit) is None:
            return
        if blockers := [problem for _, problem in plan.blockers]:
            notify(self.app, f"{blockers[0].reason} {blockers[0].fix}".rstrip(), "warning")
        elif await self._is_confirmed(plan):
            run_detached(self.app, self._submit(plan.suite, new=False))

    @property
    def _plan_to_submit(self) -> SuitePlan | None:
        """Plan that would be submitted; None if no row can run, or the draft is not planned yet."""
        return self.plan.submission if self.plan is not None and self.plan.draft is self.draft else None

    async def _is_confirmed(self, plan: SuitePlan) -> bool:
        """Ask for a confirmation that shows the GPU-hours; above the user's limit the user types their number."""
        question, limit = submit_question(plan, self._capacity), self._services.policy.suite_gpu_hours
        if plan.gpu_hours > limit:
            return await self.app.push_screen_wait(ConfirmHours(question, plan.gpu_hours, limit)) is not None
        return await self.app.push_screen_wait(ConfirmDialog("Submit", question, "Submit", "Not now")) is True

    async def _submit(self, suite: Suite, *, new: bool) -> None:
        """Save the suite, submit it in a thread of the program, and open it unless this screen has been left."""
        try:
            kept = await run_in_thread(lambda: self._services.suites.keep(suite, new=new))
        except SuiteChangedError as error:
            if not self.is_attached:
                raise
            what = lines(line(error.what), line(error.why), Content(""), line("Submit this one as a second suite?"))
            if await self.app.push_screen_wait(ConfirmDialog("Submit", what, "Submit second suite", "Not now")):
                await self._submit(suite, new=True)
            return
        submissions = await run_in_thread(lambda: self._services.submissions)
        submissions.begin(kept, self._prompter)
        if self.is_attached:
            self._watch(kept.id)
        else:
            notify(self.app, f"Suite {kept.id} ({kept.name}) is being submitted.")

    def _watch(self, suite_id: str) -> None:
        from llmb_tui.ui.screens.suite_watch import SuiteWatchScreen

        self.app.push_screen(SuiteWatchScreen(self._services, self._prompter, suite_id))

    @background(group="write", exclusive=True)
    async def action_write(self) -> None:
        if (plan := self._plan_to_submit) is None:
            return
        title = "Write the suite"
        words = line("File for `llmb-tui suite`, which you can edit:")
        hint = "enter: write, and copy the submit command · esc: cancel"
        file = await self.app.push_screen_wait(InputDialog(title, words, f"{file_name(plan.suite.name)}.toml", hint))
        if not file or not file.strip():
            return
        path = expand_user(file.strip())
        if await run_in_thread(path.exists):
            question = line(f"{path} already exists. Replace it?")
            if not await self.app.push_screen_wait(ConfirmDialog(title, question, "Replace", "Keep")):
                return
        await run_in_thread(write_atomic, path, suite_toml(plan.suite).encode())
        command = shlex.join(["llmb-tui", "suite", "submit", str(path)])
        copy(self.app, command, f"{path} is written. {command}")

    @background(group="suites", exclusive=True)
    async def action_suites(self) -> None:
        from llmb_tui.ui.screens.suites import SuitesScreen

        if suite_id := await self.app.push_screen_wait(SuitesScreen(self._services)):
            self._watch(suite_id)

    # Data.

    @background(group="start")
    async def _start(self) -> None:
        try:
            self._profile = await run_in_thread(self._services.clusters.profile, self.draft.cluster)
        except LlmbError as error:
            self.app.push_screen(Failure(error), lambda _: self.dismiss(self.draft))
            return
        self._is_read_only = self._services.policy.is_read_only(self._profile)
        self._show_choices()
        self.form.focus_first()
        await self._plan_now()
        await self._show_kinds()
        await self._query_nodes(None)

    async def _query_nodes(self, prompter: Prompter | None) -> None:
        """Query the free nodes. Without a prompter the user did not request it, and an error is not shown."""
        if (profile := self._profile) is None:
            return
        try:
            self._capacity = await run_in_thread(capacity, self._services, profile, prompter)
        except LlmbError as error:
            if prompter is not None:
                self.app.push_screen(Failure(error))
            return
        await self._show_kinds()
        await self._plan_now()

    @background(group="plan", exclusive=True)
    async def _plan(self) -> None:
        await self._plan_now()

    async def _plan_now(self) -> None:
        """Plan the current draft. If it has changed meanwhile, the plan is not shown."""
        services, draft = self._services, self.draft
        if (profile := self._profile) is None:
            return
        timer = self.set_timer(_PATIENCE_S, self._show_planning)
        try:
            plan = await run_in_thread(plan_draft, draft, services.catalog, profile, services.policy, self._capacity)
        finally:
            timer.stop()
        if draft is self.draft:
            self.plan = plan
            self._show_rows()
            self.sums.parts = draft_sums(plan, self._capacity)
            self._show_choices()

    def _show_planning(self) -> None:
        self.sums.parts = (fact("◐ planning", "the rows above show the previous choices"),)

    async def _show_kinds(self) -> None:
        self.form.show_kinds(await run_in_thread(kinds, self.draft, self._services.catalog, self._capacity))

    # Display.

    def _show_choices(self) -> None:
        name = self.plan.name if self.plan and not self.draft.name else ""
        self.form.show(self.draft, offers(self.draft, self._services.catalog, self._layouts), name)
        self.refresh_bindings()

    def _show_rows(self) -> None:
        if (plan := self.plan) is None:
            return
        chosen = f"   {plan.shared or plan.name or 'nothing chosen'}"
        left = line((" Suite", "bold"), chosen, (f"   on {self.draft.cluster}, {self.draft.procedure}", MUTED))
        words = notice(self._profile, self._is_read_only) if self._profile else ""
        self.head.update(heading(left, words, self.size.width))
        self._rows = self._rows.with_things(DRAFT, draft_things(plan))
        self.table.show(DRAFT, self._rows.cells)
        self._show_about()

    @on(DataTable.RowHighlighted)
    def _show_about(self) -> None:
        row = self.row
        self.about.parts = about_row(row, self.plan.is_out(row)) if row is not None and self.plan else ()
