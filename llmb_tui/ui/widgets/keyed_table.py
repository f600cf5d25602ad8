"""`KeyedTable`: rows with keys, as wide as the terminal. It writes what changed, and the cursor stays on its row.

`RowFilter` narrows them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.binding import Binding, BindingType
from textual.coordinate import Coordinate
from textual.widgets import DataTable, Input

from llmb_tui.language.states import Label, Tone
from llmb_tui.language.text import clean_line

Key = Hashable
Cell = tuple[str, Tone]
Row = dict[str, Cell]
"""Cells by column."""


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column: its key, its heading and how many cells it has; figures stand at its right."""

    key: str
    heading: str
    width: int
    figures: bool = False


def label_cell(label: Label) -> Cell:
    """Glyph and word of a state."""
    return label.text, label.tone


def room_beside(columns: Iterable[TableColumn], width: int) -> int:
    """The cells that one more column can have in a table of that many, its scrollbar left out."""
    return width - sum(column.width + 1 for column in columns) - 1


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

    def __init__(self) -> None:
        super().__init__(cursor_type="row", cell_padding=0, zebra_stripes=False)
        self.shown: dict[Key, Row] = {}
        """The rows by their keys, in order."""
        self._headings: tuple[TableColumn, ...] = ()

    @property
    def chosen(self) -> Key | None:
        """Key of the row under the cursor; None without rows."""
        keys = list(self.shown)
        return keys[self.cursor_row] if 0 <= self.cursor_row < len(keys) else None

    def show(self, columns: Sequence[TableColumn], rows: Mapping[Key, Row], chosen: Key | None = None) -> None:
        """Bring the table to these rows; the cursor goes to `chosen`, or else stays on its row where that is there."""
        before, columns = self.shown, tuple(columns)
        if list(before) != list(rows) or columns != self._headings:
            row = self.cursor_row if before.keys() & rows.keys() else 0
            wanted = self.chosen if chosen is None else chosen
            self.shown, self._headings = dict(rows), columns
            self._fill(wanted, row)
            return
        self.shown = dict(rows)
        for at, (key, cells) in enumerate(rows.items()):
            if cells is before[key]:
                continue
            for place, column in enumerate(columns):
                if cells[column.key] != before[key][column.key]:
                    self.update_cell_at(Coordinate(at, place), self._text(column, cells[column.key]))

    def notify_style_update(self) -> None:
        """Another theme: the cells' colours are written again."""
        super().notify_style_update()
        if self.shown:
            self._fill(self.chosen, self.cursor_row)

    def _fill(self, chosen: Key | None, row: int) -> None:
        """Write all rows, with the cursor on one with that key, or else on that row."""
        scrolled = self.scroll_y if row else 0
        self.clear(columns=True)
        for column in self._headings:
            heading = f"{column.heading:>{column.width}}" if column.figures else column.heading
            self.add_column(Text(heading), key=column.key, width=column.width + 1)
        for cells in self.shown.values():
            self.add_row(*(self._text(column, cells[column.key]) for column in self._headings))
        keys = list(self.shown)
        if keys:
            self.scroll_to(y=scrolled, animate=False)
            at = keys.index(chosen) if chosen in self.shown else min(row, len(keys) - 1)
            self.move_cursor(row=at, animate=False)

    def _text(self, column: TableColumn, cell: Cell) -> Text:
        text, tone = cell
        style = "" if tone == "plain" else self.get_component_rich_style(f"row--{tone}", partial=True)
        if column.figures:
            text = f"{text:>{column.width}}"
        shown = Text(clean_line(text), style, no_wrap=True, overflow="ellipsis")
        if column != self._headings[-1]:  # the table itself would cut it one cell later, where the next one begins
            shown.truncate(column.width)
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
