"""`KeyBar` is repainted if its keys change, and only then."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

import pytest
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Button

from llmb_tui.ui.widgets.key_bar import KeyBar, ShownKey


class Keys(App[None]):
    """A key that can be disabled, and one that depends on the focus."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("a", "one", "One", tooltip="Does one")]
    allowed: bool | None = True

    def __init__(self) -> None:
        super().__init__()
        self.done: list[str] = []

    class Other(Button):
        """A button with its own key."""

        BINDINGS: ClassVar[list[BindingType]] = [Binding("b", "two", "Two")]

        def action_two(self) -> None:
            """Do nothing."""

    def compose(self) -> ComposeResult:
        """Two equal buttons, and one with its own key."""
        yield Button(id="first")
        yield Button(id="second")
        yield self.Other(id="other")
        yield KeyBar()

    def action_one(self) -> None:
        self.done.append("One")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        return self.allowed if action == "one" else True


async def settled(pilot: Pilot[None]) -> tuple[ShownKey, ...]:
    """The keys, once every change is on the screen."""
    for _ in range(3):
        await pilot.pause()
    return pilot.app.query_one(KeyBar).keys


def words(keys: tuple[ShownKey, ...]) -> list[tuple[str, bool]]:
    return [(key.words.plain, not key.enabled) for key in keys]


async def test_unchanged_keys_are_not_repainted(monkeypatch: pytest.MonkeyPatch) -> None:
    app = Keys()
    async with app.run_test() as pilot:
        assert words(await settled(pilot)) == [("a One", False)]
        painted, render = Counter[str](), KeyBar.render
        monkeypatch.setattr(KeyBar, "render", lambda bar: painted.update(["again"]) or render(bar))
        app.query_one("#second").focus()
        app.screen.refresh_bindings()
        await settled(pilot)
        assert not painted
        app.query_one("#other").focus()
        await settled(pilot)
        assert painted


async def test_a_click_acts_like_the_key_unless_it_is_disabled() -> None:
    app = Keys()
    async with app.run_test() as pilot:
        await settled(pilot)
        await pilot.click(KeyBar, offset=(3, 0))
        assert app.done == ["One"]
        await pilot.click(KeyBar, offset=(30, 0))
        app.allowed = None
        app.screen.refresh_bindings()
        await settled(pilot)
        await pilot.click(KeyBar, offset=(3, 0))
        await settled(pilot)
        assert app.done == ["One"]


async def test_the_tooltip_belongs_to_the_key_under_the_mouse() -> None:
    app = Keys()
    async with app.run_test() as pilot:
        await settled(pilot)
        tooltips = []
        for column in (0, 4, 30):
            await pilot.hover(KeyBar, offset=(column, 0))
            tooltips.append(app.query_one(KeyBar).tooltip)
        assert tooltips == ["Does one", "Does one", None]


async def test_new_and_disabled_keys_are_shown() -> None:
    app = Keys()
    async with app.run_test() as pilot:
        await settled(pilot)
        app.query_one("#other").focus()
        assert words(await settled(pilot)) == [("b Two", False), ("a One", False)]
        app.allowed = None
        app.screen.refresh_bindings()
        assert words(await settled(pilot)) == [("b Two", False), ("a One", True)]
        app.allowed = False
        app.screen.refresh_bindings()
        app.query_one("#first").focus()
        assert words(await settled(pilot)) == []


async def test_changes_without_window_focus_are_shown_afterwards() -> None:
    app = Keys()
    async with app.run_test() as pilot:
        await settled(pilot)
        app.app_focus = False
        app.allowed = None
        app.screen.refresh_bindings()
        assert words(await settled(pilot)) == [("a One", False)]
        app.app_focus = True
        app.screen.refresh_bindings()
        assert words(await settled(pilot)) == [("a One", True)]


async def test_changes_of_a_covered_screen_are_shown_on_return() -> None:
    app = Keys()
    async with app.run_test() as pilot:
        await settled(pilot)
        below = app.screen
        for _ in range(3):
            app.push_screen(Screen())
            app.allowed = None if app.allowed else True
            below.refresh_bindings()
            app.pop_screen()
            assert words(await settled(pilot)) == [("a One", app.allowed is None)]
