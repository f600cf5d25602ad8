"""`Preview`: what will run and how fast it should be."""

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

# Lines that the remarks keep, the blank one above them included, before picture and chart give way.
_REMARKS_KEPT = 3
_MOST_CHART = 18


@dataclass(frozen=True, slots=True)
class PreviewLayout:
    """Who is seen in the preview, and the lines of the chart; 0 hides it."""

    figures: bool
    picture: bool
    chart: int
    remarks: bool
    scrolls: bool
    """There is more to be said than is seen."""
    blank: int = 1
    """Lines above the chart."""


def share(height: int, figures: int, picture: int, chart: bool, said: int) -> PreviewLayout:
    """Share `height` lines: figures whole, then the remarks, and what is left to the chart.

    `picture` and `said` count the blank line above them and are 0 where there is nothing; `chart`: there is one.
    The chart leaves the remarks a few lines at least, and so does the picture; the rest is scrolled to. The last line
    that it needs is the blank one above it.
    """
    kept = min(said, _REMARKS_KEPT)
    left = height - figures
    pictured = 0 < picture <= left - kept
    left -= picture if pictured else 0
    lines = min(max(left - 1 - said, LEAST_HEIGHT), _MOST_CHART)
    blank = int(left - 1 - lines >= kept)
    charted = chart and (pictured or not picture) and left - blank - lines >= kept
    left -= blank + lines if charted else 0
    return PreviewLayout(True, pictured, lines if charted else 0, said > 0, said > left, blank if charted else 1)


class Preview(Vertical):
    """Figures, where the time goes, the chart over the scales, and what is to be said about the plan.

    Where the style sheet gives the figures a fixed height, they are the strip of three lines.
    """

    state: var[WizardState | None] = var["WizardState | None"](None)
    points: var[tuple[AtScale, ...]] = var["tuple[AtScale, ...]"](())
    charted: var[bool] = var(False)
    """Picture and chart alone, in the whole space."""

    figures = getters.query_one(PlanFigures)
    picture = getters.query_one(TimeParts)
    chart = getters.query_one(ScaleChart)
    remarks = getters.query_one(ScrolledRemarks)

    def compose(self) -> ComposeResult:
        yield PlanFigures()
        yield TimeParts()
        yield ScaleChart().data_bind(Preview.points)
        yield ScrolledRemarks(can_focus=False)

    def on_mount(self) -> None:
        self.border_title = "What will run"

    def watch_state(self, state: WizardState | None) -> None:
        """All of it in one frame: the dozen plans of the chart are made in a tenth of the time that painting takes."""
        if state is None:
            return
        from llmb_tui.plan.over_scale import over_scale

        plan, chosen = state.proposal.plan, state.proposal.selection
        self.points = over_scale(state.rules.catalog, chosen) if chosen is not None else ()
        self.chart.chosen = plan.selection.scale if plan else 0
        self.figures.plan, self.figures.measured = plan, state.measured
        self.picture.parts = plan.estimate.breakdown if plan and plan.estimate else None
        self.remarks.problems = plan.problems if plan else ()
        self._arrange()

    def turn(self) -> bool:
        """Turn to the chart, or back from it. True where it is seen now."""
        self.charted = bool(self.points) and not self.charted
        return self.charted

    def _arrange(self) -> None:
        shares = self._shares()
        chart, remarks = self.chart, self.remarks
        self.figures.display = shares.figures
        self.picture.display = shares.picture
        remarks.display = shares.remarks
        chart.display = shares.chart > 0
        if shares.chart and (chart.styles.height is None or chart.styles.height.value != shares.chart):
            chart.styles.height = shares.chart
        chart.styles.margin = (shares.blank, 0, 0, 0)
        if remarks.can_focus != shares.scrolls:
            remarks.can_focus = shares.scrolls
        # Picture or chart have to be turned to.
        partial = bool(self.points) and not (shares.figures and shares.chart)
        if partial != self.screen.has_class("-partial"):
            self.screen.set_class(partial, "-partial")
            self.screen.refresh_bindings()

    watch_charted = on_resize = _arrange

    def _shares(self) -> PreviewLayout:
        width, height = self.content_size
        if not self.figures.styles.auto_dimensions:
            return PreviewLayout(True, False, 0, False, False)
        picture = _lines(self.picture, width)
        if self.charted:
            return PreviewLayout(False, picture > 0, max(height - picture - 1, LEAST_HEIGHT), False, False)
        said = _lines(self.remarks, width - 1)
        return share(height, len(self.figures.wrapped(width)), picture, bool(self.points), said)


def _lines(part: WrappedLines | ScrolledRemarks, width: int) -> int:
    """Lines of a part with the blank one above it; none where there is nothing in it."""
    rows = len(part.wrapped(width))
    return rows + 1 if rows else 0
