"""`WizardBody`: rail, form and preview of the wizard. It renders the view it is given."""

from __future__ import annotations

from textual import getters
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import ContentSwitcher, Static

from llmb_tui.ui.panes.choosing import HardwarePane, WorkloadPane
from llmb_tui.ui.panes.cluster import ClusterPane
from llmb_tui.ui.panes.install import InstallPane
from llmb_tui.ui.panes.pane import Give, Pane
from llmb_tui.ui.panes.review import ReviewPane, RunPane
from llmb_tui.ui.panes.scale import ScalePane
from llmb_tui.ui.text import MUTED, line
from llmb_tui.ui.view import View
from llmb_tui.ui.widgets.preview import Preview
from llmb_tui.ui.widgets.rail import Rail, RailStep
from llmb_tui.ui.widgets.remarks import Remarks
from llmb_tui.wizard.layout import other_layout
from llmb_tui.wizard.steps import TITLES, StepId, mark, problems, summary

_PANES: dict[StepId, type[Pane]] = {
    StepId.WORKLOAD: WorkloadPane,
    StepId.HARDWARE: HardwarePane,
    StepId.SCALE: ScalePane,
    StepId.CLUSTER: ClusterPane,
    StepId.INSTALL: InstallPane,
    StepId.REVIEW: ReviewPane,
    StepId.RUN: RunPane,
}
# More errors than this at one step are in the preview.
_ISSUES = 2


class Issues(Remarks):
    """The errors that stand against the current step, under its form."""


class WizardBody(Horizontal):
    """Where the person is, what is asked, and what will run."""

    rail = getters.query_one(Rail)
    preview = getters.query_one(Preview)
    clusters = getters.query_one(ClusterPane)

    def __init__(self, give: Give) -> None:
        super().__init__(id="body")
        self._give = give
        self._step = StepId.WORKLOAD
        self._charted: View | None = None
        """The view whose chart is still to be drawn."""

    def compose(self) -> ComposeResult:
        """Left to right; below 100 columns from top to bottom."""
        yield Rail()
        with Vertical(id="form"):
            yield Static(id="going", markup=False)
            with ContentSwitcher(initial=f"pane-{self._step.name.lower()}"):
                yield _PANES[self._step](self._give)
            yield Issues(id="issues")
        yield Preview()

    def on_mount(self) -> None:
        """The steps are known before the presets."""
        self.go(self._step)
        self.rail.steps = tuple(RailStep(step, "open", "") for step in StepId)

    async def complete(self) -> None:
        """Make the panes that are not seen first. They wait until the first one is painted."""
        rest = [pane(self._give) for step, pane in _PANES.items() if step is not self._step]
        for pane in rest:
            pane.display = False
        await self.query_one(ContentSwitcher).mount_all(rest)

    @property
    def pane(self) -> Pane:
        """The form of the current step."""
        return self.query_one(_PANES[self._step])

    def go(self, step: StepId) -> None:
        """Turn to a step."""
        self._step = step
        self.rail.current = step
        self.query_one("#form").border_title = TITLES[step]
        self.query_one(ContentSwitcher).current = f"pane-{step.name.lower()}"

    def show(self, view: View) -> None:
        """Everything that depends on the view, in one frame."""
        facts = view.found.facts()
        other = bool(other_layout(view.usual, view.plan))
        self.rail.steps = tuple(
            RailStep(step, mark(view.answers, view.plan, facts, step), summary(view.answers, facts, step, other))
            for step in StepId
        )
        self.preview.made = view.plan
        self.preview.here = view.here
        self._chart_soon(view)
        self.pane.show(view)
        # The later panes say themselves what stands against them.
        found = problems(view.answers, view.plan, facts, self._step) if self._step <= StepId.SCALE else ()
        errors = (one for one in found if one.severity == "error" and one.field not in self.pane.tells)
        self.query_one(Issues).problems = tuple(errors)[:_ISSUES]

    def _chart_soon(self, view: View) -> None:
        """Draw the chart once the key is answered: it asks for a dozen plans."""
        if self._charted is None:
            self.call_after_refresh(self._chart)
        self._charted = view

    def _chart(self) -> None:
        from llmb_tui.plan.over_scale import over_scale  # noqa: PLC0415 - not needed for the first frame

        view, self._charted = self._charted, None
        if view is not None:
            self.preview.points = over_scale(view.catalog, view.plan.selection) if view.plan else ()

    def show_going(self, count: int) -> None:
        """Say that runs are going, and which key leads there."""
        words, hint = (f"{count} runs are going", "J lists them") if count > 1 else ("1 run is going", "w watches it")
        banner = self.query_one("#going", Static)
        banner.display = count > 0
        banner.update(line(("▸ ", "$text-accent"), (words, "bold"), (f"   {hint}", MUTED)))
