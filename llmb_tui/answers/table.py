"""`Table`: headings and rows of cells, before a writer makes text of them; `Column`: a column and its values. Pure."""

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
    """A number, with the function of `language.quantities` that writes it for people."""

    value: float
    text: Callable[[float], str]
    tone: Tone = "plain"


class State(NamedTuple):
    """A member of a set of `language.states`: CSV and JSON contain its name, people read its label."""

    name: str
    label: Label


class Toned(NamedTuple):
    """A text with a tone."""

    text: str
    tone: Tone


Cell = str | int | float | Quantity | State | Toned | None
"""The value of a cell. A text may come from a cluster. None and a float that is not finite are unknown."""

UNKNOWN = "–"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of tables of one kind of object, such as runs or nodes."""

    heading: str
    """Heading for people, with the unit."""
    value: str | Callable[[Any], Cell]
    """Path of the value in a row's object, as for `value_at`, or a function that returns the object's cell."""
    name: str = ""
    """Key on a screen and heading in CSV; if empty, `heading` is both."""
    width: int = 0
    """Width in cells on a screen; a wider text gets more if there is room. 0: the width of the widest text, and for the
    last column of a table the remaining width."""
    figures: bool = False
    """Whether the column is aligned to the right on a screen. Other outputs align columns of numbers by their cells."""
    drop: int = 0
    """Order in which columns are hidden on a narrow screen: the highest number first, 0 never."""

    @property
    def key(self) -> str:
        """The name, or the heading if the name is empty."""
        return self.name or self.heading

    def cell(self, item: object) -> Cell:
        """The cell of this column in the row of an object."""
        return value_at(item, self.value) if isinstance(self.value, str) else self.value(item)


@dataclass(frozen=True, slots=True)
class Table:
    """A table whose rows are as long as its headings."""

    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @classmethod
    def of(cls, headings: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Table:
        """A table from any sequences."""
        return cls(tuple(headings), tuple(tuple(row) for row in rows))

    @classmethod
    def by(cls, columns: Sequence[Column], items: Iterable[object]) -> Table:
        """A table for people with a row for each object."""
        rows = [[column.cell(item) for column in columns] for item in items]
        return cls.of([column.heading for column in columns], rows)

    @classmethod
    def for_programs(cls, columns: Sequence[Column], items: Iterable[object]) -> Table:
        """A table like `by`, with the names of the columns as headings."""
        rows = [[column.cell(item) for column in columns] for item in items]
        return cls.of([column.key for column in columns], rows)

    @property
    def numeric(self) -> list[bool]:
        """Whether each column contains only numbers; such a column is aligned to the right."""
        indexes = range(len(self.headings))
        return [all(isinstance(row[index], int | float | Quantity | None) for row in self.rows) for index in indexes]

    def texts(self) -> list[list[str]]:
        """The rows as people read them."""
        return [[cell_text(cell) for cell in row] for row in self.rows]


def value_at(item: Any, path: str) -> Any:
    """Value of an object or a JSON object at a path of names, `steady.mean`; None if a part of the path is None."""
    for name in path.split("."):
        if item is None:
            break
        item = item.get(name) if isinstance(item, Mapping) else getattr(item, name)
    return item


def quantity(source: str | Callable[[Any], float | None], text: Callable[[float], str]) -> Callable[[Any], Cell]:
    """A cell function for a `Quantity`; `source` is a path as for `value_at`, or a function of the row's object."""

    def cell(item: Any) -> Cell:
        value = value_at(item, source) if isinstance(source, str) else source(item)
        return None if value is None else Quantity(value, text)

    return cell


def expected_cell(estimate: Estimate | None) -> Cell:
    """The expected step time without its unit; None without an estimate."""
    return None if estimate is None else Quantity(estimate.step_time_s, expected_step_time(estimate.method))


def bare(cell: Cell) -> str | float | None:
    """Value of a cell for programs: a number in full precision, the name of a state, or a text."""
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
    """Text of a cell for people; a state has its word without the glyph."""
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
    """Text and tone of a cell on a screen; a state has its glyph and word, an unknown value is quiet."""
    if isinstance(cell, State):
        return cell.label.text, cell.label.tone
    text = cell_text(cell)
    if isinstance(cell, Quantity | Toned):
        return text, cell.tone
    return text, "quiet" if cell is None else "plain"
