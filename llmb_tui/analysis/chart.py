"""`Chart`: the content of a chart as data. A screen draws it in cells, `svg` as a picture; neither adds anything."""

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
"""Meaning of a part of a chart. `this`: the run that the chart is about; `change`: runs became faster or slower."""
AxisKind = Literal["linear", "log", "time"]

# Values farther than this from the band and from the median are left out and marked at the edge: the first step
# compiles, takes many times as long, and would squeeze the other steps into one row.
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
    """Range of the drawn values. `log` is for counts, `time` for Unix times."""

    title: str
    """Quantity with its unit; `name` adds the time zone."""
    low: float
    high: float
    kind: AxisKind = "linear"
    known: tuple[float, ...] = ()
    """The only possible values of a `log` axis."""
    text: Callable[[float], str] = four_digits
    """Formats a value of this axis, without the unit."""

    def place(self, value: float) -> float:
        """Relative position of a value: 0 at the low end, 1 at the high end; outside the range less or more."""
        low, high = self.low, self.high
        if self.kind == "log":
            low, high, value = math.log(low), math.log(high), math.log(value)
        return (value - low) / (high - low)

    def name(self, *, local: bool = False) -> str:
        """The title; for times with their zone: UTC in files, the local one on a screen."""
        if self.kind != "time":
            return self.title
        return f"{self.title}, {local_zone(self.high)[0] if local else 'UTC'}"

    def ticks(self, most: int, *, local: bool = False) -> tuple[Tick, ...]:
        """At most `most` round values, ascending: steps of 1, 2 or 5, of whole hours or days, or the known values.

        `local`: times in the local zone of the axis's end; otherwise in UTC.
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
    """One value; `low` and `high` give the range of the values that it combines."""

    x: float
    y: float
    label: str = ""
    """Text next to the point."""
    low: float | None = None
    high: float | None = None
    name: str = ""
    """Owner of the value, such as a run's id."""


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one kind, ascending; `joined` by a line, or single marks."""

    role: Role
    label: str
    """Text in the legend."""
    points: tuple[Point, ...]
    joined: bool = False


@dataclass(frozen=True, slots=True)
class Band:
    """An area between two values of y: (x, low, high), ascending."""

    role: Role
    label: str
    points: tuple[tuple[float, float, float], ...]


@dataclass(frozen=True, slots=True)
class ReferenceLine:
    """A straight line across the chart, at a value of y or, if `upright`, of x."""

    role: Role
    label: str
    at: float
    upright: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart as data."""

    name: str
    """Base name of a file: lower-case letters, digits and dashes."""
    title: str
    x: Axis
    y: Axis
    bands: tuple[Band, ...] = ()
    rules: tuple[ReferenceLine, ...] = ()
    series: tuple[Series, ...] = ()
    summary: str = ""
    """Description of the chart, for readers who cannot see it."""
    notes: tuple[str, ...] = ()
    """Explanations of its marks."""


def shown_values(step_times_s: Sequence[float], expected: tuple[float, float] | None) -> list[float]:
    """Values that a chart of step times must show: those near the band (low, high) or the median, and the band.

    Half of the band's height stays free above and below it, so that the band is recognisable.
    """
    margin = (expected[1] - expected[0]) / 2 if expected else 0.0
    band = (expected[0] - margin, expected[1] + margin) if expected else ()
    anchors = [*([median(step_times_s)] if step_times_s else []), *band]
    low, high = min(anchors) / _REACH, max(anchors) * _REACH
    return [*anchors, *(value for value in step_times_s if low <= value <= high)]


def value_axis(title: str, values: Sequence[float], text: Callable[[float], str]) -> Axis:
    """An axis that includes all values, with a margin at both ends."""
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


def spread_labels(wanted: Sequence[float], size: float, low: float, high: float) -> list[float]:
    """Positions of labels of this size: none covers another, and each is as close to its wanted place as possible.

    Positions are the middles of labels, in the given order. If there is not enough room, the labels are spread evenly
    and overlap.
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    step = min(size, (high - low) / max(len(wanted), 1))
    places = [min(max(wanted[i], low + step / 2), high - step / 2) for i in order]
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + step)
    limit = high - step / 2
    for i in reversed(range(len(places))):
        places[i] = limit = min(places[i], limit)
        limit -= step
    positions = dict(zip(order, places, strict=True))
    return [positions[i] for i in range(len(wanted))]
