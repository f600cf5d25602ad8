"""Costs of a streaming log: no layout, no new keys, and repaints only of parts with changed content."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from textual.app import App

from llmb_tui.ui.screens.run import RunScreen
from llmb_tui.ui.widgets.key_bar import KeyBar
from llmb_tui.ui.widgets.log_pane import LogPane
from llmb_tui.ui.widgets.log_view import LogView
from llmb_tui.ui.widgets.run_header import RunHeader
from llmb_tui.ui.widgets.step_chart import StepChart
from tests.kit.frames import Frames
from tests.kit.pilot import SIZE, text_of, until
from tests.ui.run.run_states import STATES, log_text


async def test_new_log_lines_cause_no_layout(
    open_run: Callable[..., tuple[App[None], Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = STATES["measuring"]
    app, services = open_run(first, log=log_text(31))
    drawn: Counter[str] = Counter()
    async with app.run_test(size=SIZE) as pilot:
        view = app.screen.query_one(LogView)
        await until(pilot, lambda: view.source.lines == 42 and "● live" in text_of(app, RunHeader), "the run")
        await pilot.pause()
        app.screen.screen_layout_refresh_signal.subscribe(view, lambda _: drawn.update(["layout"]))
        for kind in (RunHeader, StepChart):
            original = kind.draw
            monkeypatch.setattr(
                kind, "draw", lambda *given, was=original: drawn.update([was.__qualname__]) or was(*given)
            )
        render = KeyBar.render
        monkeypatch.setattr(KeyBar, "render", lambda bar: drawn.update(["keys"]) or render(bar))
        log = services.runs.folder("k3f9a2") / first.log_name
        for more in range(1, 6):
            with log.open("a") as file:
                file.write("0: NCCL INFO Channel 00\n" * 20)
            app.screen.post_message(RunScreen.StateChanged(replace(first, log_bytes=first.log_bytes + more)))
            await until(pilot, lambda more=more: view.source.lines == 42 + 20 * more, "the lines")
            await pilot.pause()
    assert drawn == {"RunHeader.draw": 5}


async def test_an_unchanged_log_is_not_read_again(
    open_run: Callable[..., tuple[App[None], Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, told = STATES["measuring"], []
    monkeypatch.setattr(LogPane, "show_newest", lambda _, file: told.append(file[0]))
    app, _ = open_run(first, log=log_text(31))
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: told, "the log")
        told.clear()
        for seconds in range(1, 4):
            app.screen.post_message(RunScreen.StateChanged(replace(first, silent_s=float(seconds))))
            await pilot.pause()
        assert told == []
        app.screen.post_message(RunScreen.StateChanged(replace(first, log_bytes=first.log_bytes + 1)))
        await until(pilot, lambda: told == [first.log_name], "the log's name")


@pytest.mark.parametrize("size", [(120, 36), (80, 24)])
async def test_frames_of_a_run_add_up_to_the_whole_screen(
    open_run: Callable[..., tuple[App[None], Any]], monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    first = STATES["measuring"]
    app, services = open_run(first, log=log_text(31))
    frames = Frames(app, monkeypatch)
    async with app.run_test(size=size) as pilot:
        view = app.screen.query_one(LogView)
        await until(pilot, lambda: view.source.lines == 42 and "● live" in text_of(app, RunHeader), "the run")
        log = services.runs.folder("k3f9a2") / first.log_name
        for more, key in enumerate("k k j slash o escape end pageup tab".split(), start=1):
            with log.open("a") as file:
                file.write("0: NCCL INFO Channel 00\n" * 20)
            app.screen.post_message(RunScreen.StateChanged(replace(first, log_bytes=first.log_bytes + more)))
            await until(pilot, lambda more=more: view.source.lines == 42 + 20 * more, "the lines")
            await pilot.press(key)
            await pilot.pause()
            assert frames.cells == frames.whole(), key
