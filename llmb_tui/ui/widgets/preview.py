"""`Preview`: the plan of the selection with its expected step time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual import getters
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.reactive import var

from llmb_tui.ui.widgets.figures import PlanFigures, TimeParts
from llmb_tui.ui.widgets.scale_chart import LEAST_HEIGHT, ScaleChart
from llmb_tui.ui.widgets.texts import ScrolledRemarks, WrappedLines

if TYPE_CHECKING:
    from llmb_tui.plan.over_scale import AtScale
    from llmb_tui.wizard.state import WizardState

# Lines that breakdown and chart leave to the remarks, with the blank line above them.
_MIN_REMARKS = 3
_MAX_CHART = 18


@dataclass(frozen=True, slots=True)
class PreviewLayout:
    """Visible parts of the preview."""

    figures: bool
    breakdown: bool
    chart: int
    """Lines of the chart; 0 hides it."""
    remarks: bool
    scrolls: bool
    """Whether the remarks are longer than their place."""
    blank: int = 1
    """Blank lines above the chart."""


def preview_layout(height: int, figures: int, breakdown: int, has_chart: bool, remarks: int) -> PreviewLayout:
    """Distribute `height` lines: the figures get all of theirs, then the remarks, and the chart gets the rest.

    `breakdown` and `remarks` are numbers of lines with the blank line above, or 0 without content. Breakdown and chart
    leave a few lines to the remarks, which scroll if they are longer. The blank line above the chart is dropped before
    the chart.
    """
    reserved = min(remarks, _MIN_REMARKS)
    free = height - figures
    shows_breakdown = 0 < breakdown <= free - reserved
    free -= breakdown if shows_breakdown else 0
    lines = min(max(free - 1 - remarks, LEAST_HEIGHT), _MAX_CHART)
    blank = int(free - 1 - lines >= reserved)
    shows_chart = has_chart and (shows_breakdown or not breakdown) and free - blank - lines >= reserved
    free -= blank + lines if shows_chart else 0
    chart, above = (lines, blank) if shows_chart else (0, 1)
    return PreviewLayout(True, shows_breakdown, chart, remarks > 0, remarks > free, above)


class Preview(Vertical):
    """Figures, step time breakdown, chart over the scales, and remarks on the plan.

    If the style sheet gives the figures a fixed height, only they are shown, in three lines.
    """

    state: var[WizardState | None] = var["WizardState | None"](None)
    points: var[tuple[AtScale, ...]] = var["tuple[AtScale, ...]"](())
    charted: var[bool] = var(False)
    """Whether breakdown and chart fill the whole preview."""

    figures = getters.query_one(PlanFigures)
    breakdown = getters.query_one(TimeParts)
    chart = getters.query_one(ScaleChart)
    remarks = getters.query_one(ScrolledRemarks)

    def compose(self) -> ComposeResult:
        yield PlanFigures()
        yield TimeParts()
        yield ScaleChart().data_bind(Preview.points)
        yield ScrolledRemarks(can_focus=False)

    def on_mount(self) -> None:
        self.border_title = "Plan"

    def watch_state(self, state: WizardState | None) -> None:
        """Update all parts in one frame: the dozen plans of the chart take a tenth of the time of painting."""
        if state is None:
            return
        from llmb_tui.plan.over_scale import over_scale

        plan, chosen = state.proposal.plan, state.proposal.selection
        self.points = over_scale(state.rules.catalog, chosen) if chosen is not None else ()
        self.chart.chosen = plan.selection.scale if plan else 0
        self.figures.plan, self.figures.measured = plan, state.measured
        self.breakdown.parts = plan.estimate.breakdown if plan and plan.estimate else None
        self.remarks.problems = plan.problems if plan else ()
        self._arrange()

    def turn(self) -> bool:
        """Show the chart alone, or all parts again. Returns whether the chart is shown alone."""
        self.charted = bool(self.points) and not self.charted
        return self.charted

    def _arrange(self) -> None:
        layout = self._layout()
        chart, remarks = self.chart, self.remarks
        self.figures.display = layout.figures
        self.breakdown.display = layout.breakdown
        remarks.display = layout.remarks
        chart.display = layout.chart > 0
        if layout.chart and (chart.styles.height is None or chart.styles.height.value != layout.chart):
            chart.styles.height = layout.chart
        chart.styles.margin = (layout.blank, 0, 0, 0)
        if remarks.can_focus != layout.scrolls:
            remarks.can_focus = layout.scrolls
        # Whether the chart is hidden until the user turns to it.
        partial = bool(self.points) and not (layout.figures and layout.chart)
        if partial != self.screen.has_class("-partial"):
            self.screen.set_class(partial, "-partial")
            self.screen.refresh_bindings()

    watch_charted = on_resize = _arrange

    def _layout(self) -> PreviewLayout:
        width, height = self.content_size
        if not self.figures.styles.auto_dimensions:
            return PreviewLayout(True, False, 0, False, False)
        breakdown = _lines(self.breakdown, width)
        if self.charted:
            return PreviewLayout(False, breakdown > 0, max(height - breakdown - 1, LEAST_HEIGHT), False, False)
        remarks = _lines(self.remarks, width - 1)
        return preview_layout(height, len(self.figures.wrapped(width)), breakdown, bool(self.points), remarks)


def _lines(part: WrappedLines | ScrolledRemarks, width: int) -> int:
    """Number of lines of a part with the blank line above it; 0 without content."""
    rows = len(part.wrapped(width))
    return rows + 1 if rows else 0
