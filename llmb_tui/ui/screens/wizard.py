"""`WizardScreen`: the seven steps. It holds the answers and what was found, and gives them to the body to render."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Footer, Input
from textual.worker import Worker, WorkerState

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.errors import Trouble
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.selection import Selection
from llmb_tui.services import Services
from llmb_tui.ui.clipboard import copy
from llmb_tui.ui.daemon import in_daemon
from llmb_tui.ui.dialogs import Confirm, Failure
from llmb_tui.ui.found import Found
from llmb_tui.ui.launching import launched_words
from llmb_tui.ui.looks import Looks
from llmb_tui.ui.not_public import NotPublic
from llmb_tui.ui.own_results import Own, read_own
from llmb_tui.ui.panes.cluster import ClusterPane
from llmb_tui.ui.panes.install import InstallPane
from llmb_tui.ui.panes.layout import LayoutPart
from llmb_tui.ui.panes.pane import Pane
from llmb_tui.ui.panes.review import ReviewPane, RunPane, agreement
from llmb_tui.ui.planned import Planned, planned
from llmb_tui.ui.prompter import ModalPrompter
from llmb_tui.ui.screens.wizard_body import WizardBody
from llmb_tui.ui.screens.wizard_keys import HELP, KEYS
from llmb_tui.ui.start import Again, Saved, Start, read_again, read_start
from llmb_tui.ui.text import tell
from llmb_tui.ui.view import View
from llmb_tui.ui.widgets.choices import ChoiceList
from llmb_tui.ui.widgets.rail import Rail
from llmb_tui.ui.widgets.status_bar import StatusBar
from llmb_tui.ui.work import ClusterWork, Learned
from llmb_tui.wizard.answers import Answers, Field, answer, command, recipe_of, settled
from llmb_tui.wizard.steps import StepId, confirm, following, preceding, problems

if TYPE_CHECKING:
    from llmb_tui.launch.run import Run

_PULSE_S = 1.0


class WizardScreen(Screen[None]):
    """One wizard from the choice of a workload to the submitted run."""

    HELP = HELP
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-normal"), (160, "-wide")]  # noqa: RUF012 - Textual's own form
    BINDINGS: ClassVar[list[BindingType]] = KEYS
    body = getters.query_one(WizardBody)
    bar = getters.query_one(StatusBar)

    class OpenRun(Message):
        """A run's own screen is wanted."""

        def __init__(self, run_id: str) -> None:
            super().__init__()
            self.run_id = run_id

    def __init__(self, services: Services, prompter: ModalPrompter) -> None:
        super().__init__()
        self._services = services
        self._prompter = prompter
        self._work = ClusterWork(self, services)
        self._looks = Looks(self, self._work, prompter, lambda: (self._found, self._planned.plan))
        self._step = StepId.WORKLOAD
        self._answers = Answers()
        self._found = Found()
        self._planned = Planned()
        self._own = Own()
        self._not_public = NotPublic()
        self._catalog: Catalog | None = None
        self._make: Callable[[Catalog, Selection], Plan] | None = None
        self._profiles: tuple[ClusterProfile, ...] = ()
        self._going: tuple[Run, ...] = ()

    def compose(self) -> ComposeResult:
        """Header, body, keys."""
        yield StatusBar()
        yield WizardBody(self._give)
        yield Footer(compact=True)

    def on_mount(self) -> None:
        """Paint first; read presets, clusters and runs after it."""
        self.call_after_refresh(self._begin)
        self.set_interval(_PULSE_S, self._feel_link)

    async def _begin(self) -> None:
        # What is read arrives as a message, and this screen takes none before the panes are there.
        self._in_thread(lambda: read_start(self._services))
        await self.body.complete()

    def on_screen_resume(self) -> None:
        """A run may have ended while it was watched."""
        if self._catalog is not None:
            launched = self._found.launched
            self._in_thread(lambda: read_again(self._services, launched))
            self._read_own()

    def on_unmount(self) -> None:
        """What runs on the cluster goes on there."""
        self._work.stop()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        """Hide the keys that mean nothing here."""
        typing = isinstance(self.focused, Input)
        if action == "preview":
            return self.has_class("-narrow") or self.has_class("-partial")
        if action == "find":
            body = self.query_one_optional(WizardBody)
            return body is not None and body.is_mounted and body.pane.FINDABLE and not typing
        return typing if action == "leave_field" else True

    # What the person does.

    def action_back(self) -> None:
        """Go one step back; never blocked."""
        self._go(preceding(self._step))

    @on(Pane.Next)
    def action_next(self) -> None:
        """Go on, unless an error stands against what was answered at this step."""
        if self._catalog is None:
            return
        facts = self._found.facts()
        against = problems(self._answers, self._planned.plan, facts, self._step)
        error = next((problem for problem in against if problem.severity == "error"), None)
        if error is not None and self._step <= StepId.SCALE:
            tell(self.app, f"{error.reason} {error.fix}".strip(), "warning")
            return
        self._answers = confirm(self._catalog, self._answers, self._step)
        self._go(following(self._answers, self._planned.plan, facts, self._step))

    def action_go(self, step: int) -> None:
        """Go straight to a step; going forward answers the one that is left."""
        if self._catalog is not None and step > self._step:
            self._answers = confirm(self._catalog, self._answers, self._step)
        self._go(StepId(step))

    @on(Rail.Chosen)
    def _rail_clicked(self, event: Rail.Chosen) -> None:
        self.action_go(event.step)

    @on(ChoiceList.Taken)
    @on(Input.Submitted)
    def action_enter(self) -> None:
        """Do what the step is for."""
        self.body.pane.enter()

    def action_leave_field(self) -> None:
        """From a field back to the first list."""
        self.body.pane.arrive()

    def action_find(self) -> None:
        """Open the search of the list."""
        self.body.pane.find()

    def action_preview(self) -> None:
        """Turn to the next of what does not fit together: the form, the whole preview, the chart."""
        if self.has_class("-narrow") and not self.has_class("-preview"):
            self.add_class("-preview")
        elif not self.body.preview.turn():
            self.remove_class("-preview")

    def action_copy(self) -> None:
        """The choice as a command line, on the clipboard."""
        if self._planned.plan is not None:
            text = command(self._planned.plan.selection, self._answers.cluster, self._answers.procedure)
            copy(self.app, text, text)

    def action_watch(self) -> None:
        """Open the newest run that is going."""
        if self._going:
            self.post_message(self.OpenRun(self._going[0].id))

    # What the panes ask for.

    @on(ClusterPane.Picked)
    def _picked(self, event: ClusterPane.Picked) -> None:
        self._answers = replace(self._answers, cluster=event.profile_name)
        self._replan()

    @on(ClusterPane.Asked)
    def _asked(self) -> None:
        self._looks.now(quiet=False)

    @on(ClusterPane.Edit)
    def _edit(self, event: ClusterPane.Edit) -> None:
        from llmb_tui.ui.screens.cluster_editor import ClusterEditor  # noqa: PLC0415 - not needed for the first frame

        def saved(profile: ClusterProfile | None) -> None:
            if profile is not None:
                self._in_thread(lambda: Saved(profile, self._services.profiles()))

        self.app.push_screen(ClusterEditor(self._services, self._prompter, event.profile), saved)

    @on(InstallPane.Start)
    def _install(self) -> None:
        profile, plan = self._found.profile, self._planned.plan
        if profile is None or plan is None or not plan.launchable:
            tell(self.app, "Install needs a cluster and a selection that can be launched.", "warning")
        else:
            self._prompter.quiet = False
            self._work.install(profile, plan, self._found.procedure)

    @on(ReviewPane.Submit)
    def _submit(self) -> None:
        profile, draft, procedure = self._found.profile, self._found.draft, self._found.procedure
        if self._catalog is None or profile is None or draft is None:
            return

        published = recipe_of(self._catalog, self._answers).published if procedure == "recipe" else None

        def agreed(yes: bool | None) -> None:
            if yes:
                self._prompter.quiet = False
                self._work.submit(profile, draft, procedure)

        self.app.push_screen(Confirm("Submit", agreement(draft.run.plan, profile, published), "Submit"), agreed)

    @on(LayoutPart.Listed)
    def _list_layouts(self) -> None:
        from llmb_tui.ui.screens.layouts import LayoutsDialog  # noqa: PLC0415 - not needed for the first frame

        def take(layout: str | None) -> None:
            if layout is not None:
                self._give("layout", layout)

        if self._catalog is not None and self._planned.selection is not None:
            self.app.push_screen(LayoutsDialog(self._catalog, self._planned.selection), take)

    @on(RunPane.Open)
    def _open(self) -> None:
        if self._found.launched is not None:
            self.post_message(self.OpenRun(self._found.launched.id))

    @on(RunPane.Again)
    def _again(self) -> None:
        self._found = self._found.learned({"draft": None, "launched": None})
        self._go(StepId.WORKLOAD)

    # What comes from threads.

    def _in_thread(self, call: Callable[[], Start | Saved | Again | Own]) -> None:
        self.run_worker(in_daemon(call), exit_on_error=False)

    @on(Worker.StateChanged)
    def _worker_changed(self, event: Worker.StateChanged) -> None:
        result = event.worker.result
        if event.state is WorkerState.ERROR:
            self._failed(event.worker.error)
        elif isinstance(result, Start):
            self._started(result)
        elif isinstance(result, Again):
            self._show_going(result.going)
            if self._found.launched is not None and result.launched is not None:
                self._found = self._found.learned({"launched": result.launched})
            self._show()
        elif isinstance(result, Own) and result.cluster == self._own.cluster:
            self._own = result
            self._show()
        elif isinstance(result, Saved):
            self._offer(result.profiles)
            self._answers = replace(self._answers, cluster=result.profile.name)
            self._replan()
            self._looks.now(quiet=False)

    def _failed(self, error: BaseException | None) -> None:
        trouble = error if isinstance(error, Trouble) else Trouble("This should not have happened.", repr(error))

        def leave(_: None) -> None:
            # Without presets there is nothing to choose from.
            if self._catalog is None:
                self.app.exit(return_code=trouble.exit_code)

        self.app.push_screen(Failure(trouble), leave)

    def _started(self, start: Start) -> None:
        self._catalog, self._make, self._answers = start.catalog, start.make, start.answers
        self._offer(start.profiles)
        self._show_going(start.going)
        self._replan()
        self.body.pane.arrive()
        # Presets and widgets stay: a full collection that walks over them all would hold up a key for 60 ms.
        gc.collect()
        gc.freeze()

    @on(Learned)
    def _learned(self, event: Learned) -> None:
        before, of_this = self._found, event.subject == self._found.subject
        self._found = found = before.heard(event.subject, event.job, event.changes, event.over)
        if self._not_public.learn(found):
            self._replan()
        else:
            self._show()
        if not of_this and found.link != before.link:
            self._looks.soon()
        if event.changes.get("launched") is not None:
            self._launched(event.changes["launched"], of_this)
        elif event.job == "submit" and event.changes.get("trouble") is not None:
            self.app.push_screen(Failure(event.changes["trouble"]), lambda _: self._draft())
        elif of_this and event.job == "install" and event.over and self._planned.plan and found.key_would_help:
            name, key = event.subject.profile.name, found.key_would_help
            self.post_message(InstallPane.Keys(name, self._planned.plan, found.procedure, key))

    def _launched(self, run: Run, of_this: bool) -> None:
        """Open the run, unless the person has gone elsewhere while it was launched."""
        if of_this and self._step is StepId.REVIEW and self.app.screen is self:
            self._go(StepId.RUN)
            self._open()
        else:
            tell(self.app, launched_words(run))
            self.on_screen_resume()

    def _feel_link(self) -> None:
        """Show how the connection to the chosen cluster is, which may break while nobody uses it."""
        profile = self._found.profile
        health = self._services.health(profile) if profile is not None else None
        self.bar.health = health if self._found.link == "connected" else None

    # One direction: answers → plan → everything that is shown.

    def _give(self, field: Field, value: str) -> None:
        self._answers = answer(self._answers, field, value)
        self._replan()

    def _offer(self, profiles: tuple[ClusterProfile, ...]) -> None:
        self._profiles = profiles
        self.body.clusters.offer(profiles)

    def _show_going(self, going: tuple[Run, ...]) -> None:
        self._going = going
        self.body.show_going(len(going))

    def _replan(self) -> None:
        if self._catalog is None or self._make is None:
            return
        before, answers = self._planned, self._answers
        self._planned = planned(self._catalog, self._make, answers, self._profiles, self._not_public)
        self._found = self._found.about(self._planned.profile, self._planned.selection, answers.procedure)
        if self._planned.profile != before.profile:
            self._read_own()
        self._show()
        self._looks.soon()

    def _read_own(self) -> None:
        """Read what runs on the chosen cluster took; what was read of another one says nothing any more."""
        profile = self._planned.profile
        name = profile.name if profile is not None else ""
        if self._own.cluster != name:
            self._own = Own(name)
        if name:
            self._in_thread(lambda: read_own(self._services, name))

    def _go(self, step: StepId) -> None:
        if self._catalog is None:
            return
        self._step = step
        self.minimize()
        self.body.go(step)
        self.remove_class("-preview")
        self.body.preview.charted = False
        found = self._found
        if step is StepId.INSTALL and found.link == "connected" and not (found.steps or found.doing):
            self._looks.now(quiet=False)
        if step is StepId.REVIEW:
            self._draft()
        self._show()
        self.body.pane.arrive()
        self.refresh_bindings()

    def _draft(self) -> None:
        """Make the script, or the command, unless it is there or cannot be."""
        found, plan = self._found, self._planned.plan
        wanted = found.draft is None and "render" not in found.doing
        if wanted and found.profile and plan and plan.launchable:
            self._work.render(found.profile, plan, found.procedure)

    def _show(self) -> None:
        if self._catalog is None:
            return
        full, made = settled(self._catalog, self._answers), self._planned
        here = self._own.measured(made.plan)
        view = View(self._catalog, self._answers, full, made.plan, self._found, made.published, made.usual, here)
        self.body.show(view)
        self.bar.show(full, self._found)
