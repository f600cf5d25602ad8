"""`svg`: a chart as a self-contained picture for light and dark screens and print, readable without colours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from llmb_tui.analysis.chart import Axis, Chart, Point, ReferenceLine, Role, Series, spread_labels
from llmb_tui.language.quantities import count
from llmb_tui.language.text import clean_line

_WIDTH, _LEFT, _TOP, _PLOT = 620.0, 52.0, 46.0, 220.0
_RIGHT = 24.0
_LABEL_COLUMN = 128.0
"""Width at the right for the labels of level lines."""
_SIZE = 12.0
"""Font size."""
_BOLD = 1.08
"""Width of bold letters relative to regular ones."""
_LINE = 18.0
_GAP = 34.0
"""Minimum space between two labels of the horizontal axis, added to the width of their letters."""
_MARKS = 60
"""A line with more points has no marks."""
_NAMESPACE = ' xmlns="http://www.w3.org/2000/svg"'
_NO_XML = re.compile("[\ufffe\uffff]")

# One rule for each class, because few programs except browsers support variables. The shape of a mark and the dashes of
# a line also show the role, so that no colour is needed.
STYLE = Path(__file__).with_name("chart.css").read_text("utf-8")
"""Style sheet that a page needs once for all its charts."""


@dataclass(frozen=True, slots=True)
class _Box:
    """Area that a label or a mark covers."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: _Box) -> bool:
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


@dataclass(frozen=True, slots=True)
class _Frame:
    """Positions of the axes' values in the picture."""

    x: Axis
    y: Axis
    right: float
    left: float = _LEFT
    top: float = _TOP
    bottom: float = _TOP + _PLOT

    def across(self, value: float) -> float:
        return self.left + self.x.place(value) * (self.right - self.left)

    def up(self, value: float) -> float:
        """Vertical position of a value; a value outside the axis is at its edge."""
        place = min(max(self.y.place(value), 0.0), 1.0)
        return self.bottom - place * (self.bottom - self.top)

    def beyond(self, value: float) -> int:
        """-1 or 1 for a value below or above the axis, else 0."""
        place = self.y.place(value)
        return (place > 1) - (place < 0)


def svg(chart: Chart, *, style: bool = True) -> str:
    """A chart as an SVG document; without `style` it is part of a page that has the style sheet."""
    has_levels = any(not rule.upright for rule in chart.rules)
    frame = _Frame(chart.x, chart.y, _WIDTH - (_LABEL_COLUMN if has_levels else _RIGHT))
    legend, height = _legend(chart, frame.bottom + 44)
    description = " ".join((chart.summary, *chart.notes))
    parts = [
        f'<svg{_NAMESPACE if style else ""} class="chart" role="img" viewBox="0 0 {_WIDTH:g} {height:g}" '
        f'width="{_WIDTH:g}" height="{height:g}">',
        f"<title>{_text(chart.title)}</title><desc>{_text(description)}</desc>",
        f"<style>{STYLE}</style>" if style else "",
        f'<rect class="ground" width="{_WIDTH:g}" height="{height:g}"/>',
        _text_element(_LEFT - 44, 18, chart.title, "title"),
        *_axes(chart, frame),
        *_bands(chart, frame),
        *_rules(chart, frame),
        *_lines(chart, frame),
        *_marks(chart, frame),
        *_labels(chart, frame),
        *legend,
        "</svg>",
    ]
    return "\n".join(filter(None, parts)) + "\n"


def _axes(chart: Chart, frame: _Frame) -> Iterator[str]:
    yield _text_element(_LEFT - 44, 37, chart.y.title, "muted")
    for tick in chart.y.ticks(6):
        y = frame.up(tick.at)
        yield f'<path class="grid" d="M{frame.left:.1f} {y:.1f}H{frame.right:.1f}"/>'
        yield _text_element(frame.left - 6, y + 4, tick.label, "muted", "end")
    longest = max((len(tick.label) for tick in chart.x.ticks(20)), default=1)
    most = int((frame.right - frame.left) / (_text_width("0" * longest) + _GAP / 2))
    for tick in chart.x.ticks(most):
        x = frame.across(tick.at)
        yield f'<path class="axis" d="M{x:.1f} {frame.bottom:.1f}v5"/>'
        yield _text_element(x, frame.bottom + 18, tick.label, "muted", "middle")
    yield f'<path class="axis" d="M{frame.left:.1f} {frame.bottom:.1f}H{frame.right:.1f}"/>'
    yield _text_element((frame.left + frame.right) / 2, frame.bottom + 35, chart.x.name(), "muted", "middle")


def _bands(chart: Chart, frame: _Frame) -> Iterator[str]:
    for band in chart.bands:
        upper = [(frame.across(x), frame.up(high)) for x, _, high in band.points]
        lower = [(frame.across(x), frame.up(low)) for x, low, _ in reversed(band.points)]
        yield f'<path class="area {band.role}" d="{_path([*upper, *lower])}Z"/>'


def _rules(chart: Chart, frame: _Frame) -> Iterator[str]:
    """Reference lines. A level line has its label at the right, an upright line at the upper end."""
    for rule in chart.rules:
        line = f"M{frame.left:.1f} {frame.up(rule.at):.1f}H{frame.right:.1f}"
        if rule.upright:
            line = f"M{frame.across(rule.at):.1f} {frame.top:.1f}V{frame.bottom:.1f}"
        yield f'<path class="line {rule.role}" d="{line}"/>'
    for rule, box in _upright_labels(chart, frame):
        yield _text_element(box.left, box.bottom - 3, rule.label, f"{rule.role} bold")
    for text, middle in _level_labels(chart, frame):
        for row, part in enumerate(text):
            yield _text_element(frame.right + 8, middle + 4 + (row - (len(text) - 1) / 2) * 14, part)


def _upright_labels(chart: Chart, frame: _Frame) -> list[tuple[ReferenceLine, _Box]]:
    """Each upright line with the place of its label, which is below the labels that it would cover."""
    placed: list[tuple[ReferenceLine, _Box]] = []
    for rule in chart.rules:
        if rule.upright:
            width, x = _text_width(rule.label) * _BOLD, frame.across(rule.at)
            left = x + 5 if x + 5 + width < frame.right else x - 5 - width
            box = _Box(left, frame.top, left + width, frame.top + 14)
            while any(box.overlaps(other) for _, other in placed):
                box = _Box(left, box.top + 14, left + width, box.bottom + 14)
            placed.append((rule, box))
    return placed


def _level_labels(chart: Chart, frame: _Frame) -> list[tuple[list[str], float]]:
    """The labels of level lines, each folded into rows, with the vertical position of its middle."""
    level = [rule for rule in chart.rules if not rule.upright]
    texts = [_fold(rule.label, _LABEL_COLUMN - 12) for rule in level]
    size = max((14.0 * len(text) + 2 for text in texts), default=0.0)
    return list(
        zip(texts, spread_labels([frame.up(rule.at) for rule in level], size, frame.top, frame.bottom), strict=True)
    )


def _lines(chart: Chart, frame: _Frame) -> Iterator[str]:
    """Lines of the series, with the ranges of their points. A line is interrupted outside the picture."""
    for series in chart.series:
        bars = "".join(
            f"M{frame.across(point.x):.1f} {frame.up(point.low):.1f}V{frame.up(point.high):.1f}"
            for point in series.points
            if point.low is not None and point.high is not None
        )
        if bars:
            yield f'<path class="line {series.role}" style="stroke-width:1" d="{bars}"/>'
        if series.joined:
            yield f'<path class="line {series.role}" d="{"".join(_pieces(series, frame))}"/>'


def _pieces(series: Series, frame: _Frame) -> Iterator[str]:
    piece: list[tuple[float, float]] = []
    for point in series.points:
        if frame.beyond(point.y):
            yield _path(piece)
            piece = []
        else:
            piece.append((frame.across(point.x), frame.up(point.y)))
    yield _path(piece)


def _marks(chart: Chart, frame: _Frame) -> Iterator[str]:
    for series in chart.series:
        has_marks = not series.joined or len(series.points) <= _MARKS
        for index, point in enumerate(series.points):
            x, y, beyond = frame.across(point.x), frame.up(point.y), frame.beyond(point.y)
            tooltip = f"<title>{_text(_tooltip(chart, point))}</title>"
            if beyond:
                yield f'<path class="{series.role}" d="M{x - 4:.1f} {y + 6 * beyond:.1f}h8l-4 {-6 * beyond}z">'
                yield f"{tooltip}</path>"
            elif series.role == "this":
                if index == len(series.points) - 1:
                    yield _mark("this", x, y, tooltip)
            elif has_marks:
                yield _mark(series.role, x, y, tooltip, small=series.joined and len(series.points) > 20)


def _mark(role: Role, x: float, y: float, inside: str = "", *, small: bool = False) -> str:
    """The mark of a role, which has its own shape."""
    size = 2.0 if small else 4.5
    if role == "published":
        return f'<circle class="{role}" cx="{x:.1f}" cy="{y:.1f}" r="{size}">{inside}</circle>'
    if role == "estimated":
        return f'<circle class="{role} hollow" cx="{x:.1f}" cy="{y:.1f}" r="{size}">{inside}</circle>'
    if role == "this":
        return f'<path class="this" d="M{x:.1f} {y - 7:.1f}l7 7-7 7-7-7z">{inside}</path>'
    return f'<path class="{role}" d="M{x - size:.1f} {y - size:.1f}h{2 * size}v{2 * size}h{-2 * size}z">{inside}</path>'


def _labels(chart: Chart, frame: _Frame) -> Iterator[str]:
    """Labels of points that cover nothing; the value of the chart's own run may cover marks."""
    labels = [
        _Box(frame.right + 8, middle - 7 * len(text), _WIDTH, middle + 7 * len(text))
        for text, middle in _level_labels(chart, frame)
    ]
    labels += [box for _, box in _upright_labels(chart, frame)]
    points = [(series.role, point) for series in chart.series for point in series.points]
    centers = [(frame.across(point.x), frame.up(point.y)) for _, point in points]
    marks = [_Box(x - 5, y - 5, x + 5, y + 5) for x, y in centers] if len(centers) <= _MARKS else []
    for role, point in sorted(points, key=lambda pair: pair[0] != "this"):
        if point.label:
            places = list(_places(point, role, frame))
            box = _free_place(places, [*labels, *marks]) or (_free_place(places, labels) if role == "this" else None)
            if box is not None:
                labels.append(box)
                yield _text_element(box.left, box.bottom - 2, point.label, "this bold" if role == "this" else "")


def _places(point: Point, role: Role, frame: _Frame) -> Iterator[_Box]:
    """Places for a label inside the picture: above, below, right or left of its point, then farther away."""
    x, y = frame.across(point.x), frame.up(point.y)
    width = _text_width(point.label) * (_BOLD if role == "this" else 1)
    middle = min(max(x - width / 2, frame.left + 2), _WIDTH - width - 2)
    corners = [(middle, y - 9 - _SIZE), (middle, y + 9), (x + 11, y - 6), (x - 11 - width, y - 6)]
    for left, top in (*corners, (middle, y - 25 - _SIZE), (middle, y + 25)):
        box = _Box(left, top, left + width, top + _SIZE + 1)
        if frame.left < box.left and box.right < _WIDTH and frame.top - 4 < box.top and box.bottom < frame.bottom:
            yield box


def _free_place(places: Iterable[_Box], taken: Sequence[_Box]) -> _Box | None:
    """The first place that covers nothing; None if there is none."""
    return next((box for box in places if not any(box.overlaps(other) for other in taken)), None)


def _legend(chart: Chart, top: float) -> tuple[list[str], float]:
    """The legend of marks and areas, in as many rows as needed, and the vertical position of its end."""
    items = [(band.label, f'<rect class="area {band.role}" y="-5" width="22" height="10"/>') for band in chart.bands]
    for series in chart.series:
        line = f'<path class="line {series.role}" d="M0 0h22"/>' if series.joined else ""
        items.append((series.label, line + _mark(series.role, 11, 0, small=series.joined and series.role != "this")))
    elements, x, y = [], _LEFT - 44, top + _LINE - 4
    for label, swatch in items:
        width = 30 + _text_width(label) + 16
        if x + width > _WIDTH and x > _LEFT:
            x, y = _LEFT - 44, y + _LINE
        elements += [f'<g transform="translate({x:.1f} {y:.1f})">{swatch}</g>', _text_element(x + 28, y + 4, label)]
        x += width
    return elements, y + _LINE - 4


def _tooltip(chart: Chart, point: Point) -> str:
    """Text that a browser shows for a mark under the pointer."""
    value = f"{chart.y.text(point.y)} ({chart.y.title})"
    if chart.x.kind == "time":
        return f"{point.name}: {value}"
    return " ".join(filter(None, (point.name, f"{chart.x.title.split(',')[0]} {count(point.x)}: {value}")))


def _fold(text: str, room: float) -> list[str]:
    """Fold a label into rows that are at most `room` wide."""
    rows: list[str] = []
    for word in text.split(" "):
        if rows and _text_width(f"{rows[-1]} {word}") <= room:
            rows[-1] += f" {word}"
        else:
            rows.append(word)
    return rows


def _path(points: Iterable[tuple[float, float]]) -> str:
    return "".join(f"{'L' if index else 'M'}{x:.1f} {y:.1f}" for index, (x, y) in enumerate(points))


def _text_width(text: str) -> float:
    """Approximate width of a label; an upper bound for usual texts."""
    return len(text) * _SIZE * 0.56


def _text_element(x: float, y: float, text: str, role: str = "", anchor: str = "") -> str:
    attributes = (f' class="{role}"' if role else "") + (f' text-anchor="{anchor}"' if anchor else "")
    return f'<text x="{x:.1f}" y="{y:.1f}"{attributes}>{_text(text)}</text>'


def _text(text: str) -> str:
    return escape(_NO_XML.sub("\N{REPLACEMENT CHARACTER}", clean_line(text)))
