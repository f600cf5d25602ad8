"""The report on the screen: `r` shows it, it fits the terminal, `y` copies it as Markdown, and text stays text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Static

from llmb_tui.answers.blocks import Banner, Block, Bullets, Fact, Facts, Grid, Listing, Section, Text
from llmb_tui.answers.table import Table
from llmb_tui.launch.run import Run
from llmb_tui.ui.screens.report import ReportScreen
from llmb_tui.ui.screens.run import RunScreen
from llmb_tui.ui.widgets.answer_view import answer_rows
from llmb_tui.ui.widgets.texts import FixedLines
from tests.kit.pilot import on_top, until
from tests.kit.runs import make_run
from tests.ui.run.run_states import STATES, log_text

OpenRun = Callable[..., tuple[App[None], Any]]
Compare = Callable[..., bool]
ENDED = make_run(job_state="COMPLETED", log_read=True)


def words(app: App[Any]) -> str:
    head = str(app.screen.query_one("#report-head", Static).content)
    return "\n".join([head, *(row.plain for row in app.screen.query_one(FixedLines).rows(76))])


async def opened(pilot: Pilot[Any]) -> None:
    await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen) and pilot.app.screen.is_mounted, "the run")
    await until(pilot, lambda: pilot.app.screen.training_run is not None, "the run")  # type: ignore[attr-defined]
    await pilot.press("r")
    await on_top(pilot, ReportScreen)


async def test_r_shows_the_report_and_y_copies_it_as_markdown(open_run: OpenRun) -> None:
    app, _ = open_run(STATES["done"], run=ENDED, log=log_text(50))
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        shown = words(app)
        assert "nemotron4@25.04 15b fp8 · 64 × H100" in shown
        assert "PASS Fast enough: 98.4 %" in " ".join(shown.split())
        assert "tokens/s of all GPUs" in shown
        await pilot.press("y")
        assert app.clipboard.startswith("# nemotron4@25.04 15b fp8 · 64 × H100\n")
        assert "| step time, s | 2.012 | 1.98 |" in app.clipboard
        await pilot.press("q")
        await on_top(pilot, RunScreen)


async def test_an_active_run_has_a_report(open_run: OpenRun) -> None:
    app, _ = open_run(STATES["measuring"], log=log_text(31))
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        assert "31 of 50" in words(app)


async def test_a_run_that_is_not_submitted_has_a_report(open_run: OpenRun) -> None:
    run: Run = replace(make_run(), submission="intended", job_ids=(), submitted_at=None, job_state=None)
    app, _ = open_run(STATES["queued"], run=run)
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        assert "No verdict" in words(app)
        assert "Configuration" in words(app)


HOSTILE = "[red]x[/red] \x1b[31m \u202e" + "<b>**y**</b> " * 9
BLOCKS: tuple[Block, ...] = (
    Banner("FAIL", HOSTILE),
    Section(
        HOSTILE,
        (
            Text(HOSTILE),
            Bullets((HOSTILE, HOSTILE)),
            Facts((Fact(HOSTILE, HOSTILE), Fact("short", "value"))),
            Grid(HOSTILE, Table.of(("", "a", "b"), [("x", 1, 2.5), ("y", None, 3)])),
            Grid(HOSTILE, Table.of(("", "a", "b"), [(HOSTILE, HOSTILE, 3)])),
            Listing(HOSTILE, HOSTILE + "\n  indented"),
        ),
    ),
)


@pytest.mark.parametrize("width", [40, 76, 116])
def test_every_row_fits_and_text_stays_text(width: int) -> None:
    rows = answer_rows(BLOCKS, width)
    folded = [row for row in rows if "[red]x[/red]" in row.plain]
    assert len(folded) > 8, "markup is shown as it is"
    assert not any("\x1b" in row.plain or "\u202e" in row.plain for row in rows)
    text = [row.plain for row in rows]
    assert max(len(row) for row in text[1:] if not row.startswith("[red]")) <= width
    assert "   a    b" in text
    assert "x  1  2.5" in text


def test_the_report_in_a_small_terminal(snap_compare: Compare, open_run: OpenRun) -> None:
    app, _ = open_run(STATES["done"], run=ENDED, log=log_text(50))
    assert snap_compare(app, terminal_size=(80, 24), run_before=opened)
