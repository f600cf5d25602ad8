"""`Table`: headings and rows of values, as text for a terminal, as CSV and as Markdown."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from llmb_tui.text import clean_line

Cell = str | int | float | None
"""A text may be remote; None and a float that is no finite number are unknown."""
Form = Literal["table", "csv", "markdown"]
FORMS: tuple[Form, ...] = ("table", "csv", "markdown")

UNKNOWN = "–"
_MARKUP = re.compile(r"([\\`*_\[\]<>&|~])")


@dataclass(frozen=True, slots=True)
class Table:
    """Rows are as long as the headings."""

    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @classmethod
    def of(cls, headings: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Table:
        """From any sequences."""
        return cls(tuple(headings), tuple(tuple(row) for row in rows))

    def texts(self) -> list[list[str]]:
        """The rows as a person reads them."""
        return [[cell_text(cell) for cell in row] for row in self.rows]

    def csv(self) -> str:
        """Every number in full; what is unknown is empty. Lines end with a newline."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.headings)
        writer.writerows([_whole(cell) for cell in row] for row in self.rows)
        return out.getvalue()

    def markdown(self) -> str:
        """A table as GitHub and pandoc read it, numbers to the right. Texts are no markup."""
        lines = [[_MARKUP.sub(r"\\\1", text) for text in row] for row in (list(self.headings), *self.texts())]
        numeric = [all(not isinstance(row[at], str) for row in self.rows) for at in range(len(self.headings))]
        rule = ["---:" if right else "---" for right in numeric]
        return "".join(f"| {' | '.join(line)} |\n" for line in (lines[0], rule, *lines[1:]))


def cell_text(cell: Cell) -> str:
    """A value for a person: four digits of a number, all of one that has more before its point."""
    if cell is None or (isinstance(cell, float) and not math.isfinite(cell)):
        return UNKNOWN
    if isinstance(cell, str):
        return clean_line(cell)
    return f"{cell:,.0f}" if isinstance(cell, int) or abs(cell) >= 1000 else f"{cell:.4g}"


def _whole(cell: Cell) -> str:
    if isinstance(cell, str):
        return clean_line(cell)
    return "" if cell is None or not math.isfinite(cell) else repr(cell)
