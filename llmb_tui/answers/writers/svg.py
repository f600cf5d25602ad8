"""`svg`: a chart as a picture that needs nothing beside it: light and dark, in print, and without colours."""

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
_BESIDE = 128.0
"""Room at the right where labels of level lines stand."""
_SIZE = 12.0
"""Of letters."""
_BOLD = 1.08
"""How much wider bold ones are."""
_LINE = 18.0
_GAP = 34.0
"""Between two labels of the horizontal axis, at least; they are as wide as their letters beside that."""
_MARKS = 60
"""A line of more points than this has no marks on it."""
_NAMESPACE = ' xmlns="http://www.w3.org/2000/svg"'
_NO_XML = re.compile("[\ufffe\uffff]")

# One rule for each class, because few programs but browsers know variables. What a role is, is also said by the shape
# of its mark and by the dashes of its line, so that no colour is needed.
STYLE = Path(__file__).with_name("chart.css").read_text("utf-8")
"""What a page needs once for all of its charts."""


@dataclass(frozen=True, slots=True)
class _Box:
    """What a label or a mark covers."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: _Box) -> bool:
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where values of the axes stand in the picture."""

    x: Axis
    y: Axis
    right: float
    left: float = _LEFT
    top: float = _TOP
    bottom: float = _TOP + _PLOT

    def across(self, value: float) -> float:
        return self.left + self.x.place(value) * (self.right - self.left)

    def up(self, value: float) -> float:
        """A value outside of the axis stands at its edge."""
        place = min(max(self.y.place(value), 0.0), 1.0)
        return self.bottom - place * (self.bottom - self.top)

    def beyond(self, value: float) -> int:
        """-1 or 1 for a value below or above the axis, else 0."""
        place = self.y.place(value)
        return (place > 1) - (place < 0)


def svg(chart: Chart, *, style: bool = True) -> str:
    """A chart as an SVG document; without `style` as part of a page that has it already."""
    beside = any(not rule.upright for rule in chart.rules)
    frame = _Frame(chart.x, chart.y, _WIDTH - (_BESIDE if beside else _RIGHT))
    legend, height = _legend(chart, frame.bottom + 44)
    description = " ".join((chart.summary, *chart.notes))
    parts = [
        f'<svg{_NAMESPACE if style else ""} class="chart" role="img" viewBox="0 0 {_WIDTH:g} {height:g}" '
        f'width="{_WIDTH:g}" height="{height:g}">',
        f"<title>{_text(chart.title)}</title><desc>{_text(description)}</desc>",
        f"<style>{STYLE}</style>" if style else "",
        f'<rect class="ground" width="{_WIDTH:g}" height="{height:g}"/>',
        _say(_LEFT - 44, 18, chart.title, "title"),
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
    yield _say(_LEFT - 44, 37, chart.y.title, "muted")
    for tick in chart.y.ticks(6):
        y = frame.up(tick.at)
        yield f'<path class="grid" d="M{frame.left:.1f} {y:.1f}H{frame.right:.1f}"/>'
        yield _say(frame.left - 6, y + 4, tick.label, "muted", "end")
    longest = max((len(tick.label) for tick in chart.x.ticks(20)), default=1)
    most = int((frame.right - frame.left) / (_wide("0" * longest) + _GAP / 2))
    for tick in chart.x.ticks(most):
        x = frame.across(tick.at)
        yield f'<path class="axis" d="M{x:.1f} {frame.bottom:.1f}v5"/>'
        yield _say(x, frame.bottom + 18, tick.label, "muted", "middle")
    yield f'<path class="axis" d="M{frame.left:.1f} {frame.bottom:.1f}H{frame.right:.1f}"/>'
    yield _say((frame.left + frame.right) / 2, frame.bottom + 35, chart.x.name(), "muted", "middle")


def _bands(chart: Chart, frame: _Frame) -> Iterator[str]:
    for band in chart.bands:
        there = [(frame.across(x), frame.up(high)) for x, _, high in band.points]
        back = [(frame.across(x), frame.up(low)) for x, low, _ in reversed(band.points)]
        yield f'<path class="area {band.role}" d="{_path([*there, *back])}Z"/>'


def _rules(chart: Chart, frame: _Frame) -> Iterator[str]:
    """The labels of level lines stand at their right, those of upright ones beside their upper end."""
    for rule in chart.rules:
        line = f"M{frame.left:.1f} {frame.up(rule.at):.1f}H{frame.right:.1f}"
        if rule.upright:
            line = f"M{frame.across(rule.at):.1f} {frame.top:.1f}V{frame.bottom:.1f}"
        yield f'<path class="line {rule.role}" d="{line}"/>'
    for rule, box in _upright(chart, frame):
        yield _say(box.left, box.bottom - 3, rule.label, f"{rule.role} bold")
    for text, middle in _beside(chart, frame):
        for row, part in enumerate(text):
            yield _say(frame.right + 8, middle + 4 + (row - (len(text) - 1) / 2) * 14, part)


def _upright(chart: Chart, frame: _Frame) -> list[tuple[ReferenceLine, _Box]]:
    """Each upright line and the place of its label: under those that it would cover."""
    found: list[tuple[ReferenceLine, _Box]] = []
    for rule in chart.rules:
        if rule.upright:
            wide, x = _wide(rule.label) * _BOLD, frame.across(rule.at)
            left = x + 5 if x + 5 + wide < frame.right else x - 5 - wide
            box = _Box(left, frame.top, left + wide, frame.top + 14)
            while any(box.meets(other) for _, other in found):
                box = _Box(left, box.top + 14, left + wide, box.bottom + 14)
            found.append((rule, box))
    return found


def _beside(chart: Chart, frame: _Frame) -> list[tuple[list[str], float]]:
    """The labels of level lines in rows of their own, and where their middle is."""
    level = [rule for rule in chart.rules if not rule.upright]
    texts = [_folded(rule.label, _BESIDE - 12) for rule in level]
    size = max((14.0 * len(text) + 2 for text in texts), default=0.0)
    return list(
        zip(texts, spread_labels([frame.up(rule.at) for rule in level], size, frame.top, frame.bottom), strict=True)
    )


def _lines(chart: Chart, frame: _Frame) -> Iterator[str]:
    """A line breaks off where it leaves the picture."""
    for one in chart.series:
        bars = "".join(
            f"M{frame.across(at.x):.1f} {frame.up(at.low):.1f}V{frame.up(at.high):.1f}"
            for at in one.points
            if at.low is not None and at.high is not None
        )
        if bars:
            yield f'<path class="line {one.role}" style="stroke-width:1" d="{bars}"/>'
        if one.joined:
            yield f'<path class="line {one.role}" d="{"".join(_pieces(one, frame))}"/>'


def _pieces(one: Series, frame: _Frame) -> Iterator[str]:
    piece: list[tuple[float, float]] = []
    for point in one.points:
        if frame.beyond(point.y):
            yield _path(piece)
            piece = []
        else:
            piece.append((frame.across(point.x), frame.up(point.y)))
    yield _path(piece)


def _marks(chart: Chart, frame: _Frame) -> Iterator[str]:
    for one in chart.series:
        marked = not one.joined or len(one.points) <= _MARKS
        for at, point in enumerate(one.points):
            x, y, beyond = frame.across(point.x), frame.up(point.y), frame.beyond(point.y)
            said = f"<title>{_text(_said(chart, point))}</title>"
            if beyond:
                yield f'<path class="{one.role}" d="M{x - 4:.1f} {y + 6 * beyond:.1f}h8l-4 {-6 * beyond}z">'
                yield f"{said}</path>"
            elif one.role == "this":
                if at == len(one.points) - 1:
                    yield _mark("this", x, y, said)
            elif marked:
                yield _mark(one.role, x, y, said, small=one.joined and len(one.points) > 20)


def _mark(role: Role, x: float, y: float, inside: str = "", *, small: bool = False) -> str:
    """Each role has a shape of its own."""
    size = 2.0 if small else 4.5
    if role == "published":
        return f'<circle class="{role}" cx="{x:.1f}" cy="{y:.1f}" r="{size}">{inside}</circle>'
    if role == "estimated":
        return f'<circle class="{role} hollow" cx="{x:.1f}" cy="{y:.1f}" r="{size}">{inside}</circle>'
    if role == "this":
        return f'<path class="this" d="M{x:.1f} {y - 7:.1f}l7 7-7 7-7-7z">{inside}</path>'
    return f'<path class="{role}" d="M{x - size:.1f} {y - size:.1f}h{2 * size}v{2 * size}h{-2 * size}z">{inside}</path>'


def _labels(chart: Chart, frame: _Frame) -> Iterator[str]:
    """What points say, where it covers nothing; the value of the run itself may cover marks."""
    labels = [
        _Box(frame.right + 8, middle - 7 * len(text), _WIDTH, middle + 7 * len(text))
        for text, middle in _beside(chart, frame)
    ]
    labels += [box for _, box in _upright(chart, frame)]
    wanted = [(one.role, point) for one in chart.series for point in one.points]
    shown = [(frame.across(point.x), frame.up(point.y)) for _, point in wanted]
    marks = [_Box(x - 5, y - 5, x + 5, y + 5) for x, y in shown] if len(shown) <= _MARKS else []
    for role, point in sorted(wanted, key=lambda pair: pair[0] != "this"):
        if point.label:
            places = list(_places(point, role, frame))
            box = _free(places, [*labels, *marks]) or (_free(places, labels) if role == "this" else None)
            if box is not None:
                labels.append(box)
                yield _say(box.left, box.bottom - 2, point.label, "this bold" if role == "this" else "")


def _places(point: Point, role: Role, frame: _Frame) -> Iterator[_Box]:
    """Inside the picture: above, below, right or left of a point, then farther away."""
    x, y = frame.across(point.x), frame.up(point.y)
    wide = _wide(point.label) * (_BOLD if role == "this" else 1)
    middle = min(max(x - wide / 2, frame.left + 2), _WIDTH - wide - 2)
    corners = [(middle, y - 9 - _SIZE), (middle, y + 9), (x + 11, y - 6), (x - 11 - wide, y - 6)]
    for left, top in (*corners, (middle, y - 25 - _SIZE), (middle, y + 25)):
        box = _Box(left, top, left + wide, top + _SIZE + 1)
        if frame.left < box.left and box.right < _WIDTH and frame.top - 4 < box.top and box.bottom < frame.bottom:
            yield box


def _free(places: Iterable[_Box], taken: Sequence[_Box]) -> _Box | None:
    """The first that covers nothing."""
    return next((box for box in places if not any(box.meets(other) for other in taken)), None)


def _legend(chart: Chart, top: float) -> tuple[list[str], float]:
    """What the marks and areas mean, in as many rows as it takes; and where it ends."""
    items = [(one.label, f'<rect class="area {one.role}" y="-5" width="22" height="10"/>') for one in chart.bands]
    for one in chart.series:
        line = f'<path class="line {one.role}" d="M0 0h22"/>' if one.joined else ""
        items.append((one.label, line + _mark(one.role, 11, 0, small=one.joined and one.role != "this")))
    found, x, y = [], _LEFT - 44, top + _LINE - 4
    for label, swatch in items:
        wide = 30 + _wide(label) + 16
        if x + wide > _WIDTH and x > _LEFT:
            x, y = _LEFT - 44, y + _LINE
        found += [f'<g transform="translate({x:.1f} {y:.1f})">{swatch}</g>', _say(x + 28, y + 4, label)]
        x += wide
    return found, y + _LINE - 4


def _said(chart: Chart, point: Point) -> str:
    """What a mark says when it is pointed at."""
    value = f"{chart.y.text(point.y)} ({chart.y.title})"
    if chart.x.kind == "time":
        return f"{point.name}: {value}"
    return " ".join(filter(None, (point.name, f"{chart.x.title.split(',')[0]} {count(point.x)}: {value}")))


def _folded(text: str, room: float) -> list[str]:
    """A label in rows that have room."""
    rows: list[str] = []
    for word in text.split(" "):
        if rows and _wide(f"{rows[-1]} {word}") <= room:
            rows[-1] += f" {word}"
        else:
            rows.append(word)
    return rows


def _path(points: Iterable[tuple[float, float]]) -> str:
    return "".join(f"{'L' if at else 'M'}{x:.1f} {y:.1f}" for at, (x, y) in enumerate(points))


def _wide(text: str) -> float:
    """Of a label, about; a little too much rather than too little."""
    return len(text) * _SIZE * 0.56


def _say(x: float, y: float, text: str, role: str = "", anchor: str = "") -> str:
    more = (f' class="{role}"' if role else "") + (f' text-anchor="{anchor}"' if anchor else "")
    return f'<text x="{x:.1f}" y="{y:.1f}"{more}>{_text(text)}</text>'


def _text(text: str) -> str:
    return escape(_NO_XML.sub("\N{REPLACEMENT CHARACTER}", clean_line(text)))
