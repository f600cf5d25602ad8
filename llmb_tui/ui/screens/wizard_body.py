"""`WizardBody`: rail, form and preview of the wizard for one state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import getters
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.reactive import var
from textual.widgets import ContentSwitcher, Static

from llmb_tui.ui.panes.choosing import HardwarePane, WorkloadPane
from llmb_tui.ui.panes.pane import Dispatch, Pane
from llmb_tui.ui.text import MUTED, line
from llmb_tui.ui.widgets.preview import Preview
from llmb_tui.ui.widgets.rail import Rail
from llmb_tui.ui.widgets.texts import Paragraphs, remarks
from llmb_tui.wizard.steps import TITLES, StepId

if TYPE_CHECKING:
    from llmb_tui.wizard.state import WizardState

# Further errors of a step are in the preview.
_ISSUES = 2


class WizardBody(Horizontal):
    """The list of steps, the form of the current step, and the preview of the run."""

    rail = getters.query_one(Rail)
    preview = getters.query_one(Preview)
    issues = getters.query_one("#issues", Paragraphs)
    active_runs = getters.query_one("#active-runs", Static)

    state: var[WizardState | None] = var["WizardState | None"](None)

    def __init__(self, dispatch: Dispatch) -> None:
        super().__init__(id="body")
        self._dispatch = dispatch
        self._step = StepId.WORKLOAD

    def compose(self) -> ComposeResult:
        yield Rail().data_bind(WizardBody.state)
        with Vertical(id="form"):
            yield Static(id="active-runs", markup=False)
            with ContentSwitcher(initial=_pane_id(self._step)):
                yield WorkloadPane(self._dispatch)
            yield Paragraphs(id="issues")
        yield Preview().data_bind(WizardBody.state)

    def on_mount(self) -> None:
        """Show the first step before the presets are loaded."""
        self._go_to(self._step)

    async def complete(self) -> None:
        """Make the panes of the later steps; called after the first pane is painted."""
        from llmb_tui.ui.panes.cluster import ClusterPane
        from llmb_tui.ui.panes.install import InstallPane
        from llmb_tui.ui.panes.review import ReviewPane, RunPane
        from llmb_tui.ui.panes.scale import ScalePane

        later_panes = (HardwarePane, ScalePane, ClusterPane, InstallPane, ReviewPane, RunPane)
        panes = [pane(self._dispatch) for pane in later_panes]
        for pane in panes:
            pane.display = False
        await self.query_one(ContentSwitcher).mount_all(panes)

    @property
    def pane(self) -> Pane:
        return self.query_one(f"#{_pane_id(self._step)}", Pane)

    def watch_state(self, before: WizardState | None, state: WizardState | None) -> None:
        if state is None:
            return
        from llmb_tui.wizard.gates import problems

        if state.step is not self._step:
            self._go_to(state.step)
        self.pane.show(state)
        # The panes of the later steps show their problems themselves.
        step_problems = problems(state, state.step) if state.step <= StepId.SCALE else ()
        errors = [
            each
            for each in step_problems
            if each.severity == "error" and each.field not in self.pane.shown_error_fields
        ]
        if (parts := remarks(errors[:_ISSUES])) != self.issues.parts:
            self.issues.parts = parts
            self.call_after_refresh(self.pane.keep_in_view)
        if before is None or state.active_runs != before.active_runs:
            self._show_active_runs(len(state.active_runs))

    def _go_to(self, step: StepId) -> None:
        self._step = step
        self.query_one("#form").border_title = TITLES[step]
        self.query_one(ContentSwitcher).current = _pane_id(step)

    def _show_active_runs(self, count: int) -> None:
        words, hint = (f"{count} active runs", "J: list") if count > 1 else ("1 active run", "w: watch")
        self.active_runs.display = count > 0
        self.active_runs.update(line(("▸ ", "$text-accent"), (words, "bold"), (f"   {hint}", MUTED)))


def _pane_id(step: StepId) -> str:
    """Id of the pane of a step; the pane uses the same."""
    return f"pane-{step.name.lower()}"
