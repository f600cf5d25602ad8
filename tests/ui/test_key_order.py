"""`KeyOrder`: keys in one burst have the effect of keys typed slowly."""

from __future__ import annotations

import asyncio

import pytest
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.events import Paste
from textual.widgets import Input, Static

from llmb_tui.ui import key_order
from llmb_tui.ui.key_order import KeyOrder
from tests.kit.pilot import burst, until


class Leaving(Static, can_focus=True):
    """Removes its container at any key, in its handler: the message after the key is lost there."""

    async def on_key(self) -> None:
        row = self.query_ancestor("#leaving", Vertical)
        row.remove()
        while row.is_running:
            await asyncio.sleep(0)


class Fields(KeyOrder):
    """Two fields, nested as in the wizard, and a widget that a key removes."""

    def compose(self) -> ComposeResult:
        with Vertical(), Vertical(), Vertical():
            yield Input(id="first")
            yield Input(id="second")
        with Vertical(id="leaving"):
            yield Leaving("any key")

    def value(self, name: str) -> str:
        return self.query_one(f"#{name}", Input).value


@pytest.mark.parametrize(
    ("keys", "first", "second"),
    [
        (("1", "2", "backspace", "backspace", "3"), "3", ""),
        (("1", "left", "2", "tab", "3"), "21", "3"),
        (("tab", "home", "1", "home", "2"), "", "21"),
    ],
)
async def test_keys_of_a_burst_act_in_their_order(keys: tuple[str, ...], first: str, second: str) -> None:
    app = Fields()
    async with app.run_test() as pilot:
        burst(pilot, *keys)
        await until(pilot, lambda: (app.value("first"), app.value("second")) == (first, second), "all have acted")


async def test_text_pasted_after_a_key_acts_after_it() -> None:
    app = Fields()
    async with app.run_test() as pilot:
        burst(pilot, "1", "tab")
        app.post_message(Paste("2"))
        await until(pilot, lambda: (app.value("first"), app.value("second")) == ("1", "2"), "all have acted")


async def test_key_that_removes_its_widget_does_not_block_the_next() -> None:
    app = Fields()
    async with app.run_test() as pilot:
        app.query_one(Leaving).focus()
        await pilot.pause()
        burst(pilot, "x", "tab", "1")
        await until(pilot, lambda: app.value("first") == "1", "the key behind has acted")


@pytest.mark.parametrize(("key", "types"), [("a", True), ("backspace", True), ("ctrl+r", False), ("left", False)])
async def test_non_printable_key_does_not_count_as_typing(
    monkeypatch: pytest.MonkeyPatch, key: str, types: bool
) -> None:
    monkeypatch.setattr(key_order, "PAUSE_S", 3600.0)
    app = Fields()
    async with app.run_test() as pilot:
        app.query_one("#first").focus()
        await pilot.press(key)
        assert bool(app.remaining_typing_s) is types
        await pilot.press("tab")
        assert not app.remaining_typing_s
