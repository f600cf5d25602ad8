"""`KeyedTable`: a table whose rows have keys. It writes only changed cells, and the cursor stays on its row.

`Rows` makes the rows of things, and `RowFilter` is the input field for the words that a row must have.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
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
    """The things of a list and their rows."""

    columns: tuple[Column, ...] = ()
    things: Mapping[Key, Any] = field(default_factory=dict)
    cells: Mapping[Key, Row] = field(default_factory=dict)

    def with_things(self, columns: Sequence[Column], things: Mapping[Key, Any]) -> Rows:
        """Return the rows of these things, in their order. A thing that is the same object as before keeps its row."""
        known = self.cells if tuple(columns) == self.columns else {}
        cells = {
            key: known[key] if key in known and self.things[key] is thing else make_row(columns, thing)
            for key, thing in things.items()
        }
        return Rows(tuple(columns), things, cells)

    def with_new_cells(self, names: Collection[str]) -> Rows:
        """Return the rows with the cells of these columns made again. A row without a changed cell is kept."""
        cells = dict(self.cells)
        for column in (column for column in self.columns if column.key in names):
            for key, thing in self.things.items():
                cell = toned_text(column.cell(thing))
                if cell != cells[key][column.key]:
                    cells[key] = cells[key] | {column.key: cell}
        return replace(self, cells=cells)


def make_row(columns: Iterable[Column], thing: object) -> Row:
    """Make the cells of a thing."""
    return {column.key: toned_text(column.cell(thing)) for column in columns}


def fit_columns(columns: Sequence[Column], widest: Mapping[str, int], room: int) -> tuple[tuple[Column, int], ...]:
    """Return the columns that fit into `room` cells, with one blank between them, and their widths in cells.

    `widest`: width of the widest text of each column. Spare cells go first to columns that need the fewest more.
    """
    visible = list(columns)
    widths = {column.key: column.width or widest[column.key] for column in visible}
    if visible and not visible[-1].width:
        widths[visible[-1].key] = cell_len(visible[-1].heading)
    while (total := sum(widths[column.key] + 1 for column in visible) - 1) > room and any(
        column.drop for column in visible
    ):
        visible.remove(max(reversed(visible), key=lambda column: column.drop))
    spare = max(room - total, 0)
    for column in sorted(visible, key=lambda column: widest[column.key] - widths[column.key]):
        extra = min(max(widest[column.key] - widths[column.key], 0), spare)
        widths[column.key] += extra
        spare -= extra
    return tuple((column, widths[column.key]) for column in visible)


class PaintedCell(NamedTuple):
    """A cell whose text is made when the table paints it. Most rows of a long list are never painted.

    It has no `__rich_measure__`, with which Textual would measure every added cell: the columns have fixed widths.
    """

    table: KeyedTable
    column: Column
    width: int
    cell: Cell

    def __str__(self) -> str:
        return self.table.paint(*self[1:]).plain

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.table.paint(*self[1:])


class KeyedTable(DataTable[PaintedCell]):
    """Rows of clean text in the given order. If all rows are replaced, the cursor goes to the first row."""

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
    """Keys of columns whose texts keep their ends when they are cut, such as paths."""

    def __init__(self) -> None:
        super().__init__(cursor_type="row", cell_padding=0, zebra_stripes=False)
        self.shown: dict[Key, Row] = {}
        """The rows by their keys, in order."""
        self._offered: tuple[Column, ...] = ()
        """All columns, including those that do not fit."""
        self._widest: dict[str, int] = {}
        """Width of the widest heading or text so far, by the keys of columns."""
        self._visible: tuple[tuple[Column, int], ...] = ()
        """The columns that fit, and their widths in cells."""

    @property
    def cursor_key(self) -> Key | None:
        """Key of the row under the cursor; None without rows."""
        keys = list(self.shown)
        return keys[self.cursor_row] if 0 <= self.cursor_row < len(keys) else None

    def show(self, columns: Sequence[Column], rows: Mapping[Key, Row], chosen: Key | None = None) -> None:
        """Show these rows. The cursor goes to the row `chosen`, or stays on its row if that is still shown."""
        before, columns = self.shown, tuple(columns)
        if columns != self._offered:
            self._widest = {column.key: cell_len(column.heading) for column in columns}
        changed = [row for key, row in rows.items() if columns != self._offered or row is not before.get(key)]
        for column in columns:
            self._widest[column.key] = max(
                self._widest[column.key], *(cell_len(row[column.key][0]) for row in changed), 0
            )
        visible, self._offered = self._visible, columns
        self._fit()
        if list(before) != list(rows) or visible != self._visible:
            row_index = self.cursor_row if before.keys() & rows.keys() else 0
            cursor_key = self.cursor_key if chosen is None else chosen
            self.shown = dict(rows)
            self._fill(cursor_key, row_index)
            return
        self.shown = dict(rows)
        for row_index, (key, cells) in enumerate(rows.items()):
            if cells is before[key]:
                continue
            for column_index, (column, width) in enumerate(self._visible):
                if cells[column.key] != before[key][column.key]:
                    cell = PaintedCell(self, column, width, cells[column.key])
                    self.update_cell_at(Coordinate(row_index, column_index), cell)

    def on_resize(self) -> None:
        """Show the columns that fit into the new width."""
        visible = self._visible
        self._fit()
        if visible != self._visible:
            self._fill(self.cursor_key, self.cursor_row)

    def _fit(self) -> None:
        """Choose the columns for the table's width, of which the scrollbar takes one cell."""
        if width := self.size.width:
            self._visible = fit_columns(self._offered, self._widest, width - 1)

    def _fill(self, cursor_key: Key | None, row_index: int) -> None:
        """Write all rows. The cursor goes to the row with that key; without such a row, to that index."""
        scrolled = self.scroll_y if row_index else 0
        self.clear(columns=True)
        for column, width in self._visible:
            heading = f"{column.heading:>{width}}" if column.figures else column.heading
            gap = column is not self._visible[-1][0]
            self.add_column(Text(heading), key=column.key, width=width + gap)
        for cells in self.shown.values():
            self.add_row(*(PaintedCell(self, column, width, cells[column.key]) for column, width in self._visible))
        keys = list(self.shown)
        if keys:
            self.scroll_to(y=scrolled, animate=False)
            row_index = keys.index(cursor_key) if cursor_key in self.shown else min(row_index, len(keys) - 1)
            self.move_cursor(row=row_index, animate=False)

    def paint(self, column: Column, width: int, cell: Cell) -> Text:
        """Make the text of a cell in the style of its tone, cut to `width` cells."""
        text, tone = cell
        style = "" if tone == "plain" else self.get_component_rich_style(f"row--{tone}", partial=True)
        if column.figures:
            text = f"{text:>{width}}"
        elif column.key in self.CUT_AT_START and len(text) > width:
            text = f"…{text[len(text) - width + 1 :]}"
        painted = Text(text, style, no_wrap=True, overflow="ellipsis")
        painted.truncate(width)  # Textual cuts it at the column's width, which includes the gap to the next column
        return painted


class RowFilter(Input):
    """Input field for the words that a row must have to be shown; hidden while it is empty and not focused."""

    DEFAULT_CSS = "RowFilter { display: none; margin: 0 1; }"

    def __init__(self, placeholder: str, id: str) -> None:  # noqa: A002 - Textual's own name
        super().__init__(placeholder=placeholder, id=id, compact=True)

    def open(self) -> None:
        """Show the field and focus it."""
        self.display = True
        self.screen.set_focus(self)  # immediately, because the next key may already be part of a word

    def close(self) -> bool:
        """Clear the words and hide the field; False if it was hidden before."""
        was_visible = self.display
        self.value = ""
        self.focus_rows()
        return was_visible

    @on(Input.Submitted)
    def focus_rows(self) -> None:
        """Focus the table, and hide the field if it is empty."""
        self.display = bool(self.value)
        self.screen.set_focus(self.screen.query_one(KeyedTable))
