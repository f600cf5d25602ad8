"""Pictures of the list of results and its views, at each size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from textual.app import App
from textual.pilot import Pilot

from llmb_tui.ui.widgets.keyed_table import KeyedTable
from tests.kit.pilot import on_screen, until
from tests.ui.results.test_results_screen import cells, read

Compare = Callable[..., bool]
Picture = Callable[..., bool]
SMALL, USUAL, LARGE = (80, 24), (120, 36), (160, 45)


@pytest.fixture
def picture(snap_compare: Compare, open_results: Callable[..., tuple[App[None], Any]]) -> Picture:
    """Function that compares the picture after keys, once their result is shown."""

    def compare(size: tuple[int, int], *keys: str, shows: str = "") -> bool:
        app, _ = open_results()

        async def ready(pilot: Pilot[Any]) -> None:
            await until(pilot, lambda: len(app.screen.query(KeyedTable)) == 1, "the table")
            await read(pilot)
            for key in keys:
                await pilot.press(key)
                if key == "x":
                    await until(pilot, lambda: "x" in {row[0] for row in cells(app)}, "the mark")
                if key == "down":
                    await pilot.pause()
            await until(pilot, lambda: shows in on_screen(app), "the result of the keys")
            await pilot.pause()

        return snap_compare(app, terminal_size=size, run_before=ready)

    return compare


@pytest.mark.parametrize("size", [SMALL, USUAL, LARGE])
def test_list(size: tuple[int, int], picture: Picture) -> None:
    assert picture(size, "x", "down", "down", shows="8.7 % slower since")


def test_list_without_colours(picture: Picture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert picture(SMALL, "x", "down", "down", shows="8.7 % slower since")


def test_runs_over_time(picture: Picture) -> None:
    assert picture(USUAL, "down", "down", "enter", shows="┊ 8.7 % slower")


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_scaling(size: tuple[int, int], picture: Picture) -> None:
    assert picture(size, "s", shows="efficiency %")


@pytest.mark.parametrize("size", [SMALL, USUAL])
def test_nodes(size: tuple[int, int], picture: Picture) -> None:
    assert picture(size, "n", shows="No node is suspected")


@pytest.mark.parametrize("size", [SMALL, USUAL])
def test_compare(size: tuple[int, int], picture: Picture) -> None:
    assert picture(size, "x", "down", "down", "down", "x", "c", shows="within the noise")
