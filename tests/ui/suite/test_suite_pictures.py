"""Pictures of the screens of a suite in a small, a usual and a large terminal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Input

from llmb_tui.ui.screens.suite import DraftRows, SuiteScreen
from llmb_tui.ui.screens.suite_watch import SuiteRows
from llmb_tui.ui.widgets.key_bar import KeyBar
from tests.kit.pilot import on_top, text_of, until
from tests.ui.suite.conftest import DRAFT, SuiteServices

Compare = Callable[..., bool]
SIZES = [(80, 24), (120, 36), (160, 45)]
MIXED = replace(DRAFT, scales=(16, 24, 64), dtypes=("bf16", "fp8"), at_most=2, stop_after=1)


async def keys_are_shown(pilot: Pilot[Any]) -> None:
    """The key bar shows changed keys one frame later."""
    bar = pilot.app.screen.query_one(KeyBar)
    await until(pilot, lambda: not bar._is_due and bar.keys == bar.keys_of(bar.screen.active_bindings), "the keys")
    await pilot.pause()


@pytest.mark.parametrize("size", SIZES)
def test_draft(
    size: tuple[int, int], snap_compare: Compare, open_suite: Callable[..., tuple[App[None], SuiteServices]]
) -> None:
    app, _ = open_suite(MIXED)

    async def ready(pilot: Pilot[Any]) -> None:
        await on_top(pilot, SuiteScreen)
        await until(pilot, lambda: "12 free nodes" in text_of(app, "#suite-sums"), "the cluster was asked")
        await until(pilot, lambda: app.screen.query_one(DraftRows).row_count == 6, "the rows")
        for field in app.screen.query(Input):
            field.cursor_blink = False
        await pilot.press("t", "down")
        await keys_are_shown(pilot)

    assert snap_compare(app, terminal_size=size, run_before=ready)


@pytest.mark.parametrize("size", SIZES)
def test_watch(
    size: tuple[int, int], snap_compare: Compare, open_watch: Callable[..., tuple[App[None], SuiteServices]]
) -> None:
    app, _ = open_watch()

    async def ready(pilot: Pilot[Any]) -> None:
        await until(pilot, lambda: "free" in text_of(app, "#watch-sums"), "the cluster was asked")
        await until(pilot, lambda: app.screen.query_one(SuiteRows).row_count == 5, "the rows")
        await until(pilot, lambda: "could not be read" in text_of(app, "#list-status"), "the cluster's answer")
        await keys_are_shown(pilot)

    assert snap_compare(app, terminal_size=size, run_before=ready)


def test_draft_without_colours(
    snap_compare: Compare,
    open_suite: Callable[..., tuple[App[None], SuiteServices]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    test_draft((80, 24), snap_compare, open_suite)
