"""`KeyBar` is made again when its keys differ, and only then."""

from __future__ import annotations

from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Button
from textual.widgets._footer import FooterKey

from llmb_tui.ui.widgets.key_bar import KeyBar


class Keys(App[None]):
    """One key that can be forbidden, and one that comes with the focus."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("a", "one", "One")]
    allowed: bool | None = True

    class Other(Button):
        """Has a key of its own."""

        BINDINGS: ClassVar[list[BindingType]] = [Binding("b", "two", "Two")]

        def action_two(self) -> None:
            """Does nothing."""

    def compose(self) -> ComposeResult:
        """Two widgets alike, and one that is not."""
        yield Button(id="first")
        yield Button(id="second")
        yield self.Other(id="other")
        yield KeyBar()

    def action_one(self) -> None:
        """Does nothing."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        return self.allowed if action == "one" else True


async def settled(pilot: Pilot[None]) -> list[FooterKey]:
    """The widgets of the keys, once every change has reached the screen."""
    for _ in range(3):
        await pilot.pause()
    return list(pilot.app.query(FooterKey))


def words(keys: list[FooterKey]) -> list[tuple[str, bool]]:
    return [(key.description, key.has_class("-disabled")) for key in keys if "-command-palette" not in key.classes]


async def test_the_keys_stay_while_they_are_the_same() -> None:
    app = Keys()
    async with app.run_test() as pilot:
        before = await settled(pilot)
        assert words(before) == [("One", False)]
        app.query_one("#second").focus()
        app.screen.refresh_bindings()
        assert await settled(pilot) == before


async def test_another_key_and_one_that_is_forbidden_are_seen() -> None:
    app = Keys()
    async with app.run_test() as pilot:
        await settled(pilot)
        app.query_one("#other").focus()
        assert words(await settled(pilot)) == [("Two", False), ("One", False)]
        app.allowed = None
        app.screen.refresh_bindings()
        assert words(await settled(pilot)) == [("Two", False), ("One", True)]
        app.allowed = False
        app.screen.refresh_bindings()
        app.query_one("#first").focus()
        assert words(await settled(pilot)) == []


async def test_what_changes_while_another_window_is_in_front_is_seen_afterwards() -> None:
    app = Keys()
    async with app.run_test() as pilot:
        await settled(pilot)
        app.app_focus = False
        app.allowed = None
        app.screen.refresh_bindings()
        assert words(await settled(pilot)) == [("One", False)]
        app.app_focus = True
        app.screen.refresh_bindings()
        assert words(await settled(pilot)) == [("One", True)]


async def test_what_changes_while_the_screen_is_covered_is_seen_when_it_is_back() -> None:
    app = Keys()
    async with app.run_test() as pilot:
        await settled(pilot)
        below = app.screen
        for _ in range(3):
            app.push_screen(Screen())
            app.allowed = None if app.allowed else True
            below.refresh_bindings()
            app.pop_screen()
            assert words(await settled(pilot)) == [("One", app.allowed is None)]
