"""Questions of threads that connect, put to the person at the screen."""

from __future__ import annotations

import threading

from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.dialogs import Secret
from tests.kit.pilot import loaded, on_top


async def test_who_waits_for_an_answer_is_let_go_when_the_program_ends(app: LlmbApp) -> None:
    answers: list[str | None] = []
    waiting = threading.Thread(target=lambda: answers.append(app.prompter.answer("Password: ", False)), daemon=True)
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        waiting.start()
        await on_top(pilot, Secret)
    waiting.join(60)
    assert answers == [None]


async def test_after_the_end_nobody_is_asked(app: LlmbApp) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
    answers: list[object] = []
    asking = threading.Thread(
        target=lambda: answers.extend(
            [app.prompter.answer("Code: ", True), app.prompter.accept_host_key("a", "b", "c")]
        ),
        daemon=True,
    )
    asking.start()
    asking.join(60)
    assert answers == [None, False]
