"""Theme and keys from the settings."""

from __future__ import annotations

import pytest

from llmb_tui.services import Services
from llmb_tui.store.settings import Settings, load_settings
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.dialogs import HelpDialog
from llmb_tui.ui.screen_settings import keys_by_id, screen_faults
from tests.kit.pilot import loaded


def with_settings(services: Services, settings: Settings) -> LlmbApp:
    return LlmbApp(Services(services.places, settings))


async def test_keys_follow_the_settings(services: Services) -> None:
    app = with_settings(services, Settings(keys={"app.help": "f2"}))
    async with app.run_test() as pilot:
        await loaded(pilot)
        await pilot.press("question_mark")
        assert not isinstance(app.screen, HelpDialog)
        await pilot.press("f2")
        assert isinstance(app.screen, HelpDialog)


async def test_the_configured_theme_is_used_and_a_newly_chosen_theme_saved(services: Services) -> None:
    app = with_settings(services, Settings(theme="nord"))
    async with app.run_test() as pilot:
        assert app.theme == "nord"
        for chosen in ("gruvbox", "nord"):
            app.theme = chosen
            await pilot.pause()
            await app.workers.wait_for_complete()
            assert load_settings(services.places.settings).theme == chosen


async def test_nothing_is_written_while_the_theme_stays(services: Services) -> None:
    async with with_settings(services, Settings()).run_test() as pilot:
        await pilot.pause()
    assert not services.places.settings.exists()


async def test_invalid_screen_settings_are_reported(services: Services) -> None:
    app = with_settings(services, Settings(theme="no such", keys={"app.qit": "x"}))
    async with app.run_test(notifications=True) as pilot:
        await pilot.pause()
        texts = [note.message for note in app._notifications]
    assert any("no such" in text for text in texts)
    assert any("Did you mean app.quit?" in text for text in texts)


def test_every_binding_can_be_set() -> None:
    known = keys_by_id()
    assert {"app.quit", "wizard.back", "jobs.peek"} <= set(known)
    assert [*screen_faults(Settings(theme="nord", keys=dict.fromkeys(known, "f5")))] == []


@pytest.mark.parametrize("settings", [Settings(), Settings(theme="textual-light")])
def test_valid_settings_have_no_fault(settings: Settings) -> None:
    assert not [*screen_faults(settings)]
