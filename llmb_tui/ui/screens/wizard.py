"""`WizardScreen`: the seven steps. It shows one `WizardState`, hands every event to `update` and runs the effects."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, ClassVar, TypeVar

from textual import getters, on
from textual.actions import parse
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Key
from textual.message import Message
from textual.reactive import reactive
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input
from textual.worker import get_current_worker

from llmb_tui.errors import LlmbError
from llmb_tui.ui.background import background, run_in_thread
from llmb_tui.ui.compositor import RowCompositor
from llmb_tui.ui.key_order import KeyOrder
from llmb_tui.ui.screens.wizard_body import WizardBody
from llmb_tui.ui.text import notify
from llmb_tui.ui.widgets.choices import ChoiceList
from llmb_tui.ui.widgets.key_bar import KeyBar
from llmb_tui.ui.widgets.status_bar import StatusBar
from llmb_tui.wizard.steps import TITLES, StepId

if TYPE_CHECKING:
    from llmb_tui.cluster.profile import ClusterProfile
    from llmb_tui.cluster.prompter import Prompter
    from llmb_tui.launch.run import Run
    from llmb_tui.services import Services
    from llmb_tui.suites.draft import SuiteDraft
    from llmb_tui.wizard import effects, events
    from llmb_tui.wizard.site_variables import SiteVariables
    from llmb_tui.wizard.state import WizardState
    from llmb_tui.wizard.transitions import Change

_Answer = TypeVar("_Answer")

_PULSE_S = 1.0
# A probe of the cluster waits until the answers rest this long.
_REST_S = 0.8
_SUITE_STEPS = (StepId.SCALE, StepId.REVIEW)
_SUITE_BASE = ("base", "procedure", "cluster")
"""What a draft of a suite was begun with."""
_STRAIGHT = "Straight to a step"

_KEYS: list[BindingType] = [
    Binding("left", "ask('back')", "Back", key_display="←", id="wizard.back", tooltip="The step before; answers stay"),
    Binding("right", "ask('next')", "Next", key_display="→", id="wizard.next", tooltip="The next step that is open"),
    Binding(
        "enter", "ask('enter')", "Go on", show=False, id="wizard.enter", tooltip="What this step is for, then go on"
    ),
    Binding("escape", "leave_field", "Leave the field", id="wizard.list", tooltip="From a field to the list"),
    Binding("slash", "find", "Find", key_display="/", id="wizard.find", tooltip="Narrow the list by typing"),
    Binding("p", "preview", "Preview", id="wizard.preview", tooltip="The whole preview, its chart, or the form again"),
    Binding("y", "copy", "Copy", id="wizard.copy", tooltip="Copy the choice as a command line"),
    Binding("J", "app.jobs", "Runs", id="wizard.jobs", tooltip="All runs, and those that are going"),
    # The key bar of a small terminal has no room for it; that of the runs names it.
    Binding("R", "app.results", "Results", show=False, id="wizard.results", tooltip="The runs that are over, compared"),
    Binding("S", "plan_suite", "Suite…", id="wizard.suite", tooltip="Several runs as one: scales, repeats, layouts"),
    Binding("w", "watch", "Watch", show=False, id="wizard.watch", tooltip="Watch the newest run that is going"),
    *(
        Binding(str(int(step)), f"go({int(step)})", title, show=False, id=f"wizard.step{int(step)}", tooltip=_STRAIGHT)
        for step, title in TITLES.items()
    ),
]


class WizardScreen(Screen[None]):
    """One wizard from the choice of a workload to the submitted run."""

    HELP = """From the choice of a workload to a submitted run, in seven steps. The preview follows every key.
Going back is never blocked and keeps every answer; an answer that became impossible is flagged with ✗.
Tab and shift+tab go from field to field, and to what is said of the plan where it has to be scrolled."""
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-normal"), (160, "-wide")]  # noqa: RUF012 - Textual's own form
    # The first widget that could have the focus may be a hidden field of another step: `focus_first` sets it.
    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = _KEYS

    app = getters.app(KeyOrder)
    body = getters.query_one(WizardBody)
    bar = getters.query_one(StatusBar)

    state: reactive[WizardState | None] = reactive["WizardState | None"](None, repaint=False)
    """None until the presets are read."""

    class Started(Message):
        """Presets and panes are there, and the choices are painted."""

    def __init__(self, services: Services, prompter: Prompter) -> None:
        super().__init__()
        self._compositor = RowCompositor()
        self._services = services
        self._prompter = prompter
        self._stop = threading.Event()
        self._rest: Timer | None = None
        self._pulse: Timer | None = None
        """Runs while the screen is seen: what is painted below another screen has all of that painted too."""
        self._refused: frozenset[str] = frozenset()
        self._suite: SuiteDraft | None = None
        """What was chosen of the last suite."""
        self._left_field: Widget | None = None
        """What had the focus before the preview took the place of the form."""
        self._early: list[events.Event] | None = []
        """What happened before all panes were there; None from then on."""

    @property
    def complete(self) -> bool:
        """All panes are there: what happens is shown at once."""
        return self._early is None

    def compose(self) -> ComposeResult:
        yield StatusBar().data_bind(WizardScreen.state)
        yield WizardBody(self.dispatch).data_bind(WizardScreen.state)
        yield KeyBar(show_command_palette=True)

    def on_mount(self) -> None:
        """Paint first; read presets, clusters and runs after it."""
        self.call_after_refresh(self._start)
        self._pulse = self.set_interval(_PULSE_S, self._feel_link)

    def on_screen_suspend(self) -> None:
        self._be_in_front(False)

    def on_screen_resume(self) -> None:
        """A run may have ended while it was watched."""
        self._be_in_front(True)
        if self.state is not None and self.focused is None and not self.has_class("-preview"):
            self.body.pane.focus_first()

    def _be_in_front(self, in_front: bool) -> None:
        if self._pulse is not None:
            (self._pulse.resume if in_front else self._pulse.pause)()
        if self.state is not None:
            from llmb_tui.wizard.events import ScreenActive

            self.dispatch(ScreenActive(in_front))

    def on_unmount(self) -> None:
        self._stop.set()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        typing = isinstance(self.focused, Input)
        if action == "preview":
            return self.has_class("-narrow") or self.has_class("-partial")
        if action == "find":
            body = self.query_one_optional(WizardBody)
            return body is not None and body.is_mounted and body.pane.FINDABLE and not typing
        if action == "plan_suite":
            return self.state is not None and self.state.step in _SUITE_STEPS
        if self._refused.intersection((action, *parameters)):
            return None
        return typing if action == "leave_field" else True

    def watch_state(self, state: WizardState | None) -> None:
        if state is None:
            return
        from llmb_tui.wizard.gates import refused

        now = refused(state)
        if now != self._refused:
            self._refused = now
            self.refresh_bindings()

    # What the person does.

    def action_ask(self, action: events.Action) -> None:
        from llmb_tui.wizard.events import ActionRequested

        self.dispatch(ActionRequested(action))

    @on(ChoiceList.Taken)
    @on(Input.Submitted)
    def _enter(self) -> None:
        self.action_ask("enter")

    def on_key(self, event: Key) -> None:
        """A grey key says why it is."""
        active = self.active_bindings.get(event.key)
        if active is not None and not active.enabled:
            _, name, parameters = parse(active.binding.action)
            if self._refused.intersection((name, *parameters)):
                getattr(self, f"action_{name}")(*parameters)

    def action_go(self, step: int) -> None:
        from llmb_tui.wizard.events import StepTaken

        self.dispatch(StepTaken(StepId(step)))

    def action_leave_field(self) -> None:
        self.body.pane.focus_first()

    def action_find(self) -> None:
        self.body.pane.find()

    def action_preview(self) -> None:
        """Turn to the next of what does not fit together: the form, the whole preview, the chart."""
        if self.has_class("-narrow") and not self.has_class("-preview"):
            self._left_field = self.focused
            self.add_class("-preview")
        elif not self.body.preview.turn():
            self.remove_class("-preview")
            self._come_back()

    def on_resize(self) -> None:
        """A wide screen shows the form beside the preview that was turned to."""
        if not self.has_class("-narrow"):
            self._come_back()

    def _come_back(self) -> None:
        """To the field that was left, which loses the focus while the form is hidden."""
        field, self._left_field = self._left_field, None
        if field is not None and self.focused is None:
            self.call_after_refresh(self.set_focus, field)

    def action_copy(self) -> None:
        from llmb_tui.ui.clipboard import copy
        from llmb_tui.wizard.gates import command_line

        if self.state is not None and (words := command_line(self.state)):
            copy(self.app, words, words)

    def action_add_cluster(self) -> None:
        self._edit_cluster(None)

    def action_edit_cluster(self) -> None:
        if self.state is not None:
            self._edit_cluster(self.state.proposal.profile)

    def action_watch(self) -> None:
        if self.state is not None and self.state.active_runs:
            self._open_run(self.state.active_runs[0].id)

    def action_layouts(self) -> None:
        from llmb_tui.ui.screens.layouts import LayoutsDialog
        from llmb_tui.wizard import events

        chosen = self.state.proposal.selection if self.state is not None else None
        if self.state is not None and chosen is not None:
            dialog = LayoutsDialog(self.state.rules.catalog, chosen)
            self._ask(dialog, partial(events.Answered, "layout"))

    def action_variables(self) -> None:
        from llmb_tui.wizard.effects import Notify
        from llmb_tui.wizard.site_variables import site_variables

        if self.state is None:
            return
        found = site_variables(self.state)
        if isinstance(found, Notify):
            notify(self.app, found.words, found.severity)
        else:
            self._take_variables(found)

    def action_disk(self) -> None:
        """What is on the chosen cluster; without one there is nothing to look at."""
        profile = self.state.proposal.profile if self.state is not None else None
        if profile is None or profile.no_login_node:
            notify(self.app, profile.no_login_node if profile is not None else "No cluster is chosen yet.", "warning")
            return
        from llmb_tui.ui.screens.disk import DiskScreen

        self.app.push_screen(DiskScreen(self._services, self._prompter, profile))

    def run_again(self, run: Run) -> None:
        from llmb_tui.wizard.events import RunAgain

        self.dispatch(RunAgain(run))

    # One direction: event → state → everything that is shown; then the effects.

    def dispatch(self, event: events.Event) -> None:
        """Tell the wizard what happened. Everything is shown when this returns, once all panes are there."""
        if self.state is not None and self._early is not None:
            self._early.append(event)
        elif self.state is not None:
            from llmb_tui.wizard.update import update

            self._take(update(self.state, event))

    def _take(self, change: Change) -> None:
        self.state, wanted = change
        for effect in wanted:
            self._run_effect(effect)

    def _run_effect(self, effect: effects.Effect) -> None:
        from llmb_tui.wizard import effects, events

        match effect:
            case effects.Probe():
                self._probe(effect)
            case effects.Install() | effects.Prepare() | effects.PrepareAhead() | effects.Submit():
                self._take_up(effect)
            case effects.ReadRuns() | effects.ReadOwnResults():
                self._read(effect)
            case effects.StartIdleTimer():
                if self._rest is not None:
                    self._rest.stop()
                self._rest = self.set_timer(_REST_S, lambda: self.dispatch(events.InputIdle()))
            case effects.FocusFirst():
                self._arrive()
            case effects.Notify(words, severity):
                notify(self.app, words, severity)
            case _:
                self._show(effect)

    def _show(self, effect: effects.Dialog) -> None:
        """Open a question, a list or another screen over the wizard; its answer is an event."""
        from llmb_tui.ui.dialogs import Confirm, Failure
        from llmb_tui.ui.panes.review import agreement
        from llmb_tui.wizard import effects, events

        services, prompter = self._services, self._prompter
        match effect:
            case effects.ShowFailure(error):
                self.app.push_between_words(lambda: Failure(error), lambda _: self.dispatch(events.FailureRead()))
            case effects.AskToSubmit(prepared, starts):
                question = Confirm("Submit", agreement(prepared.request, starts), "Submit")
                self._ask(question, lambda _: events.SubmitAgreed(prepared, time.monotonic()))
            case effects.AskForKeys(request, wanted):
                from llmb_tui.ui.screens.keys import KeysDialog

                if self.app.types_for_s and isinstance(self.focused, Input):
                    notify(self.app, "A step of the install lacks a key: K gives it.", "warning")
                else:
                    self.app.push_screen(KeysDialog(services, prompter, request, wanted))
            case effects.EditCluster(profile):
                self._edit_cluster(profile)
            case effects.OpenRun(run_id):
                self._open_run(run_id)

    def _edit_cluster(self, profile: ClusterProfile | None) -> None:
        """`profile`: None for a new cluster."""
        from llmb_tui.ui.screens.cluster_editor import ClusterEditor
        from llmb_tui.wizard.events import ProfileSaved

        self._ask(ClusterEditor(self._services, self._prompter, profile), ProfileSaved)

    def _open_run(self, run_id: str) -> None:
        from llmb_tui.ui.screens.run import RunScreen

        self.app.push_screen(RunScreen(self._services, self._prompter, run_id))

    def _ask(self, screen: Screen[_Answer], event_of: Callable[[_Answer], events.Event]) -> None:
        """Open it; an answer that is no refusal is an event."""

        def answered(answer: _Answer | None) -> None:
            if answer is not None and answer is not False:
                self.dispatch(event_of(answer))

        self.app.push_screen(screen, answered)

    def action_plan_suite(self) -> None:
        """Plan several runs of the choice; keep the last draft if it has the same base."""
        from llmb_tui.suites.draft import draft_of
        from llmb_tui.ui.screens.suite import SuiteScreen

        if self.state is None or (chosen := self.state.proposal.selection) is None:
            return
        if (profile := self.state.proposal.profile) is None:
            notify(self.app, "A suite is planned for a cluster: step 4 chooses one.", "warning")
            return
        draft, base = draft_of(chosen, self.state.procedure, profile.name), attrgetter(*_SUITE_BASE)
        if self._suite is not None and base(self._suite) == base(draft):
            draft = self._suite

        def keep(left: SuiteDraft | None) -> None:
            self._suite = left

        self.app.push_screen(SuiteScreen(self._services, self._prompter, draft), keep)

    @background(group="variables", exclusive=True)
    async def _take_variables(self, asked: SiteVariables) -> None:
        from llmb_tui.ui.dialogs import Confirm
        from llmb_tui.ui.panes.cluster import variable_questions
        from llmb_tui.wizard.events import ProfileSaved

        taken = dict(asked.profile.env)
        for question, variables in variable_questions(asked):
            if await self.app.push_screen_wait(Confirm("Site's variables", question, "Take", "Leave")):
                taken |= variables
        profile = replace(asked.profile, env=tuple(taken.items()))
        if profile == asked.profile:
            return
        await run_in_thread(self._services.clusters.change, asked.profile, profile)
        self.dispatch(ProfileSaved(profile))

    # What goes on in threads.

    @background(group="start")
    async def _start(self) -> None:
        try:
            first = await run_in_thread(_read_start, self._services)
        except LlmbError as error:
            from llmb_tui.ui.dialogs import Failure

            # Without presets there is nothing to choose from.
            await self.app.push_screen_wait(Failure(error))
            self.app.exit(return_code=error.exit_code)
            return
        self._take(first)
        self.call_after_refresh(self._complete)

    @background(group="start")
    async def _complete(self) -> None:
        """What the first choices do not need is made once they are painted."""
        from llmb_tui.ui.wizard_effects import load_procedures

        await self.body.complete()
        await run_in_thread(load_procedures)
        early, self._early = self._early or [], None
        for event in early:
            self.dispatch(event)
        self.call_after_refresh(self.post_message, self.Started())

    @background(group="read")
    async def _read(self, effect: effects.ReadRuns | effects.ReadOwnResults) -> None:
        from llmb_tui.ui.wizard_effects import read

        try:
            self.dispatch(await run_in_thread(read, effect, self._services))
        except LlmbError as error:  # nobody has asked for it: a dialog would come again whenever it is closed
            notify(self.app, f"{error.what} {error.why}".rstrip(), "warning")

    # What these do is described, or Textual would keep a text of all that the effect holds.

    @background(group="probe", exclusive=True, description="probe")
    async def _probe(self, probe: effects.Probe) -> None:
        await self._perform(probe)

    @background(group="task", description="task")
    async def _take_up(self, task: effects.ClusterTask) -> None:
        await self._perform(task)

    async def _perform(self, task: effects.ClusterTask) -> None:
        """Do it in a thread; a probe that another one has replaced tells nothing any more."""
        from llmb_tui.ui.wizard_effects import perform

        worker = get_current_worker()

        def tell_wizard(event: events.Event) -> None:
            if not worker.is_cancelled:
                self.call_later(self.dispatch, event)

        await run_in_thread(perform, task, self._services, self._prompter, tell_wizard, self._stop)

    def _feel_link(self) -> None:
        """Show how the connection to the chosen cluster is, which may break while nobody uses it."""
        state = self.state
        profile = state.proposal.profile if state is not None and state.cluster.link == "connected" else None
        self.bar.health = self._services.clusters.health(profile) if profile is not None else None

    def _arrive(self) -> None:
        self.minimize()
        self.remove_class("-preview")
        self.body.preview.charted = False
        self.body.pane.focus_first()
        self.refresh_bindings()


def _read_start(services: Services) -> Change:
    """In a thread: what the first frame was painted without is imported there."""
    from llmb_tui.ui.wizard_effects import read_start

    if services.before_start is not None:
        services.before_start()
    return read_start(services)
