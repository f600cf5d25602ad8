"""`KeyedTable`: rows with keys, as wide as the terminal. It writes what changed, and the cursor stays on its row.

`Rows` makes the rows of things, and `RowFilter` narrows them.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual import on
from textual.binding import Binding, BindingType
from textual.coordinate import Coordinate
from textual.widgets import DataTable, Input

from llmb_tui.answers.table import Column, toned_text
from llmb_tui.language.states import Tone

Key = Hashable
Cell = tuple[str, Tone]
"""A clean text, as `toned_text` makes it."""
Row = dict[str, Cell]
"""Cells by the keys of columns."""
MARK = Column("", lambda _: "", "mark", 1)
"""The column of marks, for a list whose rows can be marked."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Things and the rows that a list has of them."""

    columns: tuple[Column, ...] = ()
    things: Mapping[Key, Any] = field(default_factory=dict)
    cells: Mapping[Key, Row] = field(default_factory=dict)

    def updated(self, columns: Sequence[Column], things: Mapping[Key, Any]) -> Rows:
        """The rows of these things, in their order. The row of a thing that is the same object as before is kept."""
        known = self.cells if tuple(columns) == self.columns else {}
        cells = {
            key: known[key] if key in known and self.things[key] is thing else make_row(columns, thing)
            for key, thing in things.items()
        }
        return Rows(tuple(columns), things, cells)

    def refreshed(self, names: Collection[str]) -> Rows:
        """The same, with the cells of these columns made again. A row whose cells are the same is kept."""
        columns = [column for column in self.columns if column.key in names]
        cells = {}
        for key, row in self.cells.items():
            made = make_row(columns, self.things[key])
            cells[key] = row if made.items() <= row.items() else row | made
        return replace(self, cells=cells)


def make_row(columns: Iterable[Column], thing: object) -> Row:
    """The cells of a thing."""
    return {column.key: toned_text(column.cell(thing)) for column in columns}


def fitted(columns: Sequence[Column], widest: Mapping[str, int], room: int) -> tuple[tuple[Column, int], ...]:
    """The columns for which there is room, with a blank between them, and how many cells each has.

    `widest`: cells of the widest text of each column. Spare room goes first to columns that lack the fewest cells.
    """
    kept = list(columns)
    widths = {column.key: column.width or widest[column.key] for column in kept}
    if kept and not kept[-1].width:
        widths[kept[-1].key] = cell_len(kept[-1].heading)
    while (taken := sum(widths[column.key] + 1 for column in kept) - 1) > room and any(one.drop for one in kept):
        kept.remove(max(reversed(kept), key=lambda column: column.drop))
    spare = max(room - taken, 0)
    for column in sorted(kept, key=lambda column: widest[column.key] - widths[column.key]):
        more = min(max(widest[column.key] - widths[column.key], 0), spare)
        widths[column.key] += more
        spare -= more
    return tuple((column, widths[column.key]) for column in kept)


class KeyedTable(DataTable[Text]):
    """Rows of clean text in the order in which they are given. Where none stays, the cursor goes to the first."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"row--quiet", "row--active", "row--good", "row--warning", "row--bad"}
    DEFAULT_CSS = """
    KeyedTable {
        height: 1fr;
        padding-left: 1;
        background: transparent;
        scrollbar-size: 0 1;
        .row--quiet { text-style: dim; }
        .row--active { color: $text-accent; }
        .row--good { color: $text-success; text-style: bold; }
        .row--warning { color: $text-warning; text-style: bold; }
        .row--bad { color: $text-error; text-style: bold; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "cursor_down", "Down", show=False, id="results.down", tooltip="The row below"),
        Binding("k", "cursor_up", "Up", show=False, id="results.up", tooltip="The row above"),
    ]

    CUT_AT_START: ClassVar[frozenset[str]] = frozenset()
    """Keys of columns whose texts are told apart by their ends, such as paths."""

    def __init__(self) -> None:
        super().__init__(cursor_type="row", cell_padding=0, zebra_stripes=False)
        self.shown: dict[Key, Row] = {}
        """The rows by their keys, in order."""
        self._offered: tuple[Column, ...] = ()
        """All columns, also those that have no room."""
        self._widest: dict[str, int] = {}
        """Cells of the widest heading or text so far, by the keys of columns."""
        self._fitted: tuple[tuple[Column, int], ...] = ()

    @property
    def chosen(self) -> Key | None:
        """Key of the row under the cursor; None without rows."""
        keys = list(self.shown)
        return keys[self.cursor_row] if 0 <= self.cursor_row < len(keys) else None

    def show(self, columns: Sequence[Column], rows: Mapping[Key, Row], chosen: Key | None = None) -> None:
        """Bring the table to these rows; the cursor goes to `chosen`, or else stays on its row where that is there."""
        before, columns = self.shown, tuple(columns)
        if columns != self._offered:
            self._widest = {column.key: cell_len(column.heading) for column in columns}
        changed = [row for key, row in rows.items() if columns != self._offered or row is not before.get(key)]
        for column in columns:
            self._widest[column.key] = max(
                self._widest[column.key], *(cell_len(row[column.key][0]) for row in changed), 0
            )
        shown, self._offered = self._fitted, columns
        self._fit()
        if list(before) != list(rows) or shown != self._fitted:
            row = self.cursor_row if before.keys() & rows.keys() else 0
            wanted = self.chosen if chosen is None else chosen
            self.shown = dict(rows)
            self._fill(wanted, row)
            return
        self.shown = dict(rows)
        for at, (key, cells) in enumerate(rows.items()):
            if cells is before[key]:
                continue
            for place, (column, width) in enumerate(self._fitted):
                if cells[column.key] != before[key][column.key]:
                    self.update_cell_at(Coordinate(at, place), self._text(column, width, cells[column.key]))

    def on_resize(self) -> None:
        """Other columns may have room."""
        shown = self._fitted
        self._fit()
        if shown != self._fitted:
            self._fill(self.chosen, self.cursor_row)

    def notify_style_update(self) -> None:
        """Another theme: the cells' colours are written again."""
        super().notify_style_update()
        if self.shown:
            self._fill(self.chosen, self.cursor_row)

    def _fit(self) -> None:
        """Choose the columns for the table's width, of which the scrollbar takes a cell."""
        if width := self.size.width:
            self._fitted = fitted(self._offered, self._widest, width - 1)

    def _fill(self, chosen: Key | None, row: int) -> None:
        """Write all rows, with the cursor on one with that key, or else on that row."""
        scrolled = self.scroll_y if row else 0
        self.clear(columns=True)
        for column, width in self._fitted:
            heading = f"{column.heading:>{width}}" if column.figures else column.heading
            gap = column is not self._fitted[-1][0]
            self.add_column(Text(heading), key=column.key, width=width + gap)
        for cells in self.shown.values():
            self.add_row(*(self._text(column, width, cells[column.key]) for column, width in self._fitted))
        keys = list(self.shown)
        if keys:
            self.scroll_to(y=scrolled, animate=False)
            at = keys.index(chosen) if chosen in self.shown else min(row, len(keys) - 1)
            self.move_cursor(row=at, animate=False)

    def _text(self, column: Column, width: int, cell: Cell) -> Text:
        text, tone = cell
        style = "" if tone == "plain" else self.get_component_rich_style(f"row--{tone}", partial=True)
        if column.figures:
            text = f"{text:>{width}}"
        elif column.key in self.CUT_AT_START and len(text) > width:
            text = f"…{text[len(text) - width + 1 :]}"
        shown = Text(text, style, no_wrap=True, overflow="ellipsis")
        shown.truncate(width)  # the table itself would cut it one cell later, where the next one begins
        return shown


class RowFilter(Input):
    """The screen shows the rows that its `value` lets through."""

    DEFAULT_CSS = "RowFilter { display: none; margin: 0 1; }"

    def __init__(self, placeholder: str, id: str) -> None:  # noqa: A002 - Textual's own name
        super().__init__(placeholder=placeholder, id=id, compact=True)

    def ask(self) -> None:
        self.display = True
        self.screen.set_focus(self)  # at once: the next key is the filter's already

    def forget(self) -> bool:
        """Let all rows through; False where it is not seen."""
        seen = self.display
        self.value = ""
        self.to_rows()
        return seen

    @on(Input.Submitted)
    def to_rows(self) -> None:
        self.display = bool(self.value)
        self.screen.set_focus(self.screen.query_one(KeyedTable))
