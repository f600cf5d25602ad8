"""`StepChart`: step time over the steps, with the expected band. `chart_lines` draws it, the widget colours it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from textual.content import Content

from llmb_tui.analysis.chart import shown_values
from llmb_tui.answers.writers import plot
from llmb_tui.answers.writers.plot import UNICODE, Canvas, Glyphs, Part, Scale
from llmb_tui.language.quantities import count, step_time_digits, step_time_range
from llmb_tui.language.states import method_phrase
from llmb_tui.language.ticks import round_steps
from llmb_tui.launch.run import Run
from llmb_tui.plan.plan import Estimate
from llmb_tui.ui.text import chart_content
from llmb_tui.ui.widgets.run_parts import RunCard
from llmb_tui.watch.state import RunState

_X_AXIS_FROM_HEIGHT = 6
_NOW_CELLS = 5
"""Cells of the newest step time, so that a value with fewer digits does not move the line."""


def make_scale(values: Sequence[float], expected: tuple[float, float] | None, rows: int) -> Scale:
    """A scale with round labels for the shown values; outliers become arrows at the edge."""
    shown = shown_values(values, expected)
    return plot.round_scale(min(shown), max(shown), rows)


def columns(step_times: Iterable[tuple[int, float]], last_step: int, width: int) -> list[float]:
    """One value for each column from the first step to the newest: the median of its steps, else the value before."""
    buckets: dict[int, list[float]] = {}
    for index, seconds in step_times:
        column = round(index * (width - 1) / last_step) if last_step else 0
        buckets.setdefault(min(column, width - 1), []).append(seconds)
    if not buckets:
        return []
    value = median(buckets[min(buckets)])
    values = []
    for column in range(max(buckets) + 1):
        value = median(buckets[column]) if column in buckets else value
        values.append(value)
    return values


def chart_lines(
    step_times: Sequence[tuple[int, float]],
    expected: tuple[float, float] | None,
    total: int | None,
    size: tuple[int, int],
    glyphs: Glyphs = UNICODE,
) -> list[list[Part]]:
    """The chart as `height` lines of parts; the parts of each line fill exactly `width` cells.

    `step_times` are (0-based step, seconds), `expected` the band's (low, high) in seconds or None, `total` the
    number of steps of the run (None: the newest step is the right edge), `size` (width, height) in cells.
    """
    width, height = size
    if not step_times and expected is None:
        text = "no steps yet"
        return [plot.text_row((text if line == height // 2 else "").center(width), width) for line in range(height)]
    with_x_axis = height >= _X_AXIS_FROM_HEIGHT
    scale = make_scale([seconds for _, seconds in step_times], expected, height - with_x_axis)
    now_text = f" {glyphs.arrow} {step_time_digits(step_times[-1][1]):<{_NOW_CELLS}}" if step_times else ""
    plot_width = width - scale.label_width - 2 - len(now_text)
    if plot_width < 4 or scale.rows < 2:
        return plot.blank(width, height)
    last_step = max((total or 1) - 1, step_times[-1][0] if step_times else 0)
    canvas = plot.blank(plot_width + len(now_text), scale.rows)
    for row in scale.rows_between(*expected) if expected else ():
        canvas[row] = [(glyphs.band, "band")] * len(canvas[row])
    values = columns(step_times, last_step, plot_width)
    _draw_line(canvas, scale, values, glyphs)
    if values:
        row = min(max(scale.row(values[-1]), 0), scale.rows - 1)
        for offset, character in enumerate(now_text):
            canvas[row][len(values) + offset] = (character, "measured")
    lines = plot.labelled(scale, canvas, glyphs)
    if with_x_axis:
        lines.append(plot.text_row(" " * (scale.label_width + 2) + _x_labels(last_step, plot_width), width))
    return lines


def expected_caption(estimate: Estimate | None, width: int, glyphs: Glyphs = UNICODE) -> str:
    """Caption of the band, without its method if the width is too small."""
    if estimate is None:
        return "no expected step time"
    short = f"{glyphs.band} expected {step_time_range(estimate.low_s, estimate.high_s)}"
    full = f"{short}, {method_phrase(estimate.method)}"
    return full if len(full) <= width else short


def _draw_line(canvas: Canvas, scale: Scale, values: Sequence[float], glyphs: Glyphs) -> None:
    before: int | None = None
    for column, seconds in enumerate(values):
        exact = scale.row(seconds)
        row = min(max(exact, 0), scale.rows - 1)
        if exact != row:
            canvas[row][column] = (glyphs.above if exact > row else glyphs.below, "outside")
        else:
            canvas[row][column] = (glyphs.flat, "measured")
        if before is not None and before != row:
            start, end = glyphs.down if row < before else glyphs.up
            canvas[before][column] = (start, "measured")
            if exact == row:
                canvas[row][column] = (end, "measured")
            for between in range(min(row, before) + 1, max(row, before)):
                canvas[between][column] = (glyphs.upright, "measured")
        before = row


def _x_labels(last_step: int, width: int) -> str:
    """Round iteration numbers under their columns, counted as in the log, after the word `iteration`."""
    if last_step == 0:
        return "iteration 0"
    spacing = max(last_step * 8 / width, 1)
    every = round(next(step for step in round_steps(spacing) if step >= spacing))
    text = "iteration 0"
    for step in range(every, last_step + 1, every):
        column = round(step * (width - 1) / last_step)
        label = count(step)
        if column >= len(text) + 2 and column + len(label) <= width + 1:
            text = text.ljust(column) + label
    return text


class StepChart(RunCard):
    """The step chart of the screen's run."""

    DEFAULT_CSS = "StepChart { padding: 0; }"

    def on_mount(self) -> None:
        self.border_title = "step time, s"

    def shown_values(self, state: RunState) -> object:
        return state.progress.step_times_s, state.progress.steps_total

    def draw(self, run: Run, state: RunState) -> Content:
        estimate = run.plan.estimate
        lines = chart_lines(
            state.progress.step_times_s,
            (estimate.low_s, estimate.high_s) if estimate else None,
            state.progress.steps_total or run.plan.steps,
            (self.content_size.width, self.content_size.height),
            plot.terminal_glyphs(),
        )
        return chart_content(lines)

    def _entitle(self) -> None:
        if self.training_run is not None:
            estimate, width = self.training_run.plan.estimate, self.content_size.width - 2
            self.border_subtitle = Content(expected_caption(estimate, width, plot.terminal_glyphs()))

    on_resize = _entitle

    def watch_training_run(self, run: Run | None) -> None:
        self._entitle()
        super().watch_training_run(run)
