"""`Chart`: what is drawn, as data. A screen draws it in cells and `svg` as a picture; neither adds anything."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from llmb_tui.language.instants import local_zone, utc_tick
from llmb_tui.language.quantities import count, four_digits
from llmb_tui.language.ticks import multiples, round_steps, tick_label

Role = Literal["expected", "published", "estimated", "measured", "this", "ideal", "change"]
"""What a part of a chart is. `this`: the run that the chart is about; `change`: where runs became faster or slower."""
AxisKind = Literal["linear", "log", "time"]

# Values farther than this from the band and from the median are left out, and marked at the edge: the first step
# compiles and takes many times as long, and would press the rest into one row.
_REACH = 1.12
_HOUR, _DAY = 3600.0, 86_400.0
_TIME_STEPS = (
    *(minutes * 60.0 for minutes in (1, 2, 5, 10, 20, 30)),
    *(hours * _HOUR for hours in (1, 2, 6, 12)),
    *(days * _DAY for days in (1, 2, 7, 14, 28, 91, 182, 364)),
)


@dataclass(frozen=True, slots=True)
class Tick:
    """A value of an axis with its label."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Axis:
    """The range of values that is drawn. `log` is for counts, `time` for Unix times."""

    title: str
    """What it is, with its unit; a writer names the zone of times (`name`)."""
    low: float
    high: float
    kind: AxisKind = "linear"
    known: tuple[float, ...] = ()
    """Of a `log` axis: the only values that there are."""
    text: Callable[[float], str] = four_digits
    """Writes a value of this axis, without the unit."""

    def place(self, value: float) -> float:
        """Where a value stands: 0 at the low end, 1 at the high one; less or more for one outside of the range."""
        low, high = self.low, self.high
        if self.kind == "log":
            low, high, value = math.log(low), math.log(high), math.log(value)
        return (value - low) / (high - low)

    def name(self, *, local: bool = False) -> str:
        """The title, for times with their zone: UTC on paper, the local one on a screen."""
        if self.kind != "time":
            return self.title
        return f"{self.title}, {local_zone(self.high)[0] if local else 'UTC'}"

    def ticks(self, most: int, *, local: bool = False) -> tuple[Tick, ...]:
        """Round values, ascending, at most so many: steps of 1, 2 or 5, of whole hours or days, or what is known.

        `local`: times in the local zone of the axis's end, else in UTC.
        """
        if most < 1:
            return ()
        if self.kind == "log":
            return self._known_ticks(most)
        if self.kind == "time":
            return self._time_ticks(most, local_zone(self.high)[1] if local else 0.0)
        steps = round_steps((self.high - self.low) / most)
        step = next(step for step in steps if len(multiples(step, self.low, self.high)) <= most)
        return tuple(Tick(value, tick_label(value, step)) for value in multiples(step, self.low, self.high))

    def _known_ticks(self, most: int) -> tuple[Tick, ...]:
        kept: list[float] = []
        for value in self.known:
            if not kept or self.place(value) - self.place(kept[-1]) >= 0.999 / most:
                kept.append(value)
        return tuple(Tick(value, count(value)) for value in kept)

    def _time_ticks(self, most: int, ahead_s: float) -> tuple[Tick, ...]:
        low, high = self.low + ahead_s, self.high + ahead_s
        step = next((step for step in _TIME_STEPS if (self.high - self.low) / step <= most), _TIME_STEPS[-1])
        while len(values := multiples(step, low, high)) > most:
            step *= 2
        return tuple(Tick(value - ahead_s, utc_tick(value, step)) for value in values)


@dataclass(frozen=True, slots=True)
class Point:
    """One value; `low` and `high` say how far those go that it is made of."""

    x: float
    y: float
    label: str = ""
    """What stands beside it."""
    low: float | None = None
    high: float | None = None
    name: str = ""
    """Whose value it is, such as a run's id."""


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one kind, ascending; `joined` by a line, or marks of their own."""

    role: Role
    label: str
    """In the legend."""
    points: tuple[Point, ...]
    joined: bool = False


@dataclass(frozen=True, slots=True)
class Band:
    """(x, low, high), ascending: an area between two values of y."""

    role: Role
    label: str
    points: tuple[tuple[float, float, float], ...]


@dataclass(frozen=True, slots=True)
class ReferenceLine:
    """A straight line over the whole chart, at a value of y or, `upright`, of x."""

    role: Role
    label: str
    at: float
    upright: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture without its picture."""

    name: str
    """Of a file: lower-case letters, digits and dashes."""
    title: str
    x: Axis
    y: Axis
    bands: tuple[Band, ...] = ()
    rules: tuple[ReferenceLine, ...] = ()
    series: tuple[Series, ...] = ()
    summary: str = ""
    """What is seen, in words, for who does not see it."""
    notes: tuple[str, ...] = ()
    """How to read it: what a mark rests on."""


def shown_values(step_times_s: Sequence[float], expected: tuple[float, float] | None) -> list[float]:
    """What a picture of step times reaches from and to: those near the band (low, high) or the median, and the band.

    The band keeps half of its own height free above and below, so that it is seen as one.
    """
    margin = (expected[1] - expected[0]) / 2 if expected else 0.0
    band = (expected[0] - margin, expected[1] + margin) if expected else ()
    anchors = [*([median(step_times_s)] if step_times_s else []), *band]
    low, high = min(anchors) / _REACH, max(anchors) * _REACH
    return [*anchors, *(value for value in step_times_s if low <= value <= high)]


def value_axis(title: str, values: Sequence[float], text: Callable[[float], str]) -> Axis:
    """An axis that holds all values, with some room at both ends."""
    low, high = min(values), max(values)
    room = (high - low or abs(high) * 0.1 or 1.0) * 0.08
    return Axis(title, low - room, high + room, text=text)


def scale_axis(title: str, values: Sequence[float]) -> Axis:
    """A logarithmic axis of numbers of GPUs."""
    known = tuple(sorted(set(values)))
    return Axis(title, known[0] / 1.25, known[-1] * 1.25, "log", known)


def time_axis(title: str, values: Sequence[float]) -> Axis:
    """An axis of Unix times."""
    low, high = min(values), max(values)
    room = max((high - low) * 0.05, 60.0)
    return Axis(title, low - room, high + room, "time")


def apart(wanted: Sequence[float], size: float, low: float, high: float) -> list[float]:
    """Where labels of that size stand so that none covers another, each as near to where it should be as may be.

    Positions are middles, and so are the answers, in the given order. Where there is no room for all they are spread
    evenly and overlap.
    """
    order = sorted(range(len(wanted)), key=lambda at: wanted[at])
    step = min(size, (high - low) / max(len(wanted), 1))
    places = [min(max(wanted[at], low + step / 2), high - step / 2) for at in order]
    for at in range(1, len(places)):
        places[at] = max(places[at], places[at - 1] + step)
    limit = high - step / 2
    for at in reversed(range(len(places))):
        places[at] = limit = min(places[at], limit)
        limit -= step
    found = dict(zip(order, places, strict=True))
    return [found[at] for at in range(len(wanted))]
