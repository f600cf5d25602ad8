"""The views over the list of results: opened and closed by keys, with contents that can be copied and saved."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.app import App
from textual.widgets import Input

from llmb_tui.answers.answer import Answer
from llmb_tui.errors import LlmbError
from llmb_tui.evidence.export import Exporter
from llmb_tui.evidence.verify import verify
from llmb_tui.ui.dialogs import ExportDialog, Failure, InputDialog
from llmb_tui.ui.screens.report import ReportScreen
from llmb_tui.ui.screens.result_view import ResultView, save_charts
from llmb_tui.ui.screens.results import ResultsScreen
from tests.kit.history import PastRun
from tests.kit.pilot import SIZE, actions, on_screen, on_top, text_of, until
from tests.kit.runs import NEMOTRON
from tests.ui.results.test_results_screen import cells, read

OpenResults = Callable[..., tuple[App[None], Any]]


async def test_compare_is_grey_with_a_reason_until_two_rows_are_marked(open_results: OpenResults) -> None:
    app, _ = open_results()
    messages: list[str] = []
    app.notify = lambda message, **_: messages.append(message)  # type: ignore[method-assign]
    async with app.run_test(size=SIZE) as pilot:
        await read(pilot)
        assert "compare" not in actions(app.screen)
        await pilot.press("c")
        assert isinstance(app.screen, ResultsScreen)
        assert messages == ["Mark at least two rows with x to compare them."]
        await pilot.press("x", "down", "down", "x")
        await until(pilot, lambda: "compare" in actions(app.screen), "two are marked")


async def test_marked_groups_are_shown_side_by_side_with_reasons_against_the_comparison(
    open_results: OpenResults,
) -> None:
    app, _ = open_results()
    async with app.run_test(size=(120, 50)) as pilot:
        await read(pilot)
        await pilot.press("x", "down", "down", "x")
        await until(pilot, lambda: "compare" in actions(app.screen), "two are marked")
        await pilot.press("c")
        await on_top(pilot, ResultView)
        await until(pilot, lambda: "2 side by side" in text_of(app, "#view-head"), "the comparison")
        await until(pilot, lambda: "The models differ" in on_screen(app), "the refusal")
        text = on_screen(app)
        assert "3 of 3 count" in text
        assert "loss" in text
        await pilot.press("q")
        assert isinstance(app.screen, ResultsScreen)
        assert [row[0] for row in cells(app)][:3] == ["x", "", "x"]


async def test_two_runs_of_one_configuration_are_compared(open_results: OpenResults) -> None:
    app, _ = open_results([PastRun("aaa1", NEMOTRON, 3, 2.0), PastRun("aaa2", NEMOTRON, 2, 2.004)])
    async with app.run_test(size=(120, 50)) as pilot:
        await until(pilot, lambda: bool(cells(app)) and cells(app)[0][3:5] == ["2", "2.002"], "the runs")
        await pilot.press("enter")
        await until(pilot, lambda: len(cells(app)) == 2, "the runs of the group")
        await pilot.press("x", "down", "x")
        await until(pilot, lambda: "compare" in actions(app.screen), "two are marked")
        await pilot.press("c")
        await on_top(pilot, ResultView)
        await until(pilot, lambda: "within the noise" in on_screen(app), "the summary")


async def test_scaling_draws_its_charts_and_writes_them_as_svg(open_results: OpenResults, tmp_path: Path) -> None:
    app, _ = open_results()
    async with app.run_test(size=(120, 50)) as pilot:
        await read(pilot)
        await pilot.press("s")
        await on_top(pilot, ResultView)
        await until(pilot, lambda: "save" in actions(app.screen), "the charts")
        await pilot.pause()
        assert "Scaling: nemotron4@25.04 15b fp8 · H100, eos" in text_of(app, "#view-head")
        assert "tokens/s of a GPU" in on_screen(app)
        await pilot.press("v")
        await on_top(pilot, InputDialog)
        app.screen.query_one(Input).value = str(tmp_path)
        await pilot.press("enter")
        await until(pilot, lambda: len(list(tmp_path.glob("*.svg"))) == 2, "the files")
        await on_top(pilot, ResultView)
        assert {path.name for path in tmp_path.glob("*.svg")} == {"scale.svg", "efficiency.svg"}


async def test_without_a_curve_the_view_lists_the_runs_that_are_needed(open_results: OpenResults) -> None:
    app, _ = open_results([PastRun("aaa1", NEMOTRON, 3, 2.0)])
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: bool(cells(app)) and cells(app)[0][4] == "2", "the run")
        await pilot.press("s")
        await until(pilot, lambda: "There is no scaling curve" in on_screen(app), "the reason")
        assert "save" not in actions(app.screen)
        await pilot.press("escape")
        assert isinstance(app.screen, ResultsScreen)


async def test_suspected_nodes_are_copied(open_results: OpenResults) -> None:
    slow = [
        PastRun(
            f"n{index:02}",
            NEMOTRON,
            40 - index,
            2.15 if index % 2 else 2.0 + index / 4000,
            nodes=f"cn[{index % 3 + 1:03}-007],x{index % 2}",
        )
        for index in range(16)
    ]
    app, _ = open_results(slow)
    copied: list[str] = []
    app.copy_to_clipboard = copied.append  # type: ignore[method-assign,assignment]
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: bool(cells(app)) and cells(app)[0][3] == "16", "the runs")
        await pilot.press("n")
        await on_top(pilot, ResultView)
        await until(pilot, lambda: "Suspected: x1" in on_screen(app), "the node")
        await pilot.press("y")
        assert copied == ["--exclude=x1"]


async def test_without_suspected_nodes_the_copy_key_shows_the_reason(open_results: OpenResults) -> None:
    app, _ = open_results()
    messages: list[str] = []
    app.notify = lambda message, **_: messages.append(message)  # type: ignore[method-assign]
    async with app.run_test(size=SIZE) as pilot:
        await read(pilot)
        await pilot.press("n")
        await on_top(pilot, ResultView)
        await until(pilot, lambda: "No node is suspected" in on_screen(app), "the answer")
        assert "copy" not in actions(app.screen)
        await pilot.press("y")
        assert messages == ["No node is suspected, so there is nothing to exclude."]


async def test_an_error_is_shown_in_the_view(open_results: OpenResults, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise LlmbError("The log cannot be read.", "[/x] denied", "Mend it.")

    app, services = open_results()
    monkeypatch.setattr(services.history, "result", fail)
    async with app.run_test(size=SIZE) as pilot:
        await read(pilot)
        await pilot.press("x", "down", "x")
        await until(pilot, lambda: "compare" in actions(app.screen), "two are marked")
        await pilot.press("c")
        await until(pilot, lambda: "[/x] denied" in on_screen(app), "the reason")


def test_an_existing_file_is_not_replaced(tmp_path: Path) -> None:
    from tests.answers.test_chart_rows import history

    chart = history()
    first, second = save_charts((chart,), tmp_path), save_charts((chart,), tmp_path)
    assert [path.name for path in (*first, *second)] == ["history.svg", "history-2.svg"]
    assert first[0].stat().st_mode & 0o777 == 0o600
    with pytest.raises(LlmbError, match="is not a directory"):
        save_charts((chart,), tmp_path / "nowhere")


@pytest.mark.parametrize("folder", ["/nowhere", "~no-such-user/charts"])
async def test_a_missing_directory_is_reported_in_a_dialog(open_results: OpenResults, folder: str) -> None:
    app, _ = open_results()
    async with app.run_test(size=SIZE) as pilot:
        await read(pilot)
        await pilot.press("s")
        await until(pilot, lambda: "save" in actions(app.screen), "the charts")
        await pilot.press("v")
        await on_top(pilot, InputDialog)
        app.screen.query_one(Input).value = folder
        await pilot.press("enter")
        await on_top(pilot, Failure)
        await pilot.press("escape", "q")
        assert isinstance(app.screen, ResultsScreen)


async def test_the_report_has_the_marked_runs_or_those_of_the_row(open_results: OpenResults) -> None:
    app, _ = open_results([PastRun("aaa1", NEMOTRON, 3, 2.0), PastRun("aaa2", NEMOTRON, 2, 2.01)])
    async with app.run_test(size=(120, 50)) as pilot:
        await until(pilot, lambda: bool(cells(app)) and cells(app)[0][3] == "2", "the runs")
        await pilot.press("r")
        await on_top(pilot, ReportScreen)
        assert {"aaa1", "aaa2"} <= set(on_screen(app).replace(",", " ").split())
        await pilot.press("q", "enter")
        await until(pilot, lambda: len(cells(app)) == 2, "the runs of the group")
        await pilot.press("x", "r")
        await on_top(pilot, ReportScreen)
        assert "aaa2" in on_screen(app)
        await pilot.press("q")
        await on_top(pilot, ResultsScreen)
        assert "1 marked" in text_of(app, "#list-head")


async def test_too_many_runs_for_a_report_are_refused(open_results: OpenResults) -> None:
    app, _ = open_results()
    messages: list[str] = []
    app.notify = lambda message, **_: messages.append(message)  # type: ignore[method-assign]
    async with app.run_test(size=SIZE) as pilot:
        await read(pilot)
        await pilot.press("g")
        await until(pilot, lambda: len(cells(app)) == 2, "the clusters")
        await pilot.press("r")
        await until(pilot, lambda: bool(messages), "the reason")
        assert "too many for a report on the screen; it has 30 at most" in messages[0]
        assert isinstance(app.screen, ResultsScreen)


async def test_the_chart_over_time_is_written_as_svg(open_results: OpenResults, tmp_path: Path) -> None:
    app, _ = open_results()
    async with app.run_test(size=SIZE) as pilot:
        await read(pilot)
        assert "save" not in actions(app.screen)
        await pilot.press("down", "down", "enter")
        await until(pilot, lambda: "save" in actions(app.screen), "the chart")
        await pilot.press("v")
        await on_top(pilot, InputDialog)
        app.screen.query_one(Input).value = str(tmp_path)
        await pilot.press("enter")
        await until(pilot, (tmp_path / "history.svg").is_file, "the file")


async def test_the_heading_shows_that_an_answer_is_being_made(open_results: OpenResults) -> None:
    go = threading.Event()

    def wait() -> Answer:
        go.wait(60)
        raise LlmbError("Nothing came of it.")

    app, _ = open_results([])
    async with app.run_test(size=SIZE) as pilot:
        app.push_screen(ResultView("Nodes", wait))
        await on_top(pilot, ResultView)
        assert text_of(app, "#view-head") == "◐ Nodes …"
        go.set()
        await until(pilot, lambda: text_of(app, "#view-head") == "Nodes", "the completed view")


async def test_an_export_reports_written_and_missing_files(open_results: OpenResults, tmp_path: Path) -> None:
    app, _ = open_results([PastRun("aaa1", NEMOTRON, 3, 2.0), PastRun("aaa2", NEMOTRON, 2, 2.01)])
    file = tmp_path / "out" / "evidence.tar.zst"
    file.parent.mkdir()
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: bool(cells(app)) and cells(app)[0][3] == "2", "the runs")
        for title in ("2 runs,", "exists"):  # existing files are not replaced
            await pilot.press("e")
            await on_top(pilot, ExportDialog)
            app.screen.query_one(Input).value = str(file)
            await pilot.press("tab", "space", "shift+tab", "enter")
            await on_top(pilot, ResultView)
            await until(pilot, lambda title=title: title in on_screen(app), title)
            if title == "2 runs,":
                assert "were replaced by aliases" in on_screen(app)
                # The runs of this test were launched without settings.
                differs = {finding.what for finding in verify(file).findings if finding.outcome == "differs"}
                assert differs == {"settings against preset"}
            await pilot.press("q")
            await on_top(pilot, ResultsScreen)


@pytest.mark.parametrize("fails", [False, True])
async def test_an_export_continues_and_is_reported_after_the_view_is_closed(
    open_results: OpenResults, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    app, _ = open_results([PastRun("aaa1", NEMOTRON, 3, 2.0)])
    messages: list[str] = []
    app.notify = lambda message, **_: messages.append(message)  # type: ignore[method-assign]
    file, go, export = tmp_path / "evidence.tar.zst", threading.Event(), Exporter.export

    def held_up(*given: Any, **named: Any) -> Any:
        go.wait()
        if fails:
            raise LlmbError("The disk is full.", "", "Free some space.")
        return export(*given, **named)

    monkeypatch.setattr(Exporter, "export", held_up)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: len(cells(app)) == 1, "the run")
        await pilot.press("e")
        await on_top(pilot, ExportDialog)
        app.screen.query_one(Input).value = str(file)
        await pilot.press("enter")
        await on_top(pilot, ResultView)
        await pilot.press("q")
        await on_top(pilot, ResultsScreen)
        go.set()
        if fails:
            await on_top(pilot, Failure)
            assert "The disk is full." in on_screen(app)
        else:
            await until(pilot, lambda: messages == [f"Exported: {file}"], "the notification")
    assert file.exists() is not fails


@pytest.mark.parametrize(("keys", "dialog"), [(("e",), ExportDialog), (("down", "down", "enter", "v"), InputDialog)])
async def test_without_a_working_directory_the_home_directory_is_suggested(
    open_results: OpenResults, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: tuple[str, ...], dialog: type
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    app, _ = open_results()
    async with app.run_test(size=SIZE) as pilot:
        await read(pilot)
        for key in keys:
            await until(pilot, lambda key=key: key != "v" or "save" in actions(app.screen), "the report")
            await pilot.press(key)
        await on_top(pilot, dialog)
        assert app.screen.query_one(Input).value.startswith(str(tmp_path))


async def test_an_export_into_the_home_of_an_unknown_user_is_refused(
    open_results: OpenResults, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    app, _ = open_results([PastRun("aaa1", NEMOTRON, 3, 2.0)])
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: len(cells(app)) == 1, "the run")
        await pilot.press("e")
        await on_top(pilot, ExportDialog)
        app.screen.query_one(Input).value = "~no-such-user/evidence.tar.zst"
        await pilot.press("enter")
        await on_top(pilot, ResultView)
        await until(pilot, lambda: "The directory ~no-such-user does not exist." in on_screen(app), "the reason")
        await pilot.press("q")
        await on_top(pilot, ResultsScreen)
    assert list((tmp_path / "here").iterdir()) == []
