"""What the tests of the wizard do again and again, by keyboard."""

from __future__ import annotations

import time
from collections.abc import Callable

from textual.pilot import Pilot
from textual.widgets import Input

from llmb_tui.ui.screens.wizard import WizardScreen
from llmb_tui.ui.widgets.choices import ChoiceList
from llmb_tui.ui.widgets.preview import Preview
from llmb_tui.ui.widgets.rail import Rail
from llmb_tui.wizard.steps import StepId

DEADLINE_S = 30.0


async def until(pilot: Pilot[None], true: Callable[[], bool], what: str) -> None:
    """Wait for something that threads bring about."""
    ends = time.monotonic() + DEADLINE_S
    while not true():
        assert time.monotonic() < ends, f"not within {DEADLINE_S:.0f} s: {what}"
        await pilot.pause(0.02)


async def loaded(pilot: Pilot[None]) -> WizardScreen:
    """The wizard, once the presets are read; cursors do not blink."""
    wizard = pilot.app.screen
    assert isinstance(wizard, WizardScreen)
    await until(pilot, lambda: any(preview.made for preview in wizard.query(Preview)), "the presets are read")
    for field in wizard.query(Input):
        field.cursor_blink = False
    await pilot.pause()
    return wizard


async def choose(pilot: Pilot[None], list_id: str, value: str) -> None:
    """Move the cursor of the focused list down to a choice, key by key."""
    choices = pilot.app.screen.query_one(f"#{list_id}")
    found = choices if isinstance(choices, ChoiceList) else choices.query_one(ChoiceList)
    assert found.has_focus
    for _ in range(len(found.shown)):
        if found.chosen == value:
            return
        await pilot.press("down")
    assert found.chosen == value


def marks(wizard: WizardScreen) -> dict[StepId, str]:
    """The rail's marks by step."""
    return {one.step: one.mark for one in wizard.query_one(Rail).steps}


async def on_top(pilot: Pilot[None], screen: type) -> None:
    """Wait until a screen of this kind is the one that is seen."""
    await until(pilot, lambda: isinstance(pilot.app.screen, screen), f"{screen.__name__} is shown")
    await pilot.pause()
