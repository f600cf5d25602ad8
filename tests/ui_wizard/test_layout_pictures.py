"""Pictures of another layout, of the list of the valid ones, of the chart, and of what was measured here.

`python -m pytest tests/ui_wizard --snapshot-update` draws them again; look at each one before keeping it.
"""

from __future__ import annotations

from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Button

from llmb_tui.services import Services
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.screens.layouts import LayoutsDialog
from llmb_tui.ui.widgets.preview import Preview
from tests.ui_wizard.found_states import EOS
from tests.ui_wizard.test_preview import Measured, result_of
from tests.ui_wizard.wizard_pilot import choose, loaded, on_top, until

SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=lambda size: f"{size[0]}x{size[1]}")


async def at_layout(pilot: Pilot[None]) -> None:
    wizard = await loaded(pilot)
    await choose(pilot, "workload", "nemotron4@25.04/340b")
    await pilot.press("3", "l")
    await until(pilot, lambda: bool(wizard.query_one(Preview).points), "the chart is drawn")


async def with_other_layout(pilot: Pilot[None]) -> None:
    await at_layout(pilot)
    await pilot.press("tab", "4", "tab", "2")
    await pilot.pause()


async def with_errors(pilot: Pilot[None]) -> None:
    await at_layout(pilot)
    await pilot.press("3")
    await pilot.pause()


async def at_list(pilot: Pilot[None]) -> None:
    await at_layout(pilot)
    await pilot.press("ctrl+l")
    await on_top(pilot, LayoutsDialog)
    dialog = pilot.app.screen
    await until(pilot, lambda: not dialog.query_one("#take", Button).disabled, "the layouts are compared")
    await pilot.press("home")
    await pilot.pause()


def picture(snap_compare: Any, services: Services, size: tuple[int, int], drive: Any) -> bool:
    return bool(snap_compare(LlmbApp(services), terminal_size=size, run_before=drive))


@SIZES
def test_other_layout(snap_compare: Any, services: Services, size: tuple[int, int]) -> None:
    assert picture(snap_compare, services, size, with_other_layout)


@SIZES
def test_a_layout_that_cannot_be(snap_compare: Any, services: Services, size: tuple[int, int]) -> None:
    assert picture(snap_compare, services, size, with_errors)


@SIZES
def test_valid_layouts(snap_compare: Any, services: Services, size: tuple[int, int]) -> None:
    assert picture(snap_compare, services, size, at_list)


@pytest.mark.parametrize("size", [(80, 24), (120, 24)], ids=lambda size: f"{size[0]}x{size[1]}")
def test_the_chart_behind_a_key(snap_compare: Any, services: Services, size: tuple[int, int]) -> None:
    async def drive(pilot: Pilot[None]) -> None:
        await with_other_layout(pilot)
        await pilot.press("escape", *("p" if size[0] > 80 else "pp"))
        await pilot.pause()

    assert picture(snap_compare, services, size, drive)


@pytest.mark.parametrize("theme", ["textual-light", "ansi-dark", "ansi-light"])
def test_themes(snap_compare: Any, services: Services, theme: str) -> None:
    async def drive(pilot: Pilot[None]) -> None:
        pilot.app.theme = theme
        await with_other_layout(pilot)

    assert picture(snap_compare, services, (120, 36), drive)


def test_no_color(snap_compare: Any, services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert picture(snap_compare, services, (120, 36), with_other_layout)


@SIZES
def test_measured_here(snap_compare: Any, services: Services, size: tuple[int, int]) -> None:
    measured = Measured(services.places)
    measured.save_profile(EOS)
    measured.by_cluster["eos"] = (result_of("250101120000abcd", 2.71), result_of("250102120000abcd", 2.73, 2.0))

    async def drive(pilot: Pilot[None]) -> None:
        wizard = await loaded(pilot)
        await choose(pilot, "workload", "nemotron4@25.04/15b")
        await until(pilot, lambda: wizard.query_one(Preview).here is not None, "the runs are read")
        await pilot.pause()

    assert picture(snap_compare, measured, size, drive)
