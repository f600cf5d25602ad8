"""`SuiteScreen`: a suite before anything of it is sent: what multiplies, every row, and what all of it costs."""

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
from llmb_tui.ui.dialogs import AskLine, Confirm, Failure
from llmb_tui.ui.screens.suite_dialogs import TypeHours, capacity, submit_question
from llmb_tui.ui.text import MUTED, heading, line, lines, notify
from llmb_tui.ui.widgets.key_bar import KeyBar
from llmb_tui.ui.widgets.keyed_table import KeyedTable, Rows
from llmb_tui.ui.widgets.status_bar import notice
from llmb_tui.ui.widgets.suite_form import SuiteForm
from llmb_tui.ui.widgets.suite_texts import DRAFT, about_row, draft_sums, draft_things
from llmb_tui.ui.widgets.texts import Paragraphs, Scroller, fact

_PATIENCE_S = 0.5
"""What takes longer is said to be at work."""
_LAYOUTS = 12
"""So many of the fastest are offered."""


class DraftRows(KeyedTable):
    """The runs of a suite that is being chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select_cursor", "Choices", show=False, id="suite.choices", tooltip="Back to the choices")
    ]


class SuiteScreen(Screen[SuiteDraft]):
    """It shows one draft and its plan; every answer makes another draft, which is planned in a thread.

    Its answer is what was chosen when it was left.
    """

    HELP = """Several runs as one: what is switched on multiplies, and every combination is a row.
The left side says what is run, how often, and how it is sent; the right side every run with what it needs and costs.
A row that cannot be run is marked with ✗ and says why; x takes a row out, and puts it back."""
    CSS_PATH = "suite.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-normal"), (160, "-wide")]  # noqa: RUF012 - Textual's own form
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "submit", "Submit…", id="suite.submit", tooltip="Submit the suite, after one question"),
        Binding("t", "other", "Rows", id="suite.rows", tooltip="From the choices to the rows, and back"),
        Binding("x", "take_out", "Take out", id="suite.out", tooltip="Take the row out, or put it back"),
        Binding("w", "write", "Write…", id="suite.write", tooltip="Write it as a file that `llmb-tui suite` reads"),
        Binding("o", "suites", "Suites…", id="suite.others", tooltip="The suites that were submitted"),
        # The screen names these where they are of use; the key bar of a small terminal has no room for them.
        Binding("X", "out_blocked", "✗ out", show=False, id="suite.out-blocked", tooltip="Take out what cannot be run"),
        Binding("l", "layouts", "Layouts", show=False, id="suite.layouts", tooltip="List the fastest valid layouts"),
        Binding("f", "look", "Free nodes", show=False, id="suite.look", tooltip="Ask how many nodes are free"),
        Binding("q,escape", "leave", "Back", id="suite.leave", tooltip="Back; the choices stay"),
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
        """What is chosen so far: who comes back is given it again."""
        self.plan: DraftPlan | None = None
        """None until the first one is made."""
        self._profile: ClusterProfile | None = None
        self._capacity = Nodes()
        self._layouts: tuple[Layout, ...] = ()
        self._observed = False
        self._rows = Rows()

    def compose(self) -> ComposeResult:
        yield Static(id="suite-head", markup=False)
        with Horizontal(id="suite-body"):
            yield SuiteForm(self.take)
            with Vertical(id="suite-right"):
                yield DraftRows()
                with Scroller(id="suite-about-box"):
                    yield Paragraphs(id="suite-about")
                with Scroller(id="suite-sums-box"):
                    yield Paragraphs(id="suite-sums")
        yield KeyBar()

    def on_mount(self) -> None:
        self.form.border_title = "What multiplies"
        self._start()

    def on_resize(self) -> None:
        self.call_after_refresh(self._show_rows)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 (Textual's)
        if action == "submit":
            return None if self._observed or self.plan is None or self.plan.sent is None else True
        return self.draft.kind == "custom" if action == "layouts" else True

    # What the person does.

    def take(self, draft: SuiteDraft) -> None:
        """Another draft: the choices follow at once, and the rows once it is planned."""
        self.draft = draft
        self._show_choices()
        self._plan()

    @property
    def row(self) -> PlannedRow | None:
        chosen = self.table.chosen
        return next((row for row in self.plan.rows if row.row.key == chosen), None) if self.plan else None

    def action_other(self) -> None:
        if self.table.has_focus:
            self.form.focus_first()
        else:
            self.table.focus()

    def action_take_out(self) -> None:
        """Among the choices it only turns to the rows: nobody takes out what they do not look at."""
        if (row := self.row) is None:
            return
        if not self.table.has_focus:
            self.table.focus()
        elif not row.row.of_best:
            self.take(toggle_excluded(self.draft, [row.row.key]))
        else:
            notify(self.app, "The full run of the best is what the others are for: it stays.", "warning")

    def action_out_blocked(self) -> None:
        blocked = [row.row.key for row in (self.plan.blocked if self.plan else ()) if not row.row.of_best]
        if blocked:
            self.take(toggle_excluded(self.draft, blocked))

    def action_leave(self) -> None:
        """From a field to the rows; else back."""
        if isinstance(self.focused, Input):
            self.table.focus()
        else:
            self.dismiss(self.draft)

    @on(Input.Submitted)
    @on(DataTable.RowSelected)
    def turn(self) -> None:
        self.action_other()

    @background(group="layouts", exclusive=True)
    async def action_layouts(self) -> None:
        from llmb_tui.plan.layouts import layouts

        focused = self.focused
        self._layouts = (await run_in_thread(layouts, self._services.catalog, self.draft.base, _LAYOUTS)).best
        self._show_choices()
        if self.focused is focused:
            self.form.arrive_at("layouts")

    @background(group="look", exclusive=True)
    async def action_look(self) -> None:
        await self._look(self._prompter)

    @background(group="submit", exclusive=True)
    async def action_submit(self) -> None:
        if (sent := self._sent) is None:
            return
        if blockers := [problem for _, problem in sent.blockers]:
            notify(self.app, f"{blockers[0].reason} {blockers[0].fix}".rstrip(), "warning")
        elif await self._agreed(sent):
            run_detached(self.app, self._send(sent.suite, new=False))

    @property
    def _sent(self) -> SuitePlan | None:
        """What would be submitted of what is chosen now; None where that is nothing, or not planned yet."""
        return self.plan.sent if self.plan is not None and self.plan.draft is self.draft else None

    async def _agreed(self, plan: SuitePlan) -> bool:
        """One yes that names the GPU-hours; above the operator's own limit their number."""
        question, limit = submit_question(plan, self._capacity), self._services.policy.suite_gpu_hours
        if plan.gpu_hours > limit:
            return await self.app.push_screen_wait(TypeHours(question, plan.gpu_hours, limit)) is not None
        return await self.app.push_screen_wait(Confirm("Submit", question, "Submit them", "Not now")) is True

    async def _send(self, suite: Suite, *, new: bool) -> None:
        """Keep it, send it in a thread that no screen holds, and watch it unless this screen was left meanwhile."""
        try:
            kept = await run_in_thread(lambda: self._services.suites.keep(suite, new=new))
        except SuiteChangedError as error:
            if not self.is_attached:
                raise
            what = lines(line(error.what), line(error.why), Content(""), line("Begin another one beside it?"))
            if await self.app.push_screen_wait(Confirm("Submit", what, "Begin another", "Leave it")):
                await self._send(suite, new=True)
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
        if (sent := self._sent) is None:
            return
        title = "Write the suite"
        words = line("A file that `llmb-tui suite` reads, and that a person may change:")
        hint = "enter writes it and copies the command that submits it"
        file = await self.app.push_screen_wait(AskLine(title, words, f"{file_name(sent.suite.name)}.toml", hint))
        if not file or not file.strip():
            return
        path = expand_user(file.strip())
        if await run_in_thread(path.exists):
            question = line(f"There is {path} already. Replace it?")
            if not await self.app.push_screen_wait(Confirm(title, question, "Replace it", "Keep it")):
                return
        await run_in_thread(write_atomic, path, suite_toml(sent.suite).encode())
        command = shlex.join(["llmb-tui", "suite", "submit", str(path)])
        copy(self.app, command, f"{path} is written. {command}")

    @background(group="suites", exclusive=True)
    async def action_suites(self) -> None:
        from llmb_tui.ui.screens.suites import SuitesScreen

        if suite_id := await self.app.push_screen_wait(SuitesScreen(self._services)):
            self._watch(suite_id)

    # What is learned.

    @background(group="start")
    async def _start(self) -> None:
        try:
            self._profile = await run_in_thread(self._services.clusters.profile, self.draft.cluster)
        except LlmbError as error:
            self.app.push_screen(Failure(error), lambda _: self.dismiss(self.draft))
            return
        self._observed = self._services.policy.is_read_only(self._profile)
        self._show_choices()
        self.form.focus_first()
        await self._plan_now()
        await self._show_kinds()
        await self._look(None)

    async def _look(self, prompter: Prompter | None) -> None:
        """How many nodes are free; who did not ask for it is told nothing of why that is not known."""
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
        """A plan that another draft has overtaken is not shown."""
        services, draft = self._services, self.draft
        if (profile := self._profile) is None:
            return
        waits = self.set_timer(_PATIENCE_S, self._say_planning)
        try:
            plan = await run_in_thread(plan_draft, draft, services.catalog, profile, services.policy, self._capacity)
        finally:
            waits.stop()
        if draft is self.draft:
            self.plan = plan
            self._show_rows()
            self.sums.parts = draft_sums(plan, self._capacity)
            self._show_choices()

    def _say_planning(self) -> None:
        self.sums.parts = (fact("◐ planning", "the rows above are those of the choices before"),)

    async def _show_kinds(self) -> None:
        self.form.show_kinds(await run_in_thread(kinds, self.draft, self._services.catalog, self._capacity))

    # What is shown.

    def _show_choices(self) -> None:
        name = self.plan.name if self.plan and not self.draft.name else ""
        self.form.show(self.draft, offers(self.draft, self._services.catalog, self._layouts), name)
        self.refresh_bindings()

    def _show_rows(self) -> None:
        if (plan := self.plan) is None:
            return
        chosen = f"   {plan.shared or plan.name or 'nothing chosen'}"
        left = line((" Suite", "bold"), chosen, (f"   on {self.draft.cluster}, {self.draft.procedure}", MUTED))
        words = notice(self._profile, self._observed) if self._profile else ""
        self.head.update(heading(left, words, self.size.width))
        self._rows = self._rows.updated(DRAFT, draft_things(plan))
        self.table.show(DRAFT, self._rows.cells)
        self._show_about()

    @on(DataTable.RowHighlighted)
    def _show_about(self) -> None:
        row = self.row
        self.about.parts = about_row(row, self.plan.is_out(row)) if row is not None and self.plan else ()
