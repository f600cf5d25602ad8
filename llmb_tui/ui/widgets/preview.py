"""`Preview`: what will run and how fast it should be, for the plan it is given. It recomputes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.reactive import var

from llmb_tui.plan.over_scale import AtScale
from llmb_tui.plan.plan import Plan
from llmb_tui.ui.widgets.figures import Figures
from llmb_tui.ui.widgets.remarks import Remarks
from llmb_tui.ui.widgets.scale_chart import LEAST_HEIGHT, ScaleChart
from llmb_tui.ui.widgets.scroller import Scroller
from llmb_tui.ui.widgets.time_parts import TimeParts

if TYPE_CHECKING:
    from llmb_tui.plan.calibration import MeasuredHere

# Lines that the remarks keep, the blank one above them included, before picture and chart give way.
_REMARKS_KEPT = 3
_MOST_CHART = 18


@dataclass(frozen=True, slots=True)
class Shares:
    """Who is seen in the preview, and the lines of the chart; 0 hides it."""

    figures: bool
    picture: bool
    chart: int
    remarks: bool
    scrolls: bool
    """There is more to be said than is seen."""
    blank: int = 1
    """Lines above the chart."""


def share(height: int, figures: int, picture: int, chart: bool, said: int) -> Shares:
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
    return Shares(True, pictured, lines if charted else 0, said > 0, said > left, blank if charted else 1)


class Preview(Vertical):
    """Figures, where the time goes, the chart over the scales, and what is to be said about the plan.

    Where the style sheet gives the figures a fixed height, they are the strip of three lines.
    """

    made: var[Plan | None] = var[Plan | None](None)
    here: var[MeasuredHere | None] = var["MeasuredHere | None"](None)
    points: var[tuple[AtScale, ...]] = var[tuple[AtScale, ...]](())
    charted: var[bool] = var(False)
    """Picture and chart alone, in the whole space."""

    def compose(self) -> ComposeResult:
        """Figures first; what is to be said scrolls."""
        yield Figures()
        yield TimeParts()
        yield ScaleChart()
        with Scroller(can_focus=False):
            yield Remarks()

    def on_mount(self) -> None:
        """Name the box."""
        self.border_title = "What will run"

    def watch_made(self, made: Plan | None) -> None:
        """Show the plan in the frame in which it was made."""
        self.query_one(Figures).made = made
        self.query_one(TimeParts).parts = made.estimate.breakdown if made and made.estimate else None
        self.query_one(ScaleChart).chosen = made.selection.scale if made else 0
        self.query_one(Remarks).problems = made.problems if made else ()
        self._arrange()

    def watch_here(self, here: MeasuredHere | None) -> None:
        """Show what was measured on the chosen cluster."""
        self.query_one(Figures).here = here
        self._arrange()

    def watch_points(self, points: tuple[AtScale, ...]) -> None:
        """Draw the chart."""
        self.query_one(ScaleChart).points = points
        self._arrange()

    def watch_charted(self) -> None:
        """Show the other half."""
        self._arrange()

    def on_resize(self, _event: events.Resize) -> None:
        """Share another space."""
        self._arrange()

    def turn(self) -> bool:
        """Turn to the chart, or back from it. True where it is seen now."""
        self.charted = bool(self.points) and not self.charted
        return self.charted

    def _arrange(self) -> None:
        """Give each part its lines."""
        shares = self._shares()
        chart, scroller = self.query_one(ScaleChart), self.query_one(Scroller)
        self.query_one(Figures).display = shares.figures
        self.query_one(TimeParts).display = shares.picture
        scroller.display = shares.remarks
        chart.display = shares.chart > 0
        if shares.chart and (chart.styles.height is None or chart.styles.height.value != shares.chart):
            chart.styles.height = shares.chart
        chart.styles.margin = (shares.blank, 0, 0, 0)
        if scroller.can_focus != shares.scrolls:
            scroller.can_focus = shares.scrolls
        # Picture or chart have to be turned to.
        partial = bool(self.points) and not (shares.figures and shares.chart)
        if partial != self.screen.has_class("-partial"):
            self.screen.set_class(partial, "-partial")
            self.screen.refresh_bindings()

    def _shares(self) -> Shares:
        width, height = self.content_size
        figures = self.query_one(Figures)
        if not figures.styles.auto_dimensions:
            return Shares(True, False, 0, False, False)
        picture = self._lines(TimeParts, width)
        if self.charted:
            return Shares(False, picture > 0, max(height - picture - 1, LEAST_HEIGHT), False, False)
        said = self._lines(Remarks, width - 1)
        return share(height, len(figures.rows(width)), picture, bool(self.points), said)

    def _lines(self, kind: type[TimeParts | Remarks], width: int) -> int:
        """Lines of a part with the blank one above it; none where there is nothing in it."""
        rows = len(self.query_one(kind).rows(width))
        return rows + 1 if rows else 0
