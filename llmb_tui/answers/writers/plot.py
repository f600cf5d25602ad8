"""Elements of charts in cells: characters, the rows of a plot and their labels. Pure."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Literal

from llmb_tui.language.ticks import round_steps, tick_label

CellKind = Literal["axis", "band", "published", "expected", "measured", "outside", "now", "blank"]
Part = tuple[str, CellKind]
Canvas = list[list[Part]]
"""The cells of a plot, the lowest row first."""

_SAME = 1e-6
"""Relative difference up to which values are drawn as equal: a label with more digits would not fit."""
_FACTORS = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8)


@dataclass(frozen=True, slots=True)
class Glyphs:
    """Characters for drawing a chart."""

    tick: str = "┤"
    edge: str = "│"
    band: str = "░"
    flat: str = "─"
    upright: str = "│"
    down: tuple[str, str] = ("╮", "╰")
    up: tuple[str, str] = ("╯", "╭")
    above: str = "▲"
    below: str = "▼"
    arrow: str = "←"
    full: str = "●"
    hollow: str = "○"
    chosen: str = "┊"
    square: str = "■"
    diamond: str = "◆"
    dot: str = "·"
    levels: str = "▁▂▃▄▅▆▇█"


UNICODE = Glyphs()
ASCII = Glyphs("+", "|", ":", "-", "|", (".", "'"), ("'", "."), "^", "v", "<", "*", "o", "!", "#", "@", ".", "_.-~=+*#")


def terminal_glyphs() -> Glyphs:
    """Characters that the terminal's encoding supports."""
    encoding = sys.__stdout__.encoding if sys.__stdout__ else "ascii"
    return UNICODE if encoding.lower().startswith("utf") else ASCII


@dataclass(frozen=True, slots=True)
class Scale:
    """Values of the rows of a plot: row 0 is the lowest, and each further row is `step` higher."""

    bottom: float
    step: float
    rows: int

    def row(self, value: float) -> int:
        """The row nearest to a value, which may be outside the plot."""
        # A half is rounded up for every value, so that values inside the band are drawn inside it.
        return math.floor((value - self.bottom) / self.step + 0.5)

    def rows_between(self, low: float, high: float) -> range:
        """Rows of the plot that a range of values covers."""
        return range(max(self.row(low), 0), min(self.row(high), self.rows - 1) + 1)

    def label(self, row: int) -> str:
        """The value of a row, with the decimals that the distance between rows needs."""
        return tick_label(self.bottom + row * self.step, self.step)

    @property
    def label_width(self) -> int:
        """Width of the longest label, in cells."""
        return max(len(self.label(0)), len(self.label(self.rows - 1)))


def round_scale(low: float, high: float, rows: int) -> Scale:
    """A scale with round labels that contains both values; `low` must not be negative."""
    if high - low <= high * _SAME:
        low, high = low * 0.95, high * 1.05 or 1.0
    gaps = max(rows - 1, 1)
    steps = round_steps((high - low) / gaps, _FACTORS)
    step = next(step for step in steps if (math.floor(low / step + 1e-9) + gaps) * step >= high * (1 - 1e-12))
    first = math.floor(low / step + 1e-9)
    spare = first + gaps - math.ceil(high / step - 1e-9)
    first = max(first - spare // 2, 0)
    return Scale(first * step, step, rows)


def blank(width: int, rows: int) -> Canvas:
    """An empty plot."""
    return [[(" ", "blank")] * width for _ in range(rows)]


def text_row(text: str, width: int) -> list[Part]:
    """A line of text in a chart, as wide as the chart."""
    return [(text[:width].ljust(width), "axis")]


def labelled(scale: Scale, canvas: Canvas, glyphs: Glyphs, label_width: int = 0) -> list[list[Part]]:
    """Rows of a plot from top to bottom, each after its label; in a high plot every other row has a label."""
    width = max(label_width, scale.label_width)
    rows: list[list[Part]] = []
    for row in reversed(range(scale.rows)):
        has_label = scale.rows <= 5 or row % 2 == 0
        label = scale.label(row) if has_label else ""
        cells: list[Part] = [(f"{label:>{width}} {glyphs.tick if has_label else glyphs.edge}", "axis"), *canvas[row]]
        rows.append([("".join(text for text, _ in part), kind) for kind, part in groupby(cells, key=itemgetter(1))])
    return rows
