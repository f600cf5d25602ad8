"""Answers that the dialogs return."""

from __future__ import annotations

import string
from pathlib import Path

import pytest
from textual.screen import Screen

from llmb_tui.errors import LlmbError
from llmb_tui.ui.dialogs import ConfirmDialog, Failure, HostKey
from llmb_tui.ui.text import plain
from tests.kit.pilot import on_screen, until
from tests.ui.run.conftest import Host

LONG = "\n".join(f"line {number}" for number in range(40))


async def test_a_long_failure_is_scrolled_to_its_end_and_closed_at_24_lines() -> None:
    app = Host(Screen)
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(Failure(LlmbError("It broke.", LONG, "The end.")))
        await pilot.pause()
        assert "Close" in on_screen(app)
        await pilot.press("end")
        await until(pilot, lambda: "The end." in on_screen(app), "the end of the text")
        await pilot.press("enter")
        assert not isinstance(app.screen, Failure)


async def test_a_long_question_keeps_its_buttons_visible_at_24_lines() -> None:
    app = Host(Screen)
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(ConfirmDialog("Remove", plain(f"{LONG}\nIt cannot be undone."), "Remove it", "Keep it"))
        await pilot.pause()
        assert "Remove it" in on_screen(app)
        await pilot.press("shift+tab", "end")
        await until(pilot, lambda: "It cannot be undone." in on_screen(app), "the end of the text")
        await pilot.press("y")
        assert not isinstance(app.screen, ConfirmDialog)


async def test_typing_does_not_accept_a_host_key() -> None:
    """The question of a connecting thread appears at any time, whatever the user is doing."""
    app, answers = Host(Screen), list[bool | None]()
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(HostKey("eos-login", "ssh-ed25519", "SHA256:abc"), answers.append)
        await pilot.pause()
        await pilot.press(*string.ascii_letters, *string.digits, "space")
        assert isinstance(app.screen, HostKey)
        await pilot.press("enter")
        assert answers == [False]


@pytest.mark.parametrize("other", ["left", "right", "tab"])
async def test_a_host_key_is_accepted_with_the_keys_that_the_dialog_names(other: str) -> None:
    app, answers = Host(Screen), list[bool | None]()
    async with app.run_test(size=(80, 24)) as pilot:
        kind = "ecdsa-sha2-nistp256"
        app.push_screen(HostKey("eos-login", kind, "SHA256:abc", "To be known before."), answers.append)
        await pilot.pause()
        assert f"{kind}  SHA256:abc" in on_screen(app)
        assert "To be known before." in on_screen(app)
        assert "← →: switch · enter: choose" in on_screen(app)
        await pilot.press(other, "enter")
        assert answers == [True]


async def test_copying_a_failure_also_uses_the_desktop_tool_and_shows_a_toast(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    desktop = tmp_path / "clipboard"
    desktop.touch()
    monkeypatch.setattr("llmb_tui.ui.clipboard.native_tool", lambda *_: ("tee", str(desktop)))
    app = Host(Screen)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        app.push_screen(Failure(LlmbError("It broke.", "A wire \x1b[2Jis cut.", "Mend it.")))
        await pilot.pause()
        await pilot.press("c")
        await until(pilot, lambda: desktop.read_text() == "It broke.\nA wire is cut.\nMend it.", "the tool has it")
        assert app.clipboard == desktop.read_text()
        assert "The text sent to the clipboard." in on_screen(app)
