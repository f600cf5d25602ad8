"""`TableScreen`: base class of the list screens. A list adds its columns, its actions and the target of a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Generic, TypeVar

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Key as KeyPressed
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import DataTable, Input, Static

from llmb_tui.answers import table
from llmb_tui.answers.table import Column, bare, cell_text
from llmb_tui.ui.text import MUTED, Part, heading, line, notify, set_text
from llmb_tui.ui.widgets.key_bar import KeyBar
from llmb_tui.ui.widgets.keyed_table import MARK, Cell, Key, KeyedTable, Row, RowFilter, Rows

Thing = TypeVar("Thing")
Result = TypeVar("Result")

_MARKED: Cell = ("x", "active")
_AGE_EVERY_S = 2.0
"""Interval at which ages are updated."""


class TableScreen(Screen[Result], Generic[Thing, Result]):
    """A list of things: heading, rows by key, facts about the row under the cursor, a filter, marks and sorting."""

    DEFAULT_CSS = """
    TableScreen {
        #list-head {
            height: 1;
            padding: 0 1;
            background: $panel;
            text-wrap: nowrap;
            text-overflow: ellipsis;
        }
        #list-status, #list-about {
            display: none;
            height: auto;
            max-height: 4;
            padding: 0 1;
        }
        KeyedTable { min-height: 4; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        # With priority: the letters of `/word`, typed in one burst, go to the filter.
        Binding("slash", "filter", "Find", id="results.filter", tooltip="Show only rows with words", priority=True),
        # Without ids: the set of ids in `config show` is fixed.
        Binding("greater_than_sign", "sort(1)", "Sort", show=False, tooltip="Sort by the next column"),
        Binding("less_than_sign", "sort(-1)", "Sort", show=False, tooltip="Sort by the column before"),
    ]
    TABLE: ClassVar[type[KeyedTable]] = KeyedTable
    """Class of the table; its key bindings describe what enter does."""
    FILTERED: ClassVar[str] = "row"
    """Noun for a row in the filter's prompt."""
    AGES: ClassVar[frozenset[str]] = frozenset()
    """Keys of the columns whose cells change as time passes."""

    table = getters.query_one(KeyedTable)
    words = getters.query_one(RowFilter)
    head = getters.query_one("#list-head", Static)
    status = getters.query_one("#list-status", Static)
    about_row = getters.query_one("#list-about", Static)

    def __init__(self) -> None:
        super().__init__()
        self.columns: Sequence[Column] = ()
        """Columns whose headings are shown before the first rows are known; may be empty."""
        self.rows = Rows()
        """Rows of all things, including those hidden by the filter."""
        self.marked: dict[Key, Thing] = {}
        self._sorted_by = ""
        """Key of the column by which the rows are sorted; empty for the default order of the list."""
        self._ages: Timer | None = None

    # Methods that a list overrides.

    @property
    def title_parts(self) -> Sequence[Part]:
        """Start of the heading."""
        raise NotImplementedError

    @property
    def notice(self) -> str:
        """Notices of the clusters in the list, such as `simulated`; may be empty."""
        return ""

    def open(self, thing: Thing) -> None:
        """Open the target of a row, if it has one."""

    def about(self, thing: Thing) -> Content:  # noqa: ARG002 - a list may have nothing to add
        """Return further facts about the thing under the cursor."""
        return Content("")

    def disabled_reason(self, action: str) -> str:  # noqa: ARG002 - a list may offer all of its actions
        """Return why an action is not available now; empty if it is available."""
        return ""

    def why_unmarkable(self, thing: Thing) -> str:  # noqa: ARG002 - as above
        """Return why a thing cannot be marked; empty if it can be marked."""
        return ""

    def compose_above(self) -> Iterable[Widget]:
        """Return the widgets between the heading and the rows."""
        return ()

    def compose_below(self) -> Iterable[Widget]:
        """Return the widgets between the facts about the row and the key bar."""
        return ()

    # Display.

    def compose(self) -> ComposeResult:
        yield Static(id="list-head", markup=False)
        yield from self.compose_above()
        yield Static(id="list-status", markup=False)
        keyed_table = self.TABLE()
        keyed_table.show(self.columns, {})
        yield keyed_table
        yield Static(id="list-about", markup=False)
        yield from self.compose_below()
        yield RowFilter(f"words that a {self.FILTERED} must have", id="list-filter")
        yield KeyBar()

    def on_mount(self) -> None:
        self.table.focus()
        if self.AGES:
            self._ages = self.set_interval(_AGE_EVERY_S, self._update_ages)

    def on_resize(self) -> None:
        self.call_after_refresh(self.show_heading)

    def on_screen_suspend(self) -> None:
        if self._ages is not None:
            self._ages.pause()

    def on_screen_resume(self) -> None:
        if self._ages is not None:
            self._ages.resume()

    @property
    def thing(self) -> Thing | None:
        """The thing under the cursor; None without rows."""
        thing: Thing | None = self.rows.things.get(self.table.cursor_key)
        return thing

    def show_things(self, columns: Sequence[Column], things: Mapping[Key, Thing], chosen: Key | None = None) -> None:
        """Show these things in this order."""
        self.show_rows(self.rows.with_things(columns, things), chosen)

    def show_rows(self, rows: Rows, chosen: Key | None = None) -> None:
        """Show rows that the caller made, for example in a thread."""
        self.rows = rows
        self.marked = {key: rows.things.get(key, thing) for key, thing in self.marked.items()}
        self.lay_out(chosen)

    def lay_out(self, chosen: Key | None = None) -> None:
        """Show the rows that match the filter, sorted and with their marks."""
        words = self.filter_words
        shown = {key: row for key, row in self.rows.cells.items() if has_words(key, row, words)}
        if (column := self._sort_column) is not None:
            shown = dict(sorted(shown.items(), key=lambda item: _sort_key(column.cell(self.rows.things[item[0]]))))
        shown |= {key: shown[key] | {MARK.key: _MARKED} for key in self.marked if key in shown}
        self.table.show(self.rows.columns, shown, chosen)
        self.show_heading()
        self._show_about()

    @property
    def _sort_column(self) -> Column | None:
        """The column by which the user sorted the rows; None for the default order."""
        return next((column for column in self.rows.columns if column.key == self._sorted_by), None)

    def show_heading(self) -> None:
        parts: list[Part] = []
        if words := self.words.value.split():
            parts.append((f"   filter: {' '.join(words)}", "$text-accent"))
        if len(self.table.shown) != len(self.rows.things):
            parts.append((f"   {len(self.table.shown)} shown", "$text-accent"))
        if self.marked:
            parts.append((f"   {len(self.marked)} marked", "$text-accent"))
        if (column := self._sort_column) is not None:
            parts.append((f"   sorted by {column.heading}", MUTED))
        width = self.head.content_size.width
        set_text(self.head, heading(line(*self.title_parts), self.notice, width, line(*parts)))

    def show_status(self, *parts: Part) -> None:
        """Show the progress or the problems of a query above the rows."""
        text = line(*parts)
        set_text(self.status, text)
        self.status.display = bool(text)

    @on(DataTable.RowHighlighted)
    def _show_about(self) -> None:
        text = Content("") if self.thing is None else self.about(self.thing)
        if self.thing is None and self.filter_words and self.rows.things:
            text = line((f"No {self.FILTERED} has these words. esc shows all.", MUTED))
        set_text(self.about_row, text)
        self.about_row.display = bool(text)

    def _update_ages(self) -> None:
        rows = self.rows.with_new_cells(self.AGES)
        if any(row is not self.rows.cells[key] for key, row in rows.cells.items()):
            self.show_rows(rows)

    # Keys.

    @property
    def filter_words(self) -> list[str]:
        """Words that a row must have, in lower case."""
        return self.words.value.lower().split()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 (Textual's)
        """Disable the filter's key while the user types into the filter, where the key is a character."""
        if action == "filter":
            return self.focused is not self.words
        return None if self.disabled_reason(action) else True

    def on_key(self, event: KeyPressed) -> None:
        """Show why a grey key is not available."""
        active = self.active_bindings.get(event.key)
        if active and not active.enabled and (why := self.disabled_reason(active.binding.action)):
            notify(self.app, why, "warning")

    @on(DataTable.RowSelected)
    def open_row(self) -> None:
        if self.thing is not None:
            self.open(self.thing)

    def action_filter(self) -> None:
        self.words.open()

    @on(Input.Changed, "#list-filter")
    def _filter_changed(self) -> None:
        self.apply_filter()

    def apply_filter(self) -> None:
        """Show the rows that match the filter."""
        self.lay_out()

    def action_sort(self, step: int) -> None:
        """Sort by the next column, or by the previous one if `step` is -1. The default order follows the last one."""
        keys = ["", *(column.key for column in self.rows.columns if column.heading)]
        index = keys.index(self._sorted_by) if self._sort_column is not None else 0
        self._sorted_by = keys[(index + step) % len(keys)]
        self.lay_out()

    def action_mark(self) -> None:
        """Mark the row under the cursor, or remove its mark."""
        key, thing = self.table.cursor_key, self.thing
        if key is None or thing is None:
            return
        if why := self.why_unmarkable(thing):
            notify(self.app, why, "warning")
            return
        if key in self.marked:
            del self.marked[key]
        else:
            self.marked[key] = thing
        self.lay_out()
        self.refresh_bindings()

    def unmark(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self.marked.pop(key, None)
        self.lay_out()

    def action_leave(self) -> None:
        """Clear the filter; without a filter, leave the screen."""
        if not self.words.close():
            self.leave()

    def leave(self) -> None:
        self.dismiss(None)


def has_words(key: Key, row: Row, words: Sequence[str]) -> bool:
    """Return True if every word, in lower case, occurs in the row's key or in one of its cells."""
    text = " ".join([str(key), *(cell for cell, _ in row.values())]).lower() if words else ""
    return all(word in text for word in words)


def _sort_key(cell: table.Cell) -> tuple[int, float, str]:
    """Return a sort key: numbers first, in descending order, then texts, then unknown values."""
    value = bare(cell)
    if isinstance(value, int | float) and value == value:  # noqa: PLR0124 - nan is unknown
        return 0, -value, ""
    return (2, 0.0, "") if value in (None, "") else (1, 0.0, cell_text(cell).lower())
