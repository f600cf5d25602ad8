"""Pictures of a custom layout, the list of valid layouts, the chart and local results.

`python -m pytest tests/ui/wizard --snapshot-update` draws them again; look at each one before keeping it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Button

from llmb_tui.services import Services
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.screens.layouts import LayoutsDialog
from llmb_tui.ui.widgets.preview import Preview
from tests.kit.pilot import NEMOTRON, choose, loaded, on_top, until
from tests.ui.wizard.found_states import EOS
from tests.ui.wizard.test_preview import Measured, result_of

SMALL, USUAL = (80, 24), (120, 40)


async def at_layout(pilot: Pilot[None], *keys: str) -> None:
    wizard = await loaded(pilot)
    await choose(pilot, "workload", "nemotron4@25.04/340b")
    await pilot.press("3", "l")
    await until(pilot, lambda: bool(wizard.query_one(Preview).points), "the chart is drawn")
    await pilot.press(*keys)
    await pilot.pause()


async def with_other_layout(pilot: Pilot[None]) -> None:
    await at_layout(pilot, "tab", "4", "tab", "2")


async def with_errors(pilot: Pilot[None]) -> None:
    await at_layout(pilot, "3")


async def at_chart(pilot: Pilot[None]) -> None:
    await with_other_layout(pilot)
    await pilot.press("escape", "p", "p")
    await pilot.pause()


async def at_list(pilot: Pilot[None]) -> None:
    await at_layout(pilot, "ctrl+l")
    await on_top(pilot, LayoutsDialog)
    dialog = pilot.app.screen
    await until(pilot, lambda: not dialog.query_one("#take", Button).disabled, "the layouts are compared")
    await pilot.press("home")
    await pilot.pause()


@pytest.mark.parametrize(
    ("drive", "size"),
    [(with_other_layout, SMALL), (with_other_layout, USUAL), (with_errors, USUAL), (at_chart, SMALL), (at_list, SMALL),
     (at_list, USUAL)],
    ids=["other small", "other usual", "errors usual", "chart small", "list small", "list usual"],
)  # fmt: skip
def test_layout(
    snap_compare: Any, services: Services, drive: Callable[[Pilot[None]], Awaitable[None]], size: tuple[int, int]
) -> None:
    assert snap_compare(LlmbApp(services), terminal_size=size, run_before=drive)


def test_ansi_theme(snap_compare: Any, services: Services) -> None:
    async def drive(pilot: Pilot[None]) -> None:
        pilot.app.theme = "ansi-dark"
        await with_other_layout(pilot)

    assert snap_compare(LlmbApp(services), terminal_size=(120, 36), run_before=drive)


def test_measured_here(snap_compare: Any, services: Services) -> None:
    services.local_results = measured = Measured(services)
    services.clusters.save(EOS)
    measured.by_cluster["eos"] = (result_of("250101120000abcd", 2.71), result_of("250102120000abcd", 2.73, 2.0))

    async def drive(pilot: Pilot[None]) -> None:
        wizard = await loaded(pilot)
        await choose(pilot, "workload", NEMOTRON)
        await until(pilot, lambda: wizard.query_one(Preview).figures.measured is not None, "the runs are read")
        await pilot.pause()

    assert snap_compare(LlmbApp(services), terminal_size=USUAL, run_before=drive)
