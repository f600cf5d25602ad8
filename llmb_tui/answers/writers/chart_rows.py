"""`chart_rows`: a `Chart` in cells for a terminal. `svg` draws the same chart as a picture. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from llmb_tui.analysis.chart import Chart, Point, Role, Series
from llmb_tui.answers.writers import plot
from llmb_tui.answers.writers.plot import UNICODE, Canvas, CellKind, Glyphs, Part, Scale
from llmb_tui.language.quantities import step_time

LEAST_SIZE = (30, 6)
"""Minimum columns and rows; a smaller chart is blank."""
_COLUMNS_A_TICK = 10

_KINDS: dict[Role, CellKind] = {
    "expected": "expected",
    "published": "published",
    "estimated": "expected",
    "measured": "measured",
    "this": "now",
    "ideal": "axis",
    "change": "outside",
}


def chart_rows(
    chart: Chart, size: tuple[int, int], glyphs: Glyphs = UNICODE, this: str = "", *, local: bool = False
) -> list[list[Part]]:
    """The chart as `height` rows of parts; the parts of a row are exactly `width` cells together.

    `size` is (width, height) in cells. Each kind of mark has its own character, so that no colour is needed. The point
    with the name `this` has a special mark and its value. `local`: times are in the local zone, else in UTC.
    """
    if this:
        chart = _with_this(chart, this)
    width, height = size
    if width < LEAST_SIZE[0] or height < LEAST_SIZE[1]:
        return plot.blank(width, height)
    scale = plot.round_scale(max(chart.y.low, 0.0), chart.y.high, height - 3)
    plot_width = width - scale.label_width - 2
    canvas = plot.blank(plot_width, scale.rows)
    _draw_bands(canvas, chart, scale, glyphs)
    _draw_rules(canvas, chart, scale, glyphs)
    for series in chart.series:
        _draw_series(canvas, chart, series, scale, glyphs)
    free = (" ", glyphs.band, glyphs.flat, glyphs.dot)
    _label_rules(canvas, chart, scale, free)
    for series in chart.series:
        _label_points(canvas, chart, series, scale, free)
    marks = [f"{_mark(series.role, glyphs)} {series.label}" for series in chart.series]
    areas = [f"{glyphs.band} {band.label}" for band in chart.bands]
    indent = " " * (scale.label_width + 2)
    return [
        plot.text_row(f"{chart.y.title}   {'  '.join(marks)}", width),
        *plot.labelled(scale, canvas, glyphs),
        plot.text_row(indent + _ticks(chart, plot_width, local=local), width),
        plot.text_row(f"{indent}{chart.x.name(local=local)}   {'  '.join(areas)}", width),
    ]


def _with_this(chart: Chart, name: str) -> Chart:
    """The chart with the named point as a separate series; unchanged if no point has that name."""
    point = next((point for series in chart.series for point in series.points if point.name == name), None)
    if point is None:
        return chart
    others = [
        replace(series, points=tuple(replace(other, label="") if other.name else other for other in series.points))
        for series in chart.series
    ]
    this = Series("this", "this run", (replace(point, label=point.label or step_time(point.y)),))
    return replace(chart, series=(*others, this))


def _mark(role: Role, glyphs: Glyphs) -> str:
    marks: dict[Role, str] = {"published": glyphs.full, "estimated": glyphs.hollow, "this": glyphs.diamond}
    return marks.get(role, glyphs.dot if role in ("expected", "ideal") else glyphs.square)


def _column(chart: Chart, x: float, width: int) -> int:
    """Column of a value, which may be outside the plot."""
    return round(chart.x.place(x) * (width - 1))


def _put(canvas: Canvas, row: int, column: int, part: Part) -> None:
    """Draw one cell, unless it is outside the plot."""
    if 0 <= row < len(canvas) and 0 <= column < len(canvas[0]):
        canvas[row][column] = part


def _draw_bands(canvas: Canvas, chart: Chart, scale: Scale, glyphs: Glyphs) -> None:
    width = len(canvas[0])
    for band in chart.bands:
        places = [(_column(chart, x, width), low, high) for x, low, high in band.points]
        for (left, *before), (right, *after) in itertools.pairwise(places):
            for column in range(max(left, 0), min(right, width - 1) + 1):
                part = (column - left) / (right - left) if right > left else 0.0
                low, high = (a + (b - a) * part for a, b in zip(before, after, strict=True))
                for row in scale.rows_between(low, high):
                    _put(canvas, row, column, (glyphs.band, "band"))


def _draw_rules(canvas: Canvas, chart: Chart, scale: Scale, glyphs: Glyphs) -> None:
    width = len(canvas[0])
    for rule in chart.rules:
        kind = _KINDS[rule.role]
        if rule.upright:
            for row in range(scale.rows):
                _put(canvas, row, _column(chart, rule.at, width), (glyphs.chosen, kind))
        else:
            for column in range(width):
                _put(canvas, scale.row(rule.at), column, (glyphs.flat, kind))


def _label_rules(canvas: Canvas, chart: Chart, scale: Scale, free: Sequence[str]) -> None:
    """Write labels: a level line's at its end, an upright line's next to its top, or in the nearest free place."""
    width = len(canvas[0])
    for rule in chart.rules:
        text, kind = f" {rule.label} ", _KINDS[rule.role]
        if rule.upright:
            x = _column(chart, rule.at, width)
            places = [(row, column) for row in reversed(range(scale.rows)) for column in (x + 1, x - len(text))]
        else:
            row = scale.row(rule.at)
            places = [(row, column) for column in (width - len(text) - 1, 1, (width - len(text)) // 2)]
        _write(canvas, places, text, kind, free)


def _draw_series(canvas: Canvas, chart: Chart, series: Series, scale: Scale, glyphs: Glyphs) -> None:
    width, kind = len(canvas[0]), _KINDS[series.role]
    if series.joined:
        for column, value in _between(chart, series.points, width):
            row = scale.row(value)
            if 0 <= row < scale.rows and 0 <= column < width and canvas[row][column][1] in ("blank", "band"):
                canvas[row][column] = (glyphs.dot, kind)
    for point in series.points:
        column = _column(chart, point.x, width)
        if point.low is not None and point.high is not None:
            for row in range(scale.row(point.low), scale.row(point.high) + 1):
                _put(canvas, row, column, (glyphs.upright, kind))
        _put(canvas, scale.row(point.y), column, (_mark(series.role, glyphs), kind))


def _between(chart: Chart, points: Sequence[Point], width: int) -> Iterator[tuple[int, float]]:
    """(column, value) of the cells on the straight lines between points."""
    for before, after in itertools.pairwise(points):
        left, right = _column(chart, before.x, width), _column(chart, after.x, width)
        for column in range(left + 1, right):
            yield column, before.y + (after.y - before.y) * (column - left) / (right - left)


def _label_points(canvas: Canvas, chart: Chart, series: Series, scale: Scale, free: Sequence[str]) -> None:
    """Write the label of each point above, below or next to it, if there is room."""
    width = len(canvas[0])
    for point in series.points:
        if not point.label:
            continue
        column, row = _column(chart, point.x, width), scale.row(point.y)
        text = point.label
        middle = min(max(column - len(text) // 2, 0), width - len(text))
        places = [(row + 1, middle), (row - 1, middle), (row, column + 2), (row, column - len(text) - 1)]
        _write(canvas, places, text, _KINDS[series.role], free)


def _write(canvas: Canvas, places: Sequence[tuple[int, int]], text: str, kind: CellKind, free: Sequence[str]) -> None:
    """Write a text at the first (row, column) of `places` that has only `free` characters below the text."""
    for row, column in places:
        if 0 <= row < len(canvas) and column >= 0 and column + len(text) <= len(canvas[0]):
            covered = canvas[row][column : column + len(text)]
            if all(character in free for character, _ in covered):
                canvas[row][column : column + len(text)] = [(character, kind) for character in text]
                return


def _ticks(chart: Chart, width: int, *, local: bool) -> str:
    """Labels of the horizontal axis below their columns."""
    text = ""
    for tick in chart.x.ticks(max(width // _COLUMNS_A_TICK, 2), local=local):
        start = max(_column(chart, tick.at, width) - len(tick.label) // 2, 0)
        if (not text or start > len(text)) and start + len(tick.label) <= width:
            text = text.ljust(start) + tick.label
    return text
