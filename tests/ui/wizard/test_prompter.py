"""Questions of connecting threads, asked in dialogs."""

from __future__ import annotations

import threading

import pytest
from textual.events import AppBlur, AppFocus
from textual.widgets import Input

from llmb_tui.ui import key_order
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.dialogs import InputDialog, Secret
from llmb_tui.ui.screens.jobs import JobsScreen
from llmb_tui.ui.text import plain
from tests.kit.pilot import loaded, on_top, until
from tests.kit.runs import make_run


async def test_waiting_thread_is_released_when_the_program_ends(app: LlmbApp) -> None:
    answers: list[str | None] = []
    waiting = threading.Thread(target=lambda: answers.append(app.prompter.answer("Password: ", False)), daemon=True)
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        waiting.start()
        await on_top(pilot, Secret)
    waiting.join(60)
    assert answers == [None]


async def test_waiting_thread_is_released_when_the_wizard_becomes_active(app: LlmbApp) -> None:
    answers: list[str | None] = []
    asking = threading.Thread(target=lambda: answers.append(app.prompter.answer("Password: ", False)), daemon=True)
    async with app.run_test(size=(80, 24)) as pilot:
        wizard = await loaded(pilot)
        await pilot.press("J")
        await on_top(pilot, JobsScreen)
        asking.start()
        await on_top(pilot, Secret)
        app.post_message(JobsScreen.RunAgainRequested(make_run("before")))
        await until(pilot, lambda: app.screen is wizard, "the wizard is back")
        await until(pilot, lambda: answers == [None], "the thread continues")


@pytest.mark.parametrize("pause_s", [3600.0, 0.01])
async def test_question_waits_for_a_pause_of_typing(
    app: LlmbApp, monkeypatch: pytest.MonkeyPatch, pause_s: float
) -> None:
    monkeypatch.setattr(key_order, "PAUSE_S", pause_s)
    asking = threading.Thread(target=lambda: app.prompter.answer("Password: ", False), daemon=True)
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        app.push_screen(InputDialog("A name", plain("of anything")))
        await on_top(pilot, InputDialog)
        field = app.screen.query_one(Input)
        await pilot.press(*"half")
        asking.start()
        await until(pilot, lambda: app.prompter._waiting, "the prompt")
        if pause_s < 1:
            await on_top(pilot, Secret)
        else:
            await pilot.press(*" a word")
            assert (field.value, type(app.screen)) == ("half a word", InputDialog)


async def test_prompt_that_opens_without_focus_receives_the_next_keys(app: LlmbApp) -> None:
    answers: list[str | None] = []
    asking = threading.Thread(target=lambda: answers.append(app.prompter.answer("Password: ", False)), daemon=True)
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        app.post_message(AppBlur())
        await pilot.pause()
        asking.start()
        await on_top(pilot, Secret)
        app.post_message(AppFocus())
        await pilot.press(*"pw", "enter")
        await until(pilot, lambda: answers == ["pw"], "the answer")


async def test_no_prompt_opens_after_the_end(app: LlmbApp) -> None:
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
