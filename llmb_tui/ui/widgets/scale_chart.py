"""`ScaleChart`: step time and MFU over the number of GPUs. `scale_lines` draws it, the widget colours it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from llmb_tui.answers.writers import plot
from llmb_tui.answers.writers.plot import UNICODE, Glyphs, Part
from llmb_tui.language.quantities import percent_digits, step_time_digits
from llmb_tui.ui.text import chart_content

if TYPE_CHECKING:
    from llmb_tui.plan.over_scale import AtScale
    from llmb_tui.plan.plan import Estimate

# Free columns outside the outermost points, for the ends of their labels.
_MARGIN = 2
_LABELS = 5
"""Cells left of a plot, as wide as the label `MFU %`."""
_TWO_FROM_HEIGHT = 14
LEAST_HEIGHT = 6
"""Minimum height of the chart in lines."""
Values = tuple[float, float, float]
"""Low end of the band, value, high end of the band."""


@dataclass(frozen=True, slots=True)
class ScaleAxis:
    """The columns of a plot over the number of GPUs, logarithmic."""

    points: tuple[AtScale, ...]
    width: int

    def column(self, gpus: int) -> int:
        first, last = math.log2(self.points[0].gpus), math.log2(self.points[-1].gpus)
        free = self.width - 1 - 2 * _MARGIN
        return _MARGIN + (round((math.log2(gpus) - first) / (last - first) * free) if last > first else free // 2)

    def label_row(self, label: Callable[[AtScale], str], first: int) -> str:
        """Labels under the points, as many as fit; the scale `first` gets its label before the others."""
        cells = [" "] * self.width
        for point in sorted(self.points, key=lambda point: point.gpus != first):
            text = label(point)
            start = min(max(self.column(point.gpus) - len(text) // 2, 0), self.width - len(text))
            if start >= 0 and not "".join(cells[max(start - 1, 0) : start + len(text) + 1]).strip():
                cells[start : start + len(text)] = text
        return "".join(cells)


def scale_lines(
    points: Sequence[AtScale], chosen: int, size: tuple[int, int], glyphs: Glyphs = UNICODE
) -> list[list[Part]]:
    """The chart as `height` lines of parts; the parts of each line fill exactly `width` cells.

    `chosen`: the chosen scale. `size`: (width, height) in cells. MFU has a second plot if the height allows it; if not,
    its figures are under the scales.
    """
    width, height = size
    legend = f"{glyphs.full} published {glyphs.hollow} estimated {glyphs.band} band"
    if not points or height < LEAST_HEIGHT:
        text = "no step time estimate at any scale" if not points else ""
        return [plot.text_row(text if row == 0 else "", width) for row in range(height)]
    two = height >= _TWO_FROM_HEIGHT
    estimates = [point.estimate for point in points]
    times = [(estimate.low_s, estimate.step_time_s, estimate.high_s) for estimate in estimates]
    shares = list(map(_mfu, estimates))
    rows = (height - 3) // 2 if two else height - 3
    labels = max(_LABELS, *(len(step_time_digits(value)) for values in times for value in values))
    axis = ScaleAxis(tuple(points), width - labels - 2)
    lines = [plot.text_row(f"{'step time, s':<15}{legend}", width)]
    lines += _plot(axis, times, chosen, height - 3 - rows if two else rows, glyphs)
    if two:
        lines += [plot.text_row("MFU, %", width), *_plot(axis, shares, chosen, rows, glyphs)]
    gpus = axis.label_row(lambda point: f"[{point.gpus}]" if point.gpus == chosen else str(point.gpus), chosen)
    lines.append(plot.text_row(f"{'GPUs':<{labels + 2}}{gpus}", width))
    if not two:
        figures = axis.label_row(lambda point: percent_digits(point.estimate.mfu_pct), chosen)
        lines.append(plot.text_row(f"{'MFU %':<{labels + 2}}{figures}", width))
    return lines


def _plot(axis: ScaleAxis, values: Sequence[Values], chosen: int, rows: int, glyphs: Glyphs) -> list[list[Part]]:
    scale = plot.round_scale(min(low for low, _, _ in values), max(high for _, _, high in values), rows)
    canvas = plot.blank(axis.width, rows)
    columns = [axis.column(point.gpus) for point in axis.points]
    for column in range(columns[0], columns[-1] + 1):
        low, high = _band_at(column, columns, values)
        for row in scale.rows_between(low, high):
            canvas[row][column] = (glyphs.band, "band")
    for column, point, (_, value, _) in zip(columns, axis.points, values, strict=True):
        if point.gpus == chosen:
            for cells in canvas:
                if cells[column][1] == "blank":
                    cells[column] = (glyphs.chosen, "now")
        mark = glyphs.full if point.published else glyphs.hollow
        canvas[scale.row(value)][column] = (
            mark,
            "now" if point.gpus == chosen else "published" if point.published else "expected",
        )
    return plot.labelled(scale, canvas, glyphs, _LABELS)


def _band_at(column: int, columns: Sequence[int], values: Sequence[Values]) -> tuple[float, float]:
    """The band between two points, interpolated linearly on the logarithmic axis."""
    right = next(index for index, known in enumerate(columns) if known >= column)
    left = max(right - 1, 0)
    span = columns[right] - columns[left]
    part = (column - columns[left]) / span if span else 0.0
    before, after = values[left], values[right]
    return before[0] + (after[0] - before[0]) * part, before[2] + (after[2] - before[2]) * part


def _mfu(estimate: Estimate) -> Values:
    """MFU with its band: the longer the step, the lower the MFU."""
    work = estimate.mfu_pct * estimate.step_time_s
    return work / estimate.high_s, estimate.mfu_pct, work / estimate.low_s


class ScaleChart(Widget):
    """The chart of the previewed selection."""

    points: reactive[tuple[AtScale, ...]] = reactive["tuple[AtScale, ...]"](())
    chosen: reactive[int] = reactive(0)

    def render(self) -> Content:
        size = self.content_size
        return chart_content(scale_lines(self.points, self.chosen, (size.width, size.height), plot.terminal_glyphs()))
