"""`ChartView`: a `Chart` drawn in cells over the whole widget, with times in the local time zone."""

from __future__ import annotations

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from llmb_tui.analysis.chart import Chart
from llmb_tui.answers.writers.chart_rows import chart_rows
from llmb_tui.answers.writers.plot import terminal_glyphs
from llmb_tui.ui.text import chart_content


class ChartView(Widget):
    """Draws a chart; empty without one."""

    chart: reactive[Chart | None] = reactive["Chart | None"](None)
    this: reactive[str] = reactive("")
    """Name of the highlighted point."""

    def __init__(self, chart: Chart | None = None) -> None:
        super().__init__()
        self.set_reactive(ChartView.chart, chart)

    def render(self) -> Content:
        if self.chart is None:
            return Content("")
        size = self.content_size
        return chart_content(
            chart_rows(self.chart, (size.width, size.height), terminal_glyphs(), self.this, local=True)
        )
