"""`Table`: headings and rows of values, as text for a terminal, as CSV and as Markdown."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from llmb_tui.language.quantities import count, four_digits
from llmb_tui.language.text import clean_line
from llmb_tui.plan.plan import Estimate, expected_step_time


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number, and the function of `language.quantities` that writes it for a person."""

    value: float
    text: Callable[[float], str]


Cell = str | int | float | Quantity | None
"""A text may be remote; None and a float that is no finite number are unknown."""
Column = tuple[str, str | Callable[[Any], Cell]]
"""Its heading, and where a thing has its value, as `value_at` takes it, or what works it out."""
Form = Literal["table", "csv", "markdown"]

UNKNOWN = "–"
_MARKUP = re.compile(r"([\\`*_\[\]<>&|~$^])")
_FORMULA = ("=", "+", "-", "@")
"""With these a text would be reckoned by a spreadsheet."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows are as long as the headings."""

    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @classmethod
    def of(cls, headings: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Table:
        """From any sequences."""
        return cls(tuple(headings), tuple(tuple(row) for row in rows))

    @classmethod
    def by(cls, columns: Sequence[Column], things: Iterable[object]) -> Table:
        """A row for each thing."""
        rows = [[value_at(one, at) if isinstance(at, str) else at(one) for _, at in columns] for one in things]
        return cls.of([heading for heading, _ in columns], rows)

    @property
    def numeric(self) -> list[bool]:
        """Which columns hold numbers only: those stand at the right."""
        return [all(not isinstance(row[at], str) for row in self.rows) for at in range(len(self.headings))]

    def texts(self) -> list[list[str]]:
        """The rows as a person reads them."""
        return [[cell_text(cell) for cell in row] for row in self.rows]

    def csv(self) -> str:
        """Every number in full; what is unknown is empty. Lines end with a newline.

        A text that a spreadsheet would take for a formula has a `'` before it.
        """
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.headings)
        writer.writerows([_whole(cell) for cell in row] for row in self.rows)
        return out.getvalue()

    def markdown(self) -> str:
        """A table as GitHub and pandoc read it, numbers to the right. Texts are no markup."""
        lines = [[unmarked(text) for text in row] for row in (self.headings, *self.texts())]
        rule = ["---:" if right else "---" for right in self.numeric]
        return "".join(f"| {' | '.join(line)} |\n" for line in (lines[0], rule, *lines[1:]))


def value_at(one: Any, path: str) -> Any:
    """What an object, or a JSON object, has at a path of names, `steady.mean`; None where something on it is None."""
    for name in path.split("."):
        if one is None:
            break
        one = one.get(name) if isinstance(one, Mapping) else getattr(one, name)
    return one


def quantity(at: str | Callable[[Any], float | None], text: Callable[[float], str]) -> Callable[[Any], Cell]:
    """A column's value as a `Quantity`; `at` is a path as `value_at` takes it, or what works the number out."""

    def cell(one: Any) -> Cell:
        value = value_at(one, at) if isinstance(at, str) else at(one)
        return None if value is None else Quantity(value, text)

    return cell


def expected_cell(estimate: Estimate | None) -> Cell:
    """The expected step time, without its unit."""
    return None if estimate is None else Quantity(estimate.step_time_s, expected_step_time(estimate.method))


def bare(cell: Cell) -> str | float | None:
    """A cell's text or number."""
    return cell.value if isinstance(cell, Quantity) else cell


def unmarked(text: str) -> str:
    """A text in which nothing is Markdown, wherever in a line it stands."""
    return _MARKUP.sub(r"\\\1", text)


def cell_text(cell: Cell) -> str:
    """A value for a person."""
    value = bare(cell)
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return UNKNOWN
    if isinstance(value, str):
        return clean_line(value)
    if isinstance(cell, Quantity):
        return cell.text(value)
    return count(value) if isinstance(value, int) else four_digits(value)


def _whole(of: Cell) -> str:
    cell = bare(of)
    if isinstance(cell, str):
        text = clean_line(cell)
        return f"'{text}" if len(text) > 1 and text.lstrip().startswith(_FORMULA) else text
    return "" if cell is None or not math.isfinite(cell) else repr(cell)
