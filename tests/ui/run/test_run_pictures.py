"""Pictures of the run screen and the list of runs, at each size and in each kind of theme."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from textual.app import App
from textual.pilot import Pilot

from llmb_tui.ui.screens.jobs import JobTable
from llmb_tui.ui.screens.run import RunScreen
from llmb_tui.ui.widgets.log_pane import LogPane
from llmb_tui.ui.widgets.log_view import LogView
from tests.kit.pilot import text_of, until
from tests.ui.run.run_states import STATES, log_text

Compare = Callable[..., bool]
OpenRun = Callable[..., tuple[App[None], Any]]
SMALL, USUAL = (80, 24), (120, 40)
STEPS = {"queued": 0, "measuring": 31, "done": 50, "failed": 3, "lost": 31}


@pytest.fixture
def run_picture(snap_compare: Compare, open_run: OpenRun) -> Callable[..., bool]:
    """Function that compares the picture of a run in a state, once state and log are shown."""

    def compare(name: str, size: tuple[int, int], theme: str = "llmb-dark", keys: str = "") -> bool:
        log = log_text(STEPS[name]) if STEPS[name] else ""
        app, _ = open_run(STATES[name], log=log)

        async def ready(pilot: Pilot[Any]) -> None:
            app.theme = theme
            await until(pilot, lambda: isinstance(app.screen, RunScreen) and app.screen.is_mounted, "the screen")
            await until(pilot, lambda: app.screen.run_state == STATES[name], "the state")  # type: ignore[attr-defined]
            lines = app.screen.query_one(LogView).source
            await until(pilot, lambda: lines.lines == log.count("\n"), "the log")
            pane = app.screen.query_one(LogPane)
            await until(pilot, lambda: not log or "following" in str(pane.border_subtitle), "its title")
            await pilot.press(*keys)
            await pilot.pause()

        return snap_compare(app, terminal_size=size, run_before=ready)

    return compare


@pytest.mark.parametrize("name", list(STEPS))
def test_run_in_a_small_terminal(name: str, run_picture: Callable[..., bool]) -> None:
    assert run_picture(name, SMALL)


@pytest.mark.parametrize("name", ["measuring", "failed"])
def test_run(name: str, run_picture: Callable[..., bool]) -> None:
    assert run_picture(name, USUAL)


def test_run_on_a_large_terminal(run_picture: Callable[..., bool]) -> None:
    assert run_picture("measuring", (200, 60))


@pytest.mark.parametrize("theme", ["textual-light", "ansi-dark"])
def test_run_in_another_theme(theme: str, run_picture: Callable[..., bool]) -> None:
    assert run_picture("measuring", USUAL, theme)


def test_run_without_colours(run_picture: Callable[..., bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert run_picture("failed", SMALL)


def test_run_with_a_held_log_and_an_open_search(run_picture: Callable[..., bool]) -> None:
    assert run_picture("measuring", SMALL, keys=" /")


@pytest.mark.parametrize("size", [SMALL, USUAL])
def test_jobs(size: tuple[int, int], snap_compare: Compare, open_jobs: Callable[..., tuple[App[None], Any]]) -> None:
    app, _ = open_jobs()

    async def ready(pilot: Pilot[Any]) -> None:
        await until(pilot, lambda: len(app.screen.query(JobTable)) == 1, "the table")
        table = app.screen.query_one(JobTable)
        await until(pilot, lambda: table.row_count == 6, "the rows")
        for row, steps in ((0, "31/50"), (2, "50/50"), (3, "3/50"), (4, "10/50")):
            cells = partial(table.get_row_at, row)
            await until(pilot, lambda: steps in [str(cell).strip() for cell in cells()], "the steps")  # noqa: B023
        await until(pilot, lambda: "could not be read" in text_of(app, "#list-status"), "the cluster's answer")
        await pilot.press("space")
        peek = app.screen.query_one("#jobs-peek")
        await until(pilot, lambda: "30/49" in str(peek.render()), "the last lines")

    assert snap_compare(app, terminal_size=size, run_before=ready)
