"""A suite during its selection: new rows, its cost, and the submission after one confirmation."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.app import App
from textual.widgets import Input

from llmb_tui.launch.policy import Policy
from llmb_tui.suites.suite import Suite
from llmb_tui.suites.suite_file import read_suite
from llmb_tui.suites.suite_plan import SuitePlan
from llmb_tui.suites.suites import SuiteChangedError, Suites
from llmb_tui.ui.dialogs import ConfirmDialog, Failure, InputDialog
from llmb_tui.ui.screens.suite import DraftRows, SuiteScreen
from llmb_tui.ui.screens.suite_dialogs import ConfirmHours
from llmb_tui.ui.screens.suite_watch import SuiteWatchScreen
from llmb_tui.ui.screens.suites import SuitesScreen
from llmb_tui.ui.widgets.choices import Switches
from tests.kit.pilot import SIZE, actions, burst, on_screen, on_top, text_of, until
from tests.kit.runs import CATALOG
from tests.ui.suite.conftest import DRAFT, SuiteServices

OpenSuite = Callable[..., tuple[App[None], SuiteServices]]
THREE = replace(DRAFT, scales=(16, 32, 64))


def rows_of(app: App[None]) -> list[list[str]]:
    table = app.screen.query_one(DraftRows)
    return [[str(cell) for cell in table.get_row_at(row)] for row in range(table.row_count)]


async def planned(pilot: Any, rows: int) -> SuiteScreen:
    """The screen, once it shows this number of rows and the cluster has answered."""
    await on_top(pilot, SuiteScreen)
    screen = pilot.app.screen

    def is_shown() -> bool:
        sums = text_of(pilot.app, "#suite-sums")
        is_asked = "in sequence" in sums and "unknown" not in sums
        return is_asked and screen.plan.draft is screen.draft and screen.query_one(DraftRows).row_count == rows

    await until(pilot, is_shown, f"{rows} rows")
    assert isinstance(screen, SuiteScreen)
    return screen


def sent_of(screen: SuiteScreen) -> SuitePlan:
    assert screen.plan is not None
    assert screen.plan.submission is not None
    return screen.plan.submission


async def test_the_reason_against_a_kind_is_shown_in_full(open_suite: OpenSuite) -> None:
    app, _ = open_suite(replace(DRAFT, base=replace(DRAFT.base, size="340b", scale=512, gpu="gb200"), scales=(512,)))
    async with app.run_test(size=(80, 24)) as pilot:
        await on_top(pilot, SuiteScreen)
        await until(pilot, lambda: "– " in text_of(app, "#suite-unavailable"), "the kinds are known")
        names, _, reason = text_of(app, "#suite-unavailable").partition(": ")
        assert names == "– precision"
        assert len(reason) > 28


async def test_each_value_that_is_switched_on_adds_rows(open_suite: OpenSuite) -> None:
    app, _ = open_suite()
    async with app.run_test(size=SIZE) as pilot:
        await planned(pilot, 1)
        await pilot.press("home", "space", "tab", "space")
        await planned(pilot, 4)
        assert [[cell.strip() for cell in row[1:4]] for row in rows_of(app)] == [
            ["bf16", "16", "2"],
            ["bf16", "64", "8"],
            ["fp8", "16", "2"],
            ["fp8", "64", "8"],
        ]
        sums = text_of(app, "#suite-sums")
        assert "4 runs: " in sums
        assert "GPU-hours, at most" in sums
        assert "in sequence" in sums
        assert "in parallel on 12 free nodes" in sums


async def test_switches_get_fewer_while_the_cursor_is_on_the_last(open_suite: OpenSuite) -> None:
    app, _ = open_suite(replace(DRAFT, workloads=(*DRAFT.workloads, ("grok1", "25.02", "314b"))))
    async with app.run_test(size=SIZE) as pilot:
        screen = await planned(pilot, 2)
        scales, workloads = (screen.query_one(f"#suite-{axis}", Switches) for axis in ("scales", "workloads"))
        scales.focus()
        await pilot.press("end")
        assert (scales.option_count, scales.highlighted) == (9, 8)
        workloads.highlighted = next(index for index, row in enumerate(workloads.options) if "grok1" in str(row.prompt))
        workloads.focus()
        await pilot.press("space")
        await planned(pilot, 1)
        assert (scales.option_count, scales.highlighted) == (8, None)
        scales.focus()
        await pilot.press("space")
        await planned(pilot, 2)


async def test_rows_are_excluded_and_included_again(open_suite: OpenSuite) -> None:
    app, _ = open_suite(replace(THREE, scales=(16, 24, 64)))
    async with app.run_test(size=SIZE) as pilot:
        screen = await planned(pilot, 3)
        assert "1 row cannot be run" in text_of(app, "#suite-sums")
        await pilot.press("x", "down")
        assert screen.draft.excluded == frozenset()
        assert "✗ error" in text_of(app, "#suite-about")
        await pilot.press("X")
        await until(pilot, lambda: "2 runs: " in text_of(app, "#suite-sums"), "the row is out")
        assert [row[0] for row in rows_of(app)] == ["", "–", ""]
        assert "x: include" in text_of(app, "#suite-about")
        await pilot.press("x")
        await until(pilot, lambda: "cannot be run" in text_of(app, "#suite-sums"), "the restored row")
        assert screen.draft.excluded == frozenset()


async def test_numbers_are_typed_and_kinds_are_chosen(open_suite: OpenSuite) -> None:
    app, _ = open_suite()
    async with app.run_test(size=SIZE) as pilot:
        screen = await planned(pilot, 1)
        screen.query_one("#suite-count", Input).focus()
        await pilot.press("3", "tab", "2", "tab", "1")
        await planned(pilot, 3)
        assert "at most 2 at a time, until 1 failure" in text_of(app, "#suite-sums")
        screen.query_one("#suite-kind").focus()
        await pilot.press("down")
        await until(pilot, lambda: screen.draft.kind == "scaling", "the kind")
        await planned(pilot, 12)
        assert {row[2].strip() for row in rows_of(app)} == {"16", "32", "64", "128"}
        assert "all published scales" in on_screen(app)


async def test_an_unavailable_kind_shows_its_reason(open_suite: OpenSuite) -> None:
    app, _ = open_suite(replace(DRAFT, base=replace(DRAFT.base, scale=2048), scales=(2048,)))
    async with app.run_test(size=SIZE) as pilot:
        await on_top(pilot, SuiteScreen)
        await until(pilot, lambda: "precision   – " in on_screen(app), "the reason")


async def test_a_confirmation_with_the_gpu_hours_submits_the_suite(open_suite: OpenSuite) -> None:
    app, services = open_suite(THREE)
    async with app.run_test(size=SIZE) as pilot:
        screen = await planned(pilot, 3)
        await pilot.press("s")
        await on_top(pilot, ConfirmDialog)
        assert f"3 runs: {sent_of(screen).gpu_hours:.1f} GPU-hours" in on_screen(app)
        await pilot.press("escape")
        await on_top(pilot, SuiteScreen)
        assert not services.suites.all()
        await pilot.press("s")
        await on_top(pilot, ConfirmDialog)
        await pilot.press("y")
        await on_top(pilot, SuiteWatchScreen)
        (suite,) = services.suites.all()
        await until(pilot, lambda: services.sender.sent == [suite], "the submission")
        await until(pilot, lambda: "checking eos" in text_of(app, "#watch-sums"), "the current check")
        await pilot.press("q")
        await on_top(pilot, SuiteScreen)
        await pilot.press("o")
        await on_top(pilot, SuitesScreen)
        await until(pilot, lambda: "0 of 3 runs done" in on_screen(app), "the listed suite")
        await pilot.press("enter")
        await on_top(pilot, SuiteWatchScreen)
        await until(pilot, lambda: "checking eos" in text_of(app, "#watch-sums"), "the submission continues")
        services.sender.released.set()
        await until(pilot, lambda: "s: submit" in text_of(app, "#watch-sums"), "the remaining work")


@pytest.mark.parametrize("changed", [False, True])
async def test_a_confirmed_suite_is_submitted_after_its_screen_is_closed(
    open_suite: OpenSuite, monkeypatch: pytest.MonkeyPatch, changed: bool
) -> None:
    app, services = open_suite(THREE)
    messages: list[str] = []
    app.notify = lambda message, **_: messages.append(message)  # type: ignore[method-assign]
    left, keep = threading.Event(), Suites.keep

    def late(suites: Suites, suite: Suite, **named: Any) -> Suite:
        left.wait()
        if changed:
            raise SuiteChangedError(suite, suite)
        return keep(suites, suite, **named)

    monkeypatch.setattr(Suites, "keep", late)
    async with app.run_test(size=SIZE) as pilot:
        await planned(pilot, 3)
        await pilot.press("s")
        await on_top(pilot, ConfirmDialog)
        burst(pilot, "y", "q")
        await until(pilot, lambda: not any(isinstance(one, SuiteScreen) for one in app.screen_stack), "the end")
        left.set()
        if changed:  # a closed screen cannot ask whether another suite should be started
            await on_top(pilot, Failure)
            assert not services.sender.sent
        else:
            await until(pilot, lambda: bool(messages), "the notification")
            (kept,) = services.suites.all()
            await until(pilot, lambda: services.sender.sent == [kept], "the submission")
            assert messages == [f"Suite {kept.id} ({kept.name}) is being submitted."]
            services.sender.released.set()


async def test_above_the_limit_the_user_types_the_gpu_hours(open_suite: OpenSuite) -> None:
    app, services = open_suite(THREE, Policy(suite_gpu_hours=1.0))
    async with app.run_test(size=SIZE) as pilot:
        screen = await planned(pilot, 3)
        await pilot.press("s")
        await on_top(pilot, ConfirmHours)
        await pilot.press("y", "enter")
        await until(pilot, lambda: "Not submitted" in text_of(app, "#line-hint"), "a yes is not enough")
        app.screen.query_one(Input).value = f"{sent_of(screen).gpu_hours:.1f}"
        await pilot.press("enter")
        await on_top(pilot, SuiteWatchScreen)
        assert len(services.suites.all()) == 1


@pytest.mark.parametrize(("answer", "count"), [("n", 1), ("y", 2)])
async def test_a_second_suite_of_the_same_name_needs_a_confirmation(
    open_suite: OpenSuite, answer: str, count: int
) -> None:
    app, services = open_suite(THREE)
    async with app.run_test(size=SIZE) as pilot:
        screen = await planned(pilot, 3)
        before = services.suites.keep(sent_of(screen).suite)
        screen.change_draft(replace(screen.draft, scales=(16, 32), name=before.name))
        await planned(pilot, 2)
        await pilot.press("s", "y")
        await until(pilot, lambda: "Submit this one as a second suite?" in on_screen(app), "the question")
        await pilot.press(answer)
        await on_top(pilot, SuiteWatchScreen if answer == "y" else SuiteScreen)
        assert len(services.suites.all()) == count


async def test_an_unfinished_suite_of_the_same_content_is_continued(open_suite: OpenSuite) -> None:
    app, services = open_suite(THREE)
    async with app.run_test(size=SIZE) as pilot:
        before = services.suites.keep(sent_of(await planned(pilot, 3)).suite)
        await pilot.press("s", "y")
        await on_top(pilot, SuiteWatchScreen)
        await until(pilot, lambda: services.sender.sent == [before], "the submission")
        assert services.suites.all() == (before,)


async def test_on_a_read_only_cluster_a_suite_is_planned_but_not_submitted(open_suite: OpenSuite) -> None:
    app, services = open_suite(THREE, Policy(read_only=True))
    async with app.run_test(size=SIZE) as pilot:
        screen = await planned(pilot, 3)
        assert "submit" not in actions(screen)
        assert "read-only" in text_of(app, "#suite-head")
        assert "error" in text_of(app, "#suite-about")
        await pilot.press("s")
        assert not services.suites.all()


async def test_it_is_written_as_the_file_that_the_verb_reads(
    open_suite: OpenSuite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app, _ = open_suite(THREE)
    async with app.run_test(size=SIZE) as pilot:
        screen = await planned(pilot, 3)
        for asks in (InputDialog, ConfirmDialog):
            await pilot.press("w")
            await on_top(pilot, InputDialog)
            await pilot.press("enter")
            if asks is ConfirmDialog:
                await on_top(pilot, ConfirmDialog)
                await pilot.press("y")
            await on_top(pilot, SuiteScreen)
            await until(pilot, lambda: app.clipboard == "llmb-tui suite submit nemotron4-15b-fp8.toml", "the command")
        assert read_suite(tmp_path / "nemotron4-15b-fp8.toml", CATALOG) == sent_of(screen).suite


async def test_a_file_that_cannot_be_written_is_reported(
    open_suite: OpenSuite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nemotron4-15b-fp8.toml").mkdir()
    app, _ = open_suite(THREE)
    async with app.run_test(size=SIZE) as pilot:
        await planned(pilot, 3)
        await pilot.press("w")
        await on_top(pilot, InputDialog)
        await pilot.press("enter")
        await on_top(pilot, ConfirmDialog)
        await pilot.press("y")
        await on_top(pilot, Failure)
        await pilot.press("escape")
        await on_top(pilot, SuiteScreen)


async def test_a_file_in_the_home_of_an_unknown_user_is_refused(
    open_suite: OpenSuite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    app, _ = open_suite(THREE)
    async with app.run_test(size=SIZE) as pilot:
        await planned(pilot, 3)
        await pilot.press("w")
        await on_top(pilot, InputDialog)
        app.screen.query_one(Input).value = "~no-such-user/suite.toml"
        await pilot.press("enter")
        await on_top(pilot, Failure)
        assert "The directory ~no-such-user does not exist." in on_screen(app)
        await pilot.press("escape")
        await on_top(pilot, SuiteScreen)
    assert list((tmp_path / "here").iterdir()) == []


async def test_the_fastest_layouts_can_be_varied(open_suite: OpenSuite) -> None:
    app, _ = open_suite()
    async with app.run_test(size=SIZE) as pilot:
        screen = await planned(pilot, 1)
        await pilot.press("l")
        await until(pilot, lambda: screen.query_one("#suite-layouts", Switches).option_count > 1, "the layouts")
        await until(pilot, lambda: screen.query_one("#suite-layouts").has_focus, "the focus")
        await pilot.press("down", "space")
        await planned(pilot, 2)
        usual, selection = (row.row.selection for row in sent_of(screen).rows)
        assert not usual.overrides.set_fields()
        assert selection.overrides.set_fields()


async def test_every_column_is_whole_at_each_width(open_suite: OpenSuite) -> None:
    app, _ = open_suite(THREE)
    async with app.run_test(size=(80, 24)) as pilot:
        await planned(pilot, 3)
        for width, band in ((80, False), (160, True), (120, True), (80, False)):
            await pilot.resize_terminal(width, 24)
            table = app.screen.query_one(DraftRows)

            def is_whole(table: DraftRows = table, band: bool = band) -> bool:
                columns = sum(column.get_render_width(table) for column in table.ordered_columns)
                return ("band" in table.columns) is band and columns <= table.size.width

            await until(pilot, is_whole, "the columns for this width")
