"""The list of results: groups and their runs, a filter, marks, and a cursor that stays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from textual.app import App
from textual.events import Key
from textual.pilot import Pilot

from llmb_tui.errors import LlmbError
from llmb_tui.launch.note import Note
from llmb_tui.ui.screens.result_view import ResultView
from llmb_tui.ui.screens.results import ResultsScreen
from llmb_tui.ui.screens.run import RunScreen
from llmb_tui.ui.widgets.chart_view import ChartView
from llmb_tui.ui.widgets.keyed_table import KeyedTable, Rows, fit_columns
from llmb_tui.ui.widgets.result_texts import ResultQuery, result_columns, result_list
from tests.kit.history import PastRun, remember
from tests.kit.pilot import SIZE, on_screen, on_top, text_of, until
from tests.kit.runs import NEMOTRON
from tests.ui.results.conftest import NOW

OpenResults = Callable[..., tuple[App[None], Any]]
_GROUPS, _RUNS = 7, 43


def cells(app: App[None]) -> list[list[str]]:
    table = app.screen.query_one(KeyedTable)
    return [[str(cell).strip() for cell in table.get_row_at(row)] for row in range(table.row_count)]


def test_a_narrow_terminal_has_room_for_the_longest_verdict() -> None:
    columns = result_columns(lambda: NOW, several_clusters=True)
    width = {
        column.key: width
        for column, width in fit_columns(columns, {column.key: len(column.heading) for column in columns}, 78)
    }
    assert width["verdict"] >= len("✗ timeout")
    assert sum(width.values()) + len(width) - 1 <= 78


def test_only_changed_runs_get_a_new_row(open_results: OpenResults) -> None:
    _, services = open_results([PastRun("aaa1", NEMOTRON, 3, 2.0), PastRun("aaa2", NEMOTRON, 2, 2.0)])
    results = tuple(services.history.result(run.id) for run in services.runs.all())
    query = ResultQuery(results, {}, "none", "", None, lambda: NOW, 120, Rows())
    first = result_list(query).rows
    again = result_list(replace(query, notes={"aaa1": Note("slow")}, shown=first)).rows
    assert {row["note"][0]: row is first.cells[key] for key, row in again.cells.items()} == {"": True, "slow": False}


async def listed(pilot: Pilot[None], count: int = _GROUPS) -> None:
    """Wait for so many rows."""
    app = pilot.app

    await until(pilot, lambda: len(app.screen.query(KeyedTable)) == 1 and len(cells(app)) == count, f"{count} rows")


async def read(pilot: Pilot[None]) -> None:
    """Wait for the list of twelve weeks, with all figures."""
    await listed(pilot)
    counts = {"3", "5/6", "12/13", "4", "11"}
    await until(pilot, lambda: counts <= {row[4] for row in cells(pilot.app)}, "every log is read")
    await until(pilot, lambda: not {"–"} & {row[5] for row in cells(pilot.app)}, "every figure")


async def test_a_row_has_the_figures_of_its_runs(open_results: OpenResults) -> None:
    app, _ = open_results()
    async with app.run_test(size=SIZE) as pilot:
        await read(pilot)
        head = "Results   43 runs · 2 clusters   by configuration"
        await until(pilot, lambda: text_of(app, "#list-head") == head, "the runs of every row are counted")
        rows = {(row[1], row[2], row[3]): row[4:] for row in cells(app)}
        assert rows["nemotron4 340b fp8", "256×H100", "eos"][:5] == ["11", "3.842", "4", "76.4 %", "✗ FAIL"]
        assert rows["nemotron4 340b fp8", "256×H100", "eos"][-1].endswith("slower since 3 Nov")
        assert rows["nemotron4 15b fp8", "64×H100", "eos"][:5] == ["12/13", "2.01", "0.43", "98.5 %", "✓ PASS"]
        assert "slower" not in rows["nemotron4 15b fp8", "64×H100", "eos"][-1]


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (160, 45)])
async def test_every_row_fits_in_the_terminal(open_results: OpenResults, size: tuple[int, int]) -> None:
    app, _ = open_results()
    async with app.run_test(size=size) as pilot:
        await read(pilot)
        for keys in ("", "g", "enter"):
            await pilot.press(*([keys] if keys else []))
            await pilot.pause()
            table = app.screen.query_one(KeyedTable)
            assert sum(column.get_render_width(table) for column in table.ordered_columns) <= table.size.width


async def test_the_facts_behind_a_row_are_shown_below(open_results: OpenResults) -> None:
    app, _ = open_results()
    async with app.run_test(size=SIZE) as pilot:
        await read(pilot)
        await pilot.press("down", "down")
        about = text_of(app, "#list-about")
        assert "nemotron4 340b fp8 · 256 × H100 on eos" in about
        assert "of 11 runs, deviation 4 %, 95 % interval of the mean" in about
        assert "8.7 % slower since 3 Nov, run r035" in about
        await pilot.press("down", "down")
        assert "excluded: 1 run: state failed" in text_of(app, "#list-about")


async def test_enter_lists_runs_with_a_chart_then_opens_a_run_and_back_restores_the_rows(
    open_results: OpenResults,
) -> None:
    app, _ = open_results()
    async with app.run_test(size=SIZE) as pilot:
        await read(pilot)
        await pilot.press("down", "down", "enter")
        await listed(pilot, 11)
        assert app.screen.query_one(KeyedTable).cursor_row == 0
        assert app.screen.query_one(ChartView).display
        assert "8.7 % slower" in on_screen(app)
        await pilot.press("down", "enter")
        await on_top(pilot, RunScreen)
        await until(pilot, lambda: app.screen.training_run is not None, "loaded")  # type: ignore[attr-defined]
        assert app.screen.training_run.id == "r036"  # type: ignore[attr-defined]
        await pilot.press("q")
        await on_top(pilot, ResultsScreen)
        assert app.screen.query_one(KeyedTable).cursor_row == 1
        await pilot.press("q")
        await listed(pilot)
        assert app.screen.query_one(KeyedTable).cursor_row == 2
        await pilot.press("q")
        assert not isinstance(app.screen, ResultsScreen)


async def test_a_key_changes_the_grouping_and_the_heading_names_it(open_results: OpenResults) -> None:
    app, _ = open_results()
    async with app.run_test(size=SIZE) as pilot:
        await read(pilot)
        said = ("by cluster", 2), ("by release", 2), ("by tag", 1), ("not grouped", _RUNS)
        for words, count in (*said, ("by configuration", _GROUPS)):
            await pilot.press("g")
            await until(pilot, lambda words=words: text_of(app, "#list-head").endswith(f"   {words}"), words)
            await listed(pilot, count)


async def test_a_filter_keeps_runs_with_all_words_and_escape_ends_it(open_results: OpenResults) -> None:
    app, _ = open_results()
    async with app.run_test(size=SIZE) as pilot:
        await read(pilot)
        await pilot.press("slash", *"eos 15b")
        # Its first letters may leave as many rows.
        await until(pilot, lambda: "filter: eos 15b" in text_of(app, "#list-head"), "the whole filter")
        await until(pilot, lambda: "esc Back" in on_screen(app), "q is a letter here")
        await listed(pilot, 4)
        await pilot.press("enter")
        assert app.screen.query_one(KeyedTable).has_focus
        await pilot.press("escape")
        await listed(pilot)


async def test_keys_typed_in_one_burst_go_to_the_filter(open_results: OpenResults) -> None:
    app, _ = open_results()
    async with app.run_test(size=SIZE) as pilot:
        await read(pilot)
        for key, character in (("slash", "/"), ("g", "g"), ("x", "x"), ("enter", "\r")):
            app.post_message(Key(key, character))
        await listed(pilot, 0)
        assert isinstance(app.screen, ResultsScreen)


async def test_marks_stay_on_their_rows_in_each_grouping(open_results: OpenResults) -> None:
    app, _ = open_results()
    async with app.run_test(size=SIZE) as pilot:
        await read(pilot)
        await pilot.press("x", "down", "space")
        await until(pilot, lambda: text_of(app, "#list-head").find("2 marked") > 0, "two marks")
        await pilot.press("g", "g", "g", "g", "g")
        await listed(pilot)
        assert [row[0] for row in cells(app)] == ["x", "x", *[""] * 5]
        await pilot.press("x")
        await until(pilot, lambda: "1 marked" in text_of(app, "#list-head"), "the mark")


async def test_a_note_of_another_program_is_found_and_shown(open_results: OpenResults) -> None:
    app, services = open_results([PastRun("aaa1", NEMOTRON, 3, 2.0), PastRun("aaa2", NEMOTRON, 2, 2.0)])
    services.notes.change("aaa1", "[/x] before the driver", ["driver-560"])
    async with app.run_test(size=SIZE) as pilot:
        await listed(pilot, 1)
        await pilot.press("slash", *"driver-560", "enter", "enter")
        await until(pilot, lambda: "#driver-560 [/x]" in on_screen(app), "the run with its note")
        assert len(cells(app)) == 1


async def test_a_run_that_ends_while_the_list_is_open_joins_its_group(open_results: OpenResults) -> None:
    app, services = open_results([PastRun("aaa1", NEMOTRON, 3, 2.0)])
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: bool(cells(app)) and cells(app)[0][3:5] == ["1", "2"], "the first")
        remember(services.runs, PastRun("aaa2", NEMOTRON, 1, 2.2), NOW)
        await until(pilot, lambda: cells(app)[0][3:5] == ["2", "2.1"], "both runs")


async def test_a_simulated_cluster_has_a_notice_in_the_list_and_its_views(open_results: OpenResults) -> None:
    app, services = open_results()
    services.clusters.notice = "simulated, clock x30"
    async with app.run_test(size=(80, 24)) as pilot:
        await read(pilot)
        assert "eos: simulated, clock x30" in text_of(app, "#list-head")
        await pilot.press("enter")
        await until(pilot, lambda: "eos: simulated, clock x30" in on_screen(app).split("\n")[0], "the group's cluster")
        await pilot.press("escape")
        await pilot.press("n")
        await on_top(pilot, ResultView)
        await until(pilot, lambda: "eos: simulated, clock x30" in text_of(app, "#view-head"), "the notice")


async def test_an_unreadable_run_is_reported(open_results: OpenResults) -> None:
    app, services = open_results([PastRun("aaa1", NEMOTRON, 3, 2.0), PastRun("aaa2", NEMOTRON, 2, 2.0)])
    (services.runs.folder("aaa2") / "run.json").write_text("{")
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "! 1 run file could not be read" in text_of(app, "#list-status"), "the words")
        await until(pilot, lambda: [row[3] for row in cells(app)] == ["1"], "the other one")


async def test_unreadable_notes_do_not_block_the_list(
    open_results: OpenResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, services = open_results()

    def unreadable() -> None:
        raise LlmbError("The notes cannot be read.")

    monkeypatch.setattr(services.notes, "all", unreadable)
    async with app.run_test(size=SIZE) as pilot:
        await listed(pilot)


async def test_the_list_without_finished_runs(open_results: OpenResults) -> None:
    app, _ = open_results([])
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "none yet" in text_of(app, "#list-head"), "the empty list")
        await pilot.press("x", "enter", "g", "down")
        assert isinstance(app.screen, ResultsScreen)
