"""What tests of screens do again and again with Textual's Pilot: keys, waiting, and reading what is shown."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from textual._compositor import LayoutUpdate
from textual.app import App
from textual.events import Key
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input, Static

from llmb_tui.plan.plan import Plan
from llmb_tui.request import RunRequest
from llmb_tui.ui.dialogs import ConfirmDialog, Failure
from llmb_tui.ui.screens.run import RunScreen
from llmb_tui.ui.screens.wizard import WizardScreen
from llmb_tui.ui.widgets.choices import ChoiceList
from llmb_tui.ui.widgets.preview import Preview
from llmb_tui.ui.widgets.rail import Rail
from llmb_tui.ui.widgets.texts import Paragraph
from llmb_tui.watch.state import RunState
from llmb_tui.wizard.state import ClusterState, WizardState
from llmb_tui.wizard.steps import StepId
from tests.kit.waiting import DEADLINE_S

NEMOTRON = "nemotron4@25.04/15b"
SIZE = (120, 36)
"""Columns and rows of a usual terminal: the preview stands beside the form, and everything has room."""


async def until(pilot: Pilot[Any], true: Callable[..., object], what: str, *, deadline_s: float = DEADLINE_S) -> None:
    """Wait for something that threads bring about, and let every widget take it in.

    A pause of the pilot sends a message to every widget: again and again, that alone would keep a processor busy.
    """
    if true():
        return
    ends = time.monotonic() + deadline_s
    while not true():
        assert time.monotonic() < ends, f"not within {deadline_s:.0f} s: {what}\n{on_screen(pilot.app)}"
        await asyncio.sleep(0.02)
    await pilot.pause(0)


def burst(pilot: Pilot[None], *keys: str) -> None:
    """Press keys as a terminal gives them that arrive together."""
    for key in keys:
        pilot.app.post_message(Key(key, key if len(key) == 1 else None))


async def on_top(pilot: Pilot[Any], screen: type[Screen[Any]]) -> None:
    """Wait until a screen of this kind is the one that is seen."""
    await until(pilot, lambda: isinstance(pilot.app.screen, screen), f"{screen.__name__} is shown")
    await pilot.pause()


async def loaded(pilot: Pilot[None]) -> WizardScreen:
    """The wizard, once the presets are read; cursors do not blink."""
    wizard = pilot.app.screen
    assert isinstance(wizard, WizardScreen)
    await until(pilot, lambda: wizard.complete, "the presets are read, and the panes are there")
    for field in wizard.query(Input):
        field.cursor_blink = False
    await pilot.pause()
    return wizard


async def choose(pilot: Pilot[None], list_id: str, value: str) -> None:
    """Put the cursor of the focused list on a choice, as a click does: each key on the way there plans anew."""
    found = focused_list(pilot, list_id)
    found.highlighted = next(at for at, choice in enumerate(found.shown) if choice.value == value)
    await pilot.pause()
    assert found.chosen == value


def focused_list(pilot: Pilot[None], list_id: str) -> ChoiceList:
    """The list of that id, or in that, which has the focus."""
    assert not isinstance(pilot.app.screen, Failure), on_screen(pilot.app)
    choices = pilot.app.screen.query_one(f"#{list_id}")
    found = choices if isinstance(choices, ChoiceList) else choices.query_one(ChoiceList)
    assert found.has_focus
    return found


async def at_scale(pilot: Pilot[None], workload: str = NEMOTRON) -> WizardScreen:
    """The wizard at its third step, for a workload with the recipe's own answers before it."""
    wizard = await loaded(pilot)
    await choose(pilot, "workload", workload)
    await pilot.press("3")
    assert step_of(pilot) is StepId.SCALE
    return wizard


async def submit(pilot: Pilot[None]) -> None:
    """From Review to the run's screen, once the script, or the request of a workload, is rendered."""
    wizard = wizard_of(pilot)

    def is_rendered() -> bool:
        text = str(wizard.query_one("#script-text", Static).content)
        return "#SBATCH" in text or "environmentVariables" in text

    await until(pilot, is_rendered, "it is rendered")
    await pilot.press("enter")
    await on_top(pilot, ConfirmDialog)
    await pilot.press("y")
    await on_top(pilot, RunScreen)


async def know(pilot: Pilot[None], wizard: WizardScreen, cluster: ClusterState) -> None:
    """Let the wizard know this of its cluster."""
    wizard.state = replace(state_of(wizard), cluster=cluster)
    await pilot.pause()


def wizard_of(pilot: Pilot[None]) -> WizardScreen:
    """The wizard, whatever lies over it."""
    return next(screen for screen in pilot.app.screen_stack if isinstance(screen, WizardScreen))


def state_of(wizard: WizardScreen) -> WizardState:
    """What the wizard knows."""
    assert wizard.state is not None
    return wizard.state


def request_of(wizard: WizardScreen) -> RunRequest:
    """What would be run now."""
    request = state_of(wizard).proposal.request
    assert request is not None
    return request


def plan_of(wizard: WizardScreen) -> Plan:
    """The plan that the preview shows."""
    plan = wizard.query_one(Preview).figures.plan
    assert plan is not None
    return plan


def step_of(pilot: Pilot[None]) -> StepId:
    """The wizard's step."""
    return wizard_of(pilot).query_one(Rail).current


def marks(pilot: Pilot[None]) -> dict[StepId, str]:
    """The rail's marks by step."""
    return {one.step: one.mark for one in wizard_of(pilot).query_one(Rail).steps}


def summaries(pilot: Pilot[None]) -> dict[StepId, str]:
    """What the rail says of each step."""
    return {one.step: one.summary for one in wizard_of(pilot).query_one(Rail).steps}


def shown_run_state(pilot: Pilot[None]) -> RunState:
    """What the run's screen shows, once it is built: a reactive that is read earlier runs its watchers at once."""
    screen = pilot.app.screen
    return (isinstance(screen, RunScreen) and screen.is_mounted and screen.run_state) or RunState("not watched")


def actions(screen: Screen[Any]) -> set[str]:
    """What the keys do now. Of the wizard's panes it is the name of what they ask for."""
    names = (active.binding.action for active in screen.active_bindings.values() if active.enabled)
    return {action.removeprefix("screen.ask('").removesuffix("')") for action in names}


def text_of(app: App[Any], selector: str | type[Widget]) -> str:
    """What a widget of the screen on top says; nothing where it is not displayed."""
    widget = app.screen.query_one(selector)
    return str(widget.render()) if widget.display else ""


def by_head(parts: tuple[Paragraph, ...]) -> dict[str, str]:
    """The words of paragraphs by what stands before them."""
    return {str(head).strip(): str(body) for head, body in parts}


def rows(app: App[Any]) -> list[str]:
    """The text of the screen, row by row, as it would be painted in full."""
    painted = app.screen._compositor.render_update(full=True, screen_stack=app._background_screens)
    assert isinstance(painted, LayoutUpdate)
    lines = ("".join(strip.text for strip in strips) for strips in painted.strips)
    return [line.replace("\u00a0", " ").rstrip() for line in lines]


def on_screen(app: App[Any]) -> str:
    """The text of the screen as one."""
    return "\n".join(rows(app))
