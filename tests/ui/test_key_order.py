"""`KeyOrder`: what comes in one burst is as if it had been typed slowly."""

from __future__ import annotations

from typing import ClassVar

import pytest
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.events import Key, Paste
from textual.pilot import Pilot
from textual.widgets import Input

from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.key_order import KeyOrder
from tests.kit.pilot import until


class Fields(KeyOrder):
    """Two fields, as deep as they lie in the wizard; escape removes the one that has the focus."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "drop", "Drop")]

    def compose(self) -> ComposeResult:
        with Vertical(), Vertical(), Vertical():
            yield Input(id="first")
            yield Input(id="second")

    def action_drop(self) -> None:
        if self.focused:
            self.focused.remove()

    def value(self, name: str) -> str:
        return self.query_one(f"#{name}", Input).value


def burst(pilot: Pilot[None], *keys: str) -> None:
    """As a terminal gives them when they arrive together."""
    for key in keys:
        pilot.app.post_message(Key(key, key if len(key) == 1 else None))


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


async def test_what_is_pasted_behind_a_key_lands_behind_it() -> None:
    app = Fields()
    async with app.run_test() as pilot:
        burst(pilot, "1", "tab")
        app.post_message(Paste("2"))
        await until(pilot, lambda: (app.value("first"), app.value("second")) == ("1", "2"), "all have acted")


async def test_a_field_that_a_key_removes_holds_none_that_come_behind() -> None:
    app = Fields()
    async with app.run_test() as pilot:
        burst(pilot, "1", "escape", "2", "3")
        await until(pilot, lambda: app.value("second") == "23", "the other field has the focus, and what was typed")


def test_the_program_is_such_an_app() -> None:
    assert issubclass(LlmbApp, KeyOrder)
