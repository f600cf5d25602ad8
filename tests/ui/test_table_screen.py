"""Features of every list: columns that disappear in a fixed order, a filter, marks, sorting, updates of single rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple

import pytest
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.coordinate import Coordinate

from llmb_tui.answers.table import Column, Quantity, Toned
from llmb_tui.language.quantities import byte_size
from llmb_tui.ui.screens.table_screen import TableScreen
from llmb_tui.ui.text import Part, line
from llmb_tui.ui.widgets.keyed_table import MARK, Cell, Key, KeyedTable, PaintedCell, Rows, fit_columns
from tests.kit.pilot import SIZE, rows, text_of
from tests.ui.run.conftest import Host


class File(NamedTuple):
    name: str
    size: int | None
    locked: bool = False


FILES: dict[Key, File] = {
    one.name: one for one in (File("b/two", 200), File("a/one", None), File("c/three", 3_000, locked=True))
}
COLUMNS = (
    MARK,
    Column("name", "name", "name", 6),
    Column("size", lambda one: None if one.size is None else Quantity(one.size, byte_size), "size", 8, figures=True),
    Column("again", "name", "again", 8, drop=1),
)


class Files(TableScreen[File, None]):
    """Files, some of which cannot be marked."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x", "mark", "Mark"),
        Binding("d", "delete", "Delete"),
        Binding("q,escape", "leave", "Back"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []

    def on_mount(self) -> None:
        self.show_things(COLUMNS, FILES)

    @property
    def title_parts(self) -> Sequence[Part]:
        return ["Files of a title that is too long for its line" + " and longer" * 20]

    def open(self, thing: File) -> None:
        self.opened.append(thing.name)

    def about(self, thing: File) -> Content:
        return line(f"about {thing.name}")

    def disabled_reason(self, action: str) -> str:
        return "" if action != "delete" or self.marked else "Nothing is marked."

    def why_unmarkable(self, thing: File) -> str:
        return "It is locked." if thing.locked else ""


class Unread(TableScreen[File, None]):
    """A list whose rows have not been read."""

    title_parts = ()

    def __init__(self) -> None:
        super().__init__()
        self.columns = COLUMNS


@pytest.fixture
def files() -> Files:
    return Files()


@pytest.fixture
def app(files: Files) -> Host:
    return Host(lambda: files)


def names(files: Files) -> list[object]:
    return list(files.table.shown)


@pytest.mark.parametrize(
    ("room", "widths"),
    [
        (40, {"": 1, "name": 6, "size": 8, "again": 8}),
        (26, {"": 1, "name": 6, "size": 8, "again": 8}),
        (25, {"": 1, "name": 6, "size": 8}),
    ],
)
def test_columns_without_room_leave_by_their_order(room: int, widths: dict[str, int]) -> None:
    widest = {column.key: len(column.heading) for column in COLUMNS}
    assert {column.heading: width for column, width in fit_columns(COLUMNS, widest, room)} == widths


def test_spare_width_goes_first_to_the_columns_that_need_least() -> None:
    columns = (Column("a", "a", width=4), Column("b", "b", width=4), Column("c", "c"))
    widest = {"a": 40, "b": 6, "c": 90}
    assert [width for _, width in fit_columns(columns, widest, 60)] == [40, 6, 12]


def test_only_rows_of_changed_things_are_replaced() -> None:
    made = Rows().with_things(COLUMNS, FILES)
    again = made.with_things(COLUMNS, {**FILES, "a/one": File("a/one", 7)})
    assert [key for key in FILES if again.cells[key] is not made.cells[key]] == ["a/one"]
    assert again.cells["a/one"]["size"] == ("7 bytes", "plain")


def test_only_cells_that_time_has_changed_are_replaced() -> None:
    clock: Iterator[int] = itertools.count()
    ages = (Column("name", "name", "name", 6), Column("age", lambda _: f"{next(clock) // 2}", "age", 3))
    made = Rows().with_things(ages, {name: FILES[name] for name in ("b/two", "a/one")})
    again = made.with_new_cells({"age"})
    assert [again.cells[name]["age"][0] for name in again.cells] == ["1", "1"]
    assert again.columns == made.columns
    same = Rows().with_things(COLUMNS, FILES)
    assert all(row is same.cells[key] for key, row in same.with_new_cells({"size"}).cells.items())


async def test_enter_opens_the_row_and_the_line_below_is_about_it(app: Host, files: Files) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        await pilot.press("down", "enter")
        assert files.opened == ["a/one"]
        assert text_of(app, "#list-about") == "about a/one"


async def test_the_filter_leaves_rows_with_all_words_and_back_forgets_it_first(app: Host, files: Files) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        await pilot.press("slash", *"one A/")
        assert names(files) == ["a/one"]
        assert text_of(app, "#list-head").endswith("   filter: one A/   1 shown")
        await pilot.press("enter", "q")
        assert names(files) == list(FILES)
        await pilot.press("q")
        assert app.screen is not files


async def test_a_filter_without_a_match_shows_how_to_show_all_rows(app: Host, files: Files) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        await pilot.press("slash", *"nothing")
        assert names(files) == []
        assert "esc shows all" in text_of(app, "#list-about")
        await pilot.press("escape")
        assert names(files) == list(FILES)
        assert "esc shows all" not in text_of(app, "#list-about")


async def test_keys_sort_by_the_next_column_and_past_the_last_as_the_list_is(app: Host, files: Files) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        orders = []
        for key in (">", ">", ">", ">", "<", "<"):
            await pilot.press("greater_than_sign" if key == ">" else "less_than_sign")
            orders.append("".join(str(name)[0] for name in names(files)))
        assert orders == ["abc", "cba", "abc", "bac", "abc", "cba"]
        assert text_of(app, "#list-head").endswith("   sorted by size")
        files.show_things(COLUMNS[:2], FILES)
        assert "sorted" not in text_of(app, "#list-head")
        await pilot.press("greater_than_sign")
        assert text_of(app, "#list-head").endswith("   sorted by name")


async def test_a_mark_stays_on_its_row_and_marking_a_locked_row_reports_why(app: Host, files: Files) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("d", "x", "down", "down", "x")
        assert [notification.message for notification in app._notifications] == ["Nothing is marked.", "It is locked."]
        assert [row[:8] for row in rows(app)[2:5]] == [" x b/two", "   a/one", "   c/thr"]
        assert text_of(app, "#list-head").endswith("…   1 marked"), "the title gives way"
        files.show_things(COLUMNS, dict(reversed(FILES.items())))
        await pilot.pause()
        assert [row[:8] for row in rows(app)[2:5]] == ["   c/thr", "   a/one", " x b/two"]
        await pilot.press("down", "down", "x")
        assert not files.marked


async def test_another_width_shows_other_columns_and_writes_no_cell_for_the_same(
    app: Host, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Coordinate] = []
    update = KeyedTable.update_cell_at

    def count(table: KeyedTable, at: Coordinate, value: PaintedCell) -> None:
        written.append(at)
        update(table, at, value)

    monkeypatch.setattr(KeyedTable, "update_cell_at", count)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert "again" in files.table.columns
        await pilot.resize_terminal(26, 24)
        await pilot.pause()
        assert "again" not in files.table.columns
        files.show_things(COLUMNS, dict(FILES))
        assert written == []
        files.show_things(COLUMNS, {**FILES, "a/one": File("a/one", 7)})
        assert [(at.row, at.column) for at in written] == [(1, 2)]


async def test_a_long_list_makes_the_texts_of_the_rows_in_view_only(
    app: Host, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    painted: set[str] = set()
    paint = KeyedTable.paint

    def count(table: KeyedTable, column: Column, width: int, cell: Cell) -> Text:
        painted.add(cell[0])
        return paint(table, column, width, cell)

    monkeypatch.setattr(KeyedTable, "paint", count)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        painted.clear()
        files.show_things(COLUMNS[1:2], {f"{number:04}": File(f"{number:04}", number) for number in range(1000)})
        await pilot.pause()
        assert painted == {f"{number:04}" for number in range(files.table.size.height - 1)}, "one line has the headings"
        painted.clear()
        await pilot.press("ctrl+end")
        await pilot.pause()
        assert "0999" in painted
        assert len(painted) <= files.table.size.height


async def test_another_theme_changes_the_colours_of_the_rows(app: Host, files: Files) -> None:
    def colours() -> set[str]:
        strips = (strip for row in range(files.table.size.height) for strip in files.table.render_line(row))
        return {str(part.style.color) for part in strips if part.style and "good" in part.text}

    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        files.show_things(
            [Column("state", lambda _: Toned("good", "good"), "state", 6)], {"one": FILES["a/one"], **FILES}
        )
        await pilot.pause()
        before = colours()
        app.theme = "textual-light"
        await pilot.pause()
        assert len(before) > 0
        assert not colours() & before


async def test_headings_are_shown_before_the_rows_are_loaded() -> None:
    app = Host(Unread)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert any(row.split() == ["name", "size", "again"] for row in rows(app))


async def test_a_path_keeps_its_end(app: Host, files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KeyedTable, "CUT_AT_START", frozenset({"name"}))
    async with app.run_test(size=(26, 24)) as pilot:
        await pilot.pause()
        files.show_things(COLUMNS, {"p": File("images/of/a/nemo.sqsh", 1)})
        await pilot.pause()
        assert any("…a/nemo.sqsh " in row for row in rows(app))
