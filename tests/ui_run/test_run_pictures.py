"""How the run screen and the list of runs look, at each size and in each kind of theme."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from textual.app import App
from textual.pilot import Pilot

from llmb_tui.ui.screens.run import RunScreen
from llmb_tui.ui.widgets.job_table import JobTable
from llmb_tui.ui.widgets.log_pane import LogPane
from llmb_tui.ui.widgets.log_view import LogView
from llmb_tui.watch.state import RunState

Compare = Callable[..., bool]
Until = Callable[..., Awaitable[None]]
OpenRun = Callable[..., tuple[App[None], Any]]
SIZES = [(80, 24), (120, 40)]
STEPS = {"queued": 0, "measuring": 31, "done": 50, "failed": 3, "lost": 31}


@pytest.fixture
def run_picture(
    snap_compare: Compare, open_run: OpenRun, until: Until, states: dict[str, RunState], log_of: Callable[[int], str]
) -> Callable[..., bool]:
    """Compares the picture of a run in a state, once state and log are shown."""

    def compare(name: str, size: tuple[int, int], theme: str = "textual-dark", keys: str = "") -> bool:
        log = log_of(STEPS[name]) if STEPS[name] else ""
        app, _ = open_run(states[name], log=log)

        async def ready(pilot: Pilot[Any]) -> None:
            app.theme = theme
            await until(pilot, lambda: isinstance(app.screen, RunScreen), "the screen")
            await until(pilot, lambda: app.screen.run_state == states[name], "the state")  # type: ignore[attr-defined]
            lines = app.screen.query_one(LogView).source
            await until(pilot, lambda: lines.lines == log.count("\n"), "the log")
            pane = app.screen.query_one(LogPane)
            await until(pilot, lambda: not log or "following" in str(pane.border_subtitle), "its title")
            await pilot.press(*keys)
            await pilot.pause()

        return snap_compare(app, terminal_size=size, run_before=ready)

    return compare


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", list(STEPS))
def test_run(name: str, size: tuple[int, int], run_picture: Callable[..., bool]) -> None:
    assert run_picture(name, size)


def test_run_on_a_large_terminal(run_picture: Callable[..., bool]) -> None:
    assert run_picture("measuring", (200, 60))


@pytest.mark.parametrize("theme", ["textual-light", "ansi-dark"])
def test_run_in_another_theme(theme: str, run_picture: Callable[..., bool]) -> None:
    assert run_picture("measuring", (120, 40), theme)


def test_run_without_colours(run_picture: Callable[..., bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert run_picture("failed", (80, 24))


def test_run_with_a_held_log_and_an_open_search(run_picture: Callable[..., bool]) -> None:
    assert run_picture("measuring", (80, 24), keys=" /")


@pytest.mark.parametrize("size", SIZES)
def test_jobs(
    size: tuple[int, int], snap_compare: Compare, open_jobs: Callable[..., tuple[App[None], Any]], until: Until
) -> None:
    app, _ = open_jobs()

    async def ready(pilot: Pilot[Any]) -> None:
        await until(pilot, lambda: len(app.screen.query(JobTable)) == 1, "the table")
        table = app.screen.query_one(JobTable)
        await until(pilot, lambda: table.row_count == 6, "the rows")
        await until(pilot, lambda: "50/50" in [str(cell) for cell in table.get_row_at(2)], "what the logs say")
        await until(pilot, lambda: app.screen.has_class("-noted"), "what the cluster says")
        await until(pilot, lambda: not app.screen._reading, "everything read")  # type: ignore[attr-defined]
        await pilot.press("space")
        peek = app.screen.query_one("#peek")
        await until(pilot, lambda: "30/49" in str(peek.render()), "the last lines")

    assert snap_compare(app, terminal_size=size, run_before=ready)
