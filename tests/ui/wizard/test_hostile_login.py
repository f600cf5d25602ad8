"""A server whose banner and prompts hold text that could reach the terminal, break a dialog or fill the screen."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from textual.widgets import Input

from llmb_tui.cluster.failures import AuthenticationError
from llmb_tui.cluster.ssh.connect import connect
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.dialogs import Failure, Secret
from tests.cluster.login_node import PASSWORD, LoginNode
from tests.kit.pilot import loaded, on_screen, on_top, until
from tests.ui.wizard.test_hostile_answers import FORBIDDEN, shown

# Clipboard, erase, colour, C1, right-to-left and zero-width characters, Textual's markup, backspaces.
HOSTILE = (
    "\x1b]52;c;ZXZpbA==\x07\x1b[2J\x1b[31m\x9b31m\u202egnp.exe\u200b\u2066 [red]x[/red] [@click=app.quit]y[/] [/]\x08\r"
)
TEXTS = {
    "signs": HOSTILE,
    "100 kB": "[red]" * 20_000,
    "many lines": f"{HOSTILE}\n" * 300,
    "one hundred thousand lines": "\n" * 100_000,
}


@pytest.fixture
def node(tmp_path: Path) -> Iterator[LoginNode]:
    with closing(LoginNode(tmp_path)) as login_node:
        login_node.factors = ("keyboard-interactive",)
        yield login_node


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_a_hostile_prompt_is_harmless_and_can_be_answered(
    app: LlmbApp, node: LoginNode, text: str, size: tuple[int, int]
) -> None:
    node.banner = node.instructions = text
    node.rounds = ((f"Password {text[:200]}: ",),)
    banners: list[str] = []

    def log_in() -> None:
        connection = connect(replace(node.profile(), identity_file=None), app.prompter)
        banners.append(connection.banner)
        connection.close()

    connecting = threading.Thread(target=log_in, daemon=True)
    async with app.run_test(size=size) as pilot:
        await loaded(pilot)
        connecting.start()
        await on_top(pilot, Secret)
        field = app.screen.query_one(Input)
        assert not FORBIDDEN.search(shown(app))
        await until(pilot, lambda: app.screen.region.contains_region(field.region), "the field")
        await until(pilot, lambda: "enter: send" in on_screen(app), "the hint")
        await until(pilot, lambda: ": " in on_screen(app), "the end of the prompt")
        assert not FORBIDDEN.search(shown(app))
        await pilot.press(*("space" if key == " " else key for key in PASSWORD), "enter")
        await until(pilot, lambda: banners, "the login")
    assert not FORBIDDEN.search(banners[0].replace("\n", ""))


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
async def test_a_hostile_refusal_is_harmless_and_can_be_closed(app: LlmbApp, node: LoginNode, text: str) -> None:
    node.banner = node.instructions = text
    refusals: list[AuthenticationError] = []

    def log_in() -> None:
        try:
            connect(replace(node.profile(), identity_file=None), app.prompter)
        except AuthenticationError as error:
            refusals.append(error)

    connecting = threading.Thread(target=log_in, daemon=True)
    async with app.run_test(size=(80, 24)) as pilot:
        wizard = await loaded(pilot)
        connecting.start()
        await on_top(pilot, Secret)
        await pilot.press("escape")
        await until(pilot, lambda: refusals, "the refusal")
        app.push_screen(Failure(refusals[0]))
        await on_top(pilot, Failure)
        assert not FORBIDDEN.search(shown(app))
        assert "Close" in on_screen(app)
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is wizard, "the error is closed")
