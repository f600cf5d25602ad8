"""Costs of the list of results: each log is read once, and without events no work is done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from textual.app import App

from llmb_tui import history
from llmb_tui.ui.screens import results
from llmb_tui.watch import run_records
from tests.kit.history import PastRun
from tests.kit.pilot import SIZE, on_top, text_of, until
from tests.kit.runs import NEMOTRON
from tests.ui.results.test_results_screen import cells

OpenResults = Callable[..., tuple[App[None], Any]]
_RUNS = 40


@pytest.fixture
def count(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Number of reads of logs, computed results, and made rows."""
    counts: Counter[str] = Counter()
    for module, name in ((run_records, "LocalRun"), (history, "RunResult"), (results, "result_list")):
        original = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *given, was=original, name=name: counts.update([name]) or was(*given))
    return counts


async def test_each_run_is_read_once_and_a_key_reads_nothing(open_results: OpenResults, count: Counter[str]) -> None:
    past = [PastRun(f"a{index:03}", NEMOTRON, index, 2.0 + index % 3 / 100) for index in range(_RUNS)]
    app, services = open_results(past)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: bool(cells(app)) and cells(app)[0][3] == f"{_RUNS}", "all figures")
        await until(pilot, lambda: count["LocalRun"] == _RUNS, "every log")
        rows = count["result_list"]
        assert rows < _RUNS / 2  # many runs are read, but shown together
        worked_out = count["RunResult"]
        await pilot.press("x", "x", "g", "g", "g", "g")
        await until(pilot, lambda: len(cells(app)) == _RUNS, "each run by itself")
        await pilot.press("g", "enter")
        await until(pilot, lambda: "nemotron4 15b fp8 · 64" in text_of(app, "#list-head"), "the runs of the group")
        await pilot.press("slash", *"a01", "escape", "q")
        await on_top(pilot, results.ResultsScreen)
        assert (count["LocalRun"], count["RunResult"]) == (_RUNS, worked_out)

        looks = Counter[str]()
        listing = services.runs.listing
        services.runs.listing = lambda: looks.update(["look"]) or listing()
        await until(pilot, lambda: looks["look"] >= 1, "the feed looks again")
        before = dict(count)
        app.screen.screen_layout_refresh_signal.subscribe(app.screen, lambda _: count.update(["layout"]))
        await until(pilot, lambda: looks["look"] >= 3, "the third check")
        assert dict(count) == before
