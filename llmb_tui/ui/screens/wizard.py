"""`WizardScreen`: the seven steps. It shows a `WizardState`, passes events to `update` and runs the effects."""

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
# A probe of the cluster waits until the answers have not changed for this long.
_REST_S = 0.8
_SUITE_STEPS = (StepId.SCALE, StepId.REVIEW)
_SUITE_BASE = ("base", "procedure", "cluster")
"""Attributes of a suite's draft that come from the wizard."""
_GO_TO = "Go to step"

_KEYS: list[BindingType] = [
    Binding("left", "ask('back')", "Back", key_display="←", id="wizard.back", tooltip="Previous step; keeps answers"),
    Binding("right", "ask('next')", "Next", key_display="→", id="wizard.next", tooltip="Next available step"),
    Binding(
        "enter", "ask('enter')", "Continue", show=False, id="wizard.enter", tooltip="Confirm this step and continue"
    ),
    Binding("escape", "leave_field", "Leave the field", id="wizard.list", tooltip="Back to the list"),
    Binding("slash", "find", "Find", key_display="/", id="wizard.find", tooltip="Filter the list"),
    Binding("p", "preview", "Preview", id="wizard.preview", tooltip="Switch between form, preview and chart"),
    Binding("y", "copy", "Copy", id="wizard.copy", tooltip="Copy the choice as a command line"),
    Binding("J", "app.jobs", "Runs", id="wizard.jobs", tooltip="List all runs"),
    # The key bar of a small terminal has no room for this key; the one of the list of runs shows it.
    Binding("R", "app.results", "Results", show=False, id="wizard.results", tooltip="Compare finished runs"),
    Binding("S", "plan_suite", "Suite", id="wizard.suite", tooltip="Plan a suite: scales, repeats, layouts"),
    Binding("w", "watch", "Watch", show=False, id="wizard.watch", tooltip="Watch the latest active run"),
    *(
        Binding(str(int(step)), f"go({int(step)})", title, show=False, id=f"wizard.step{int(step)}", tooltip=_GO_TO)
        for step, title in TITLES.items()
    ),
]


class WizardScreen(Screen[None]):
    """One wizard from the choice of a workload to the submitted run."""

    HELP = """From the choice of a workload to a submitted run, in seven steps. The preview follows every key.
You can always go back. Answers are kept; an answer that became impossible has the mark ✗.
Tab and shift+tab go from field to field, and to texts that scroll."""
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-normal"), (160, "-wide")]  # noqa: RUF012 - Textual's own form
    # The first widget that can have the focus may be a hidden field of another step; a pane sets the focus itself.
    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = _KEYS

    app = getters.app(KeyOrder)
    body = getters.query_one(WizardBody)
    bar = getters.query_one(StatusBar)

    state: reactive[WizardState | None] = reactive["WizardState | None"](None, repaint=False)
    """None until the presets are loaded."""

    class Started(Message):
        """Presets and panes are loaded, and the choices are painted."""

    def __init__(self, services: Services, prompter: Prompter) -> None:
        super().__init__()
        self._compositor = RowCompositor()
        self._services = services
        self._prompter = prompter
        self._stop = threading.Event()
        self._idle_timer: Timer | None = None
        self._pulse: Timer | None = None
        """Runs while the screen is visible: an update below another screen would repaint that one."""
        self._refused: frozenset[str] = frozenset()
        self._suite: SuiteDraft | None = None
        """Last draft of a suite."""
        self._hidden_focus: Widget | None = None
        """Widget that had the focus before the preview replaced the form."""
        self._pending_events: list[events.Event] | None = []
        """Events before all panes were loaded; None after that."""

    @property
    def complete(self) -> bool:
        """Whether all panes are loaded and events are shown at once."""
        return self._pending_events is None

    def compose(self) -> ComposeResult:
        yield StatusBar().data_bind(WizardScreen.state)
        yield WizardBody(self.dispatch).data_bind(WizardScreen.state)
        yield KeyBar(show_command_palette=True)

    def on_mount(self) -> None:
        """Paint first; then load presets, clusters and runs."""
        self.call_after_refresh(self._start)
        self._pulse = self.set_interval(_PULSE_S, self._show_link_health)

    def on_screen_suspend(self) -> None:
        self._set_active(False)

    def on_screen_resume(self) -> None:
        """Update the active runs: one may have ended while it was watched."""
        self._set_active(True)
        if self.state is not None and self.focused is None and not self.has_class("-preview"):
            self.body.pane.focus_first()

    def _set_active(self, active: bool) -> None:
        if self._pulse is not None:
            (self._pulse.resume if active else self._pulse.pause)()
        if self.state is not None:
            from llmb_tui.wizard.events import ScreenActive

            self.dispatch(ScreenActive(active))

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
        from llmb_tui.wizard.gates import disabled_actions

        refused_actions = disabled_actions(state)
        if refused_actions != self._refused:
            self._refused = refused_actions
            self.refresh_bindings()

    # Actions of the user.

    def action_ask(self, action: events.Action) -> None:
        from llmb_tui.wizard.events import ActionRequested

        self.dispatch(ActionRequested(action))

    @on(ChoiceList.Confirmed)
    @on(Input.Submitted)
    def _enter(self) -> None:
        self.action_ask("enter")

    def on_key(self, event: Key) -> None:
        """Run the action of a refused key, which shows the reason."""
        active = self.active_bindings.get(event.key)
        if active is not None and not active.enabled:
            _, name, parameters = parse(active.binding.action)
            if self._refused.intersection((name, *parameters)):
                getattr(self, f"action_{name}")(*parameters)

    def action_go(self, step: int) -> None:
        from llmb_tui.wizard.events import StepSelected

        self.dispatch(StepSelected(StepId(step)))

    def action_leave_field(self) -> None:
        self.body.pane.focus_first()

    def action_find(self) -> None:
        self.body.pane.find()

    def action_preview(self) -> None:
        """Show the next of form, preview and chart, which do not fit on the screen together."""
        if self.has_class("-narrow") and not self.has_class("-preview"):
            self._hidden_focus = self.focused
            self.add_class("-preview")
        elif not self.body.preview.turn():
            self.remove_class("-preview")
            self._restore_focus()

    def on_resize(self) -> None:
        """Restore the focus if the screen is wide enough for the form and the preview."""
        if not self.has_class("-narrow"):
            self._restore_focus()

    def _restore_focus(self) -> None:
        """Focus the field that lost the focus when the form was hidden."""
        field, self._hidden_focus = self._hidden_focus, None
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
        variables = site_variables(self.state)
        if isinstance(variables, Notify):
            notify(self.app, variables.words, variables.severity)
        else:
            self._confirm_variables(variables)

    def action_disk(self) -> None:
        """Show the items on the chosen cluster, if it has a login node."""
        profile = self.state.proposal.profile if self.state is not None else None
        if profile is None or profile.no_login_node:
            notify(self.app, profile.no_login_node if profile is not None else "Choose a cluster first.", "warning")
            return
        from llmb_tui.ui.screens.disk import DiskScreen

        self.app.push_screen(DiskScreen(self._services, self._prompter, profile))

    def run_again(self, run: Run) -> None:
        from llmb_tui.wizard.events import RunAgain

        self.dispatch(RunAgain(run))

    # Data flows one way: event → state → display; then the effects.

    def dispatch(self, event: events.Event) -> None:
        """Update the state with an event. Before all panes are loaded, the event is kept for later."""
        if self.state is not None and self._pending_events is not None:
            self._pending_events.append(event)
        elif self.state is not None:
            from llmb_tui.wizard.update import update

            self._apply(update(self.state, event))

    def _apply(self, change: Change) -> None:
        self.state, new_effects = change
        for effect in new_effects:
            self._run_effect(effect)

    def _run_effect(self, effect: effects.Effect) -> None:
        from llmb_tui.wizard import effects, events

        match effect:
            case effects.Probe():
                self._probe(effect)
            case effects.Install() | effects.Prepare() | effects.PrepareAhead() | effects.Submit():
                self._run_task(effect)
            case effects.ReadRuns() | effects.ReadOwnResults():
                self._read(effect)
            case effects.StartIdleTimer():
                if self._idle_timer is not None:
                    self._idle_timer.stop()
                self._idle_timer = self.set_timer(_REST_S, lambda: self.dispatch(events.InputIdle()))
            case effects.FocusFirst():
                self._arrive()
            case effects.Notify(words, severity):
                notify(self.app, words, severity)
            case _:
                self._show(effect)

    def _show(self, effect: effects.Dialog) -> None:
        """Open a question, a list or another screen over the wizard; its answer is an event."""
        from llmb_tui.ui.dialogs import ConfirmDialog, Failure
        from llmb_tui.ui.panes.review import confirmation_question
        from llmb_tui.wizard import effects, events

        services, prompter = self._services, self._prompter
        match effect:
            case effects.ShowFailure(error):
                self.app.push_after_typing(lambda: Failure(error), lambda _: self.dispatch(events.FailureDismissed()))
            case effects.AskToSubmit(prepared, starts):
                question = ConfirmDialog("Submit", confirmation_question(prepared.request, starts), "Submit")
                self._ask(question, lambda _: events.SubmitConfirmed(prepared, time.monotonic()))
            case effects.AskForApiKeys(request, wanted):
                from llmb_tui.ui.screens.keys import KeysDialog

                if self.app.remaining_typing_s and isinstance(self.focused, Input):
                    notify(self.app, "An install step needs an API key: press K.", "warning")
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
        """Open a screen, and dispatch the event of its result unless that is None or False."""

        def on_result(answer: _Answer | None) -> None:
            if answer is not None and answer is not False:
                self.dispatch(event_of(answer))

        self.app.push_screen(screen, on_result)

    def action_plan_suite(self) -> None:
        """Plan several runs of the choice; keep the last draft if it has the same base."""
        from llmb_tui.suites.draft import draft_of
        from llmb_tui.ui.screens.suite import SuiteScreen

        if self.state is None or (chosen := self.state.proposal.selection) is None:
            return
        if (profile := self.state.proposal.profile) is None:
            notify(self.app, "A suite needs a cluster. Choose one in step 4.", "warning")
            return
        draft, base = draft_of(chosen, self.state.procedure, profile.name), attrgetter(*_SUITE_BASE)
        if self._suite is not None and base(self._suite) == base(draft):
            draft = self._suite

        def keep(draft: SuiteDraft | None) -> None:
            self._suite = draft

        self.app.push_screen(SuiteScreen(self._services, self._prompter, draft), keep)

    @background(group="variables", exclusive=True)
    async def _confirm_variables(self, site: SiteVariables) -> None:
        from llmb_tui.ui.dialogs import ConfirmDialog
        from llmb_tui.ui.panes.cluster import variable_questions
        from llmb_tui.wizard.events import ProfileSaved

        env = dict(site.profile.env)
        for question, variables in variable_questions(site):
            if await self.app.push_screen_wait(ConfirmDialog("Site variables", question, "Use", "Skip")):
                env |= variables
        profile = replace(site.profile, env=tuple(env.items()))
        if profile == site.profile:
            return
        await run_in_thread(self._services.clusters.change, site.profile, profile)
        self.dispatch(ProfileSaved(profile))

    # Work in threads.

    @background(group="start")
    async def _start(self) -> None:
        try:
            first = await run_in_thread(_read_start, self._services)
        except LlmbError as error:
            from llmb_tui.ui.dialogs import Failure

            # Without presets there are no choices.
            await self.app.push_screen_wait(Failure(error))
            self.app.exit(return_code=error.exit_code)
            return
        self._apply(first)
        self.call_after_refresh(self._complete)

    @background(group="start")
    async def _complete(self) -> None:
        """Load the other panes and the procedures after the first choices are painted."""
        from llmb_tui.ui.wizard_effects import load_procedures

        await self.body.complete()
        await run_in_thread(load_procedures)
        pending, self._pending_events = self._pending_events or [], None
        for event in pending:
            self.dispatch(event)
        self.call_after_refresh(self.post_message, self.Started())

    @background(group="read")
    async def _read(self, effect: effects.ReadRuns | effects.ReadOwnResults) -> None:
        from llmb_tui.ui.wizard_effects import read

        try:
            self.dispatch(await run_in_thread(read, effect, self._services))
        except LlmbError as error:  # not requested by the user: a dialog would come back after each closing
            notify(self.app, f"{error.what} {error.why}".rstrip(), "warning")

    # The description is set, because Textual would otherwise store a text of the whole effect.

    @background(group="probe", exclusive=True, description="probe")
    async def _probe(self, probe: effects.Probe) -> None:
        await self._perform(probe)

    @background(group="task", description="task")
    async def _run_task(self, task: effects.ClusterTask) -> None:
        await self._perform(task)

    async def _perform(self, task: effects.ClusterTask) -> None:
        """Perform a task in a thread; events of a replaced probe are dropped."""
        from llmb_tui.ui.wizard_effects import perform

        worker = get_current_worker()

        def dispatch_event(event: events.Event) -> None:
            if not worker.is_cancelled:
                self.call_later(self.dispatch, event)

        await run_in_thread(perform, task, self._services, self._prompter, dispatch_event, self._stop)

    def _show_link_health(self) -> None:
        """Show the health of the connection to the chosen cluster, which may break while it is idle."""
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
    """Make the first state; blocks. It imports modules that the first frame does not need."""
    from llmb_tui.ui.wizard_effects import read_start

    if services.before_start is not None:
        services.before_start()
    return read_start(services)
