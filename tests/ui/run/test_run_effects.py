"""The clipboard, detached threads, and the records of keys."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import pytest
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.dom import DOMNode
from textual.screen import Screen
from textual.widgets import Static

from llmb_tui.errors import LlmbError
from llmb_tui.ui.background import background, run_detached, run_in_thread
from llmb_tui.ui.clipboard import copy, native_tool
from llmb_tui.ui.dialogs import Failure
from llmb_tui.ui.screens.jobs import JobsScreen, JobTable
from llmb_tui.ui.screens.report import ReportScreen
from llmb_tui.ui.screens.run import RunScreen
from llmb_tui.ui.widgets.log_pane import LogPane
from llmb_tui.ui.widgets.log_view import LogView
from tests.kit.pilot import on_screen, until
from tests.ui.run.conftest import Host

ALL = ("pbcopy", "wl-copy", "xclip", "xsel")


@pytest.mark.parametrize(
    ("platform", "environment", "installed", "tool"),
    [
        ("darwin", {}, ALL, "pbcopy"),
        ("linux", {"WAYLAND_DISPLAY": "w", "DISPLAY": ":0"}, ALL, "wl-copy"),
        ("linux", {"DISPLAY": ":0"}, ALL, "xclip"),
        ("linux", {"DISPLAY": ":0"}, ("xsel",), "xsel"),
        ("linux", {}, ALL, None),
        ("linux", {"DISPLAY": ":0"}, (), None),
    ],
)
def test_the_tool_of_this_desktop(
    platform: str, environment: dict[str, str], installed: tuple[str, ...], tool: str | None
) -> None:
    result = native_tool(platform, environment, lambda name: f"/bin/{name}" if name in installed else None)
    assert (result[0] if result else None) == tool


async def test_a_copy_goes_to_the_terminal_and_to_the_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool, pasted = tmp_path / "xclip", tmp_path / "pasted"
    tool.write_text(f'#!/bin/sh\ncat > "{pasted}.part" && mv "{pasted}.part" "{pasted}"\n')
    tool.chmod(0o755)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    app: App[None] = App()
    async with app.run_test() as pilot:
        copy(app, "[/x] text", "One line")
        await until(pilot, pasted.exists, "the tool")
        assert pasted.read_text() == "[/x] text"
        assert app.clipboard == "[/x] text"
        assert [note.message for note in app._notifications] == ["One line sent to the clipboard."]


class Leaving(Screen[None]):
    """A screen that is closed while its background method waits; the method then finds it removed."""

    def compose(self) -> ComposeResult:
        yield Static(id="shown")

    @background()
    async def leave(self) -> None:
        self.dismiss()
        while self.query("#shown"):
            await asyncio.sleep(0)
        self.query_one("#shown")


async def test_a_screen_that_is_closing_reports_no_internal_error() -> None:
    leaving = Leaving()
    app = Host(lambda: leaving)
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.screen is leaving, "the screen")
        leaving.leave()
        await until(pilot, lambda: not leaving.is_running, "the closed screen")
        await pilot.pause()
        assert not isinstance(app.screen, Failure)


async def test_the_result_of_a_thread() -> None:
    assert await run_in_thread(lambda: 7) == 7


@pytest.mark.parametrize(
    ("error", "why"), [(LlmbError("It broke.", "why"), "why"), (ValueError("value"), "ValueError")]
)
async def test_the_trouble_of_a_thread(error: Exception, why: str) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(LlmbError) as caught:
        await run_in_thread(fail)
    assert why in caught.value.why


async def test_a_task_that_waits_for_a_stuck_thread_can_be_cancelled_immediately() -> None:
    began, release, ended = threading.Event(), threading.Event(), threading.Event()

    def stick() -> None:
        began.set()
        release.wait(60)
        ended.set()

    task = asyncio.create_task(run_in_thread(stick))
    await asyncio.to_thread(began.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not ended.is_set()
    release.set()


@pytest.mark.parametrize(
    ("error", "words"),
    [(LlmbError("It broke.", "why"), "It broke."), (ValueError("value"), "Internal error (please report).")],
)
@pytest.mark.parametrize("agreed", [False, True])
async def test_a_background_failure_is_reported_and_the_screen_stays(
    error: Exception, words: str, agreed: bool
) -> None:
    class Failing(Screen[None]):
        @background(group="fail")
        async def fail(self) -> None:
            await self.raise_it()

        async def raise_it(self) -> None:
            raise error

    failing = Failing()
    app = Host(lambda: failing)
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.screen is failing, "the screen")
        if agreed:
            run_detached(app, failing.raise_it())
        else:
            failing.fail()
        await until(pilot, lambda: isinstance(app.screen, Failure) and words in on_screen(app), "the dialog")
        await pilot.press("enter")
        assert app.screen is failing


@pytest.mark.parametrize("node", [RunScreen, JobsScreen, ReportScreen, LogPane, LogView, JobTable])
def test_every_key_has_an_id_and_a_description(node: type[DOMNode]) -> None:
    bindings = [binding for binding in node.BINDINGS if isinstance(binding, Binding)]
    assert len(bindings) == len(node.BINDINGS)
    assert all(binding.id and binding.tooltip for binding in bindings)
    assert len({binding.id for binding in bindings}) == len(bindings)
