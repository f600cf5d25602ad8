"""What the dialogs hand on."""

from __future__ import annotations

import pytest
from textual.screen import Screen

from llmb_tui.errors import Trouble
from llmb_tui.ui.dialogs import Failure
from tests.kit.pilot import on_screen, until
from tests.ui.run.conftest import Host


async def test_a_failure_that_is_copied_reaches_the_desktops_tool_too_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fed: list[bytes] = []
    monkeypatch.setattr("llmb_tui.ui.clipboard.native_tool", lambda *_: ("pbcopy",))
    monkeypatch.setattr("llmb_tui.ui.clipboard._feed", lambda _, data: fed.append(data))
    app = Host(Screen)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        app.push_screen(Failure(Trouble("It broke.", "A wire \x1b[2Jis cut.", "Mend it.")))
        await pilot.pause()
        await pilot.press("c")
        await until(pilot, lambda: fed == [b"It broke.\nA wire is cut.\nMend it."], "the tool has it")
        assert app.clipboard == fed[0].decode()
        assert "The text sent to the clipboard." in on_screen(app)
