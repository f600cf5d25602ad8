"""`Table`: headings and rows of cells, before a writer makes text of them. `Column` names what a table shows. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from llmb_tui.language.quantities import count, four_digits
from llmb_tui.language.states import Label, Tone
from llmb_tui.language.text import clean_line
from llmb_tui.plan.plan import Estimate, expected_step_time


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number and its kind: the function of `language.quantities` that writes it for people."""

    value: float
    text: Callable[[float], str]
    tone: Tone = "plain"


class State(NamedTuple):
    """A member of a set of `language.states`: CSV and JSON have its name, people read its label."""

    name: str
    label: Label


class Toned(NamedTuple):
    """A text whose tone is not plain."""

    text: str
    tone: Tone


Cell = str | int | float | Quantity | State | Toned | None
"""A text may be remote. None and a float that is not finite are unknown."""

UNKNOWN = "–"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of tables of one kind of thing, such as runs or nodes."""

    heading: str
    """For people, with the unit."""
    value: str | Callable[[Any], Cell]
    """Path of the value as `value_at` takes it, or a function that returns the cell of a thing."""
    name: str = ""
    """Key on a screen, and heading in CSV if that differs from `heading`."""
    width: int = 0
    """Cells on a screen, more where there is room for a wider text. 0: as many as its widest text has; the last column
    of a table has what remains then."""
    figures: bool = False
    """Aligned to the right on a screen; everywhere else a column of numbers is, by its cells."""
    drop: int = 0
    """Order of leaving on a screen that is too narrow: the highest number first, 0 never."""

    @property
    def key(self) -> str:
        """Its name, which is its heading unless it has another."""
        return self.name or self.heading

    def cell(self, thing: object) -> Cell:
        """The cell of a thing."""
        return value_at(thing, self.value) if isinstance(self.value, str) else self.value(thing)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows are as long as the headings."""

    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @classmethod
    def of(cls, headings: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Table:
        """A table from any sequences."""
        return cls(tuple(headings), tuple(tuple(row) for row in rows))

    @classmethod
    def by(cls, columns: Sequence[Column], things: Iterable[object]) -> Table:
        """A table for people: a row for each thing."""
        rows = [[column.cell(one) for column in columns] for one in things]
        return cls.of([column.heading for column in columns], rows)

    @classmethod
    def for_programs(cls, columns: Sequence[Column], things: Iterable[object]) -> Table:
        """The same under the names of the columns."""
        rows = [[column.cell(one) for column in columns] for one in things]
        return cls.of([column.key for column in columns], rows)

    @property
    def numeric(self) -> list[bool]:
        """Columns that hold numbers only; they are aligned to the right."""
        return [all(isinstance(row[at], int | float | Quantity | None) for row in self.rows) for at in self._places]

    def texts(self) -> list[list[str]]:
        """The rows as people read them."""
        return [[cell_text(cell) for cell in row] for row in self.rows]

    @property
    def _places(self) -> range:
        return range(len(self.headings))


def value_at(one: Any, path: str) -> Any:
    """Value of an object or a JSON object at a path of names, `steady.mean`; None where a part of it is None."""
    for name in path.split("."):
        if one is None:
            break
        one = one.get(name) if isinstance(one, Mapping) else getattr(one, name)
    return one


def quantity(at: str | Callable[[Any], float | None], text: Callable[[float], str]) -> Callable[[Any], Cell]:
    """The value of a column as a `Quantity`; `at` is a path as `value_at` takes it, or a function."""

    def cell(one: Any) -> Cell:
        value = value_at(one, at) if isinstance(at, str) else at(one)
        return None if value is None else Quantity(value, text)

    return cell


def expected_cell(estimate: Estimate | None) -> Cell:
    """The expected step time, without its unit."""
    return None if estimate is None else Quantity(estimate.step_time_s, expected_step_time(estimate.method))


def bare(cell: Cell) -> str | float | None:
    """The value of a cell for programs: a number in full, the name of a state, a text."""
    match cell:
        case Quantity():
            return cell.value
        case State():
            return cell.name
        case Toned():
            return cell.text
        case _:
            return cell


def cell_text(cell: Cell) -> str:
    """A cell for people, on paper: a state has its word."""
    if isinstance(cell, State):
        return cell.label.word
    value = bare(cell)
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return UNKNOWN
    if isinstance(value, str):
        return clean_line(value)
    if isinstance(cell, Quantity):
        return cell.text(value)
    return count(value) if isinstance(value, int) else four_digits(value)


def toned_text(cell: Cell) -> tuple[str, Tone]:
    """Text and tone of a cell on a screen: glyph and word of a state; an unknown value is quiet."""
    if isinstance(cell, State):
        return cell.label.text, cell.label.tone
    text = cell_text(cell)
    if isinstance(cell, Quantity | Toned):
        return text, cell.tone
    return text, "quiet" if cell is None else "plain"
