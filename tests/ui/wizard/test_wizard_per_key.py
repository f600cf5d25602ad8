"""Work per key: one plan, one derivation, no update of unchanged widgets; and timers without a key."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from textual._compositor import Compositor
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input, Static

from llmb_tui.plan.make import plan
from llmb_tui.services import Services
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.dialogs import HelpDialog
from llmb_tui.ui.screens.jobs import JobsScreen
from llmb_tui.ui.screens.wizard import WizardScreen
from llmb_tui.ui.widgets.choices import ChoiceList
from llmb_tui.ui.widgets.figures import PlanFigures
from llmb_tui.ui.widgets.key_bar import KeyBar
from llmb_tui.ui.widgets.preview import Preview
from llmb_tui.ui.widgets.rail import Rail
from llmb_tui.wizard.answers import with_defaults
from llmb_tui.wizard.proposal import propose
from tests.kit.frames import Frames
from tests.kit.pilot import SIZE, choose, know, loaded, on_top, plan_of, state_of, until
from tests.ui.wizard.found_states import EOS, draft_of

pytestmark = pytest.mark.every_frame


def count_calls(monkeypatch: pytest.MonkeyPatch, calls: Counter[str], owner: Any, name: str) -> None:
    """Count the calls of a function; calls of a method are counted per widget."""
    original: Callable[..., Any] = getattr(owner, name)

    def noting(*given: Any, **named: Any) -> Any:
        widget = given[0] if given and isinstance(given[0], Widget) else None
        what = original.__name__
        calls[f"{what} of {type(widget).__name__}#{widget.id}" if widget is not None else what] += 1
        return original(*given, **named)

    monkeypatch.setattr(owner, name, noting)


def count_all_calls(monkeypatch: pytest.MonkeyPatch, calls: Counter[str], function: Callable[..., Any]) -> None:
    """Count the calls of a function, except those that the chart makes for its other scales."""
    rooms = [module for name, module in sys.modules.items() if name.startswith(("llmb_tui.wizard", "llmb_tui.ui"))]
    for module in rooms:
        for name in [name for name, value in vars(module).items() if value is function]:
            count_calls(monkeypatch, calls, module, name)


async def test_a_scroll_is_painted_in_one_frame(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("textual.constants.TEXTUAL_ANIMATIONS", "full")
    app = LlmbApp(services)
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, HelpDialog), "help is open")
        await pilot.pause()
        scroller = next(widget for widget in app.screen.walk_children(Widget) if widget.max_scroll_y > 0)
        scroller.scroll_end()
        await pilot.pause()
        assert scroller.scroll_y == scroller.max_scroll_y


@pytest.mark.parametrize(
    ("focused", "key"),
    [("#scale ChoiceList", "down"), ("#steps", "7"), ("#switches", "space"), ("#procedure", "down")],
    ids=["scale", "steps", "profile", "procedure"],
)
async def test_a_key_plans_once_and_derives_once(
    app: LlmbApp, monkeypatch: pytest.MonkeyPatch, focused: str, key: str
) -> None:
    calls: Counter[str] = Counter()
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await loaded(pilot)
        await choose(pilot, "workload", "llama3.1@25.04/8b")
        await pilot.press("3")
        wizard.query_one(focused).focus()
        await pilot.pause()
        for function in (plan, with_defaults, propose):
            count_all_calls(monkeypatch, calls, function)
        await pilot.press(key)
    assert calls == {"plan": 1, "with_defaults": 1, "propose": 1}


async def test_a_key_that_changes_figures_and_remarks_lays_out_nothing(app: LlmbApp) -> None:
    layouts: list[object] = []
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await loaded(pilot)
        await choose(pilot, "workload", "llama3.1@25.04/8b")
        await pilot.press("3")
        scales, steps = wizard.query_one("#scale ChoiceList"), wizard.query_one("#steps")
        for field, first, *keys in ((scales, "down", "down", "down", "up"), (steps, "7", "5", "backspace", "1")):
            field.focus()
            await pilot.press(first)
            await pilot.pause()
            wizard.screen_layout_refresh_signal.subscribe(field, layouts.append)
            for key in keys:
                await pilot.press(key)
                await pilot.pause()
            wizard.screen_layout_refresh_signal.unsubscribe(field)
    assert not layouts


async def test_a_key_is_painted_at_once_with_its_chart(app: LlmbApp, monkeypatch: pytest.MonkeyPatch) -> None:
    painted: Counter[str] = Counter()
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await loaded(pilot)
        await pilot.press("3", "down", "up")
        await pilot.pause()
        before = wizard.query_one(Preview).points
        count_calls(monkeypatch, painted, Compositor, "render_update")
        await pilot.press("down")
        await until(pilot, lambda: wizard.query_one(Preview).points != before, "the chart is another")
        await pilot.pause()
    assert painted == {"render_update": 1}


async def test_a_key_makes_the_figures_once_and_touches_no_other_part(
    app: LlmbApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: Counter[str] = Counter()
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await loaded(pilot)
        await choose(pilot, "workload", "llama3.1@25.04/8b")
        await pilot.press("3")
        wizard.query_one("#steps").focus()
        await pilot.press("7")
        await pilot.pause()
        count_calls(monkeypatch, calls, PlanFigures, "rows")
        count_calls(monkeypatch, calls, Static, "update")
        count_calls(monkeypatch, calls, Widget, "refresh")
        await pilot.press("5")
        await pilot.pause()
        seen = dict(calls)
    assert seen.pop("rows of PlanFigures#None") == 1
    assert set(seen) == {"refresh of TextField#steps", "refresh of PlanFigures#None"}


async def test_a_key_makes_the_rows_of_a_list_that_it_changes(app: LlmbApp, monkeypatch: pytest.MonkeyPatch) -> None:
    made: Counter[str] = Counter()
    async with app.run_test(size=(120, 40)) as pilot:
        await loaded(pilot)
        await pilot.press("3", "down", "up")
        await pilot.pause()
        for kind in (ChoiceList, Rail, KeyBar):
            count_calls(monkeypatch, made, kind, "render_line")
        count_calls(monkeypatch, made, Input, "refresh")
        await pilot.press("down")
        await pilot.pause()
    assert made == {"render_line of ChoiceList#None": 2, "render_line of Rail#None": 1}


@pytest.mark.parametrize("size", [(120, 36), (80, 24)])
async def test_frames_of_changes_add_up_to_the_whole_screen(
    app: LlmbApp, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    frames = Frames(app, monkeypatch)
    keys = "3 down down up tab 7 backspace tab 4 l tab tab 2 escape o down space left right p p slash x escape 1 end 7"
    async with app.run_test(size=size) as pilot:
        await loaded(pilot)
        for key in keys.split():
            await pilot.press(key)
            await pilot.pause()
            assert frames.cells == frames.whole(), key


async def test_chart_shown_after_scrolling_the_script_is_painted(
    app: LlmbApp, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sizes of its parts are queried between two layouts."""
    services.clusters.save(EOS)
    frames = Frames(app, monkeypatch)
    async with app.run_test(size=(120, 30)) as pilot:
        wizard = await loaded(pilot)
        await pilot.press("6")
        await know(pilot, wizard, replace(state_of(wizard).cluster, prepared=draft_of(plan_of(wizard))))
        for key in "p p down p".split():
            await pilot.press(key)
            await pilot.pause()
            assert frames.cells == frames.whole(), key


def is_active(timer: Any) -> bool:
    """True if a timer is active. Textual also keeps timers that have fired."""
    return timer._active.is_set() and not (timer._task and timer._task.done())


def active_timers(screen: Screen[Any]) -> list[str]:
    """Active timers of a screen and its widgets."""
    return [
        f"{type(node).__name__} {timer!r}"
        for node in screen.walk_children(with_self=True)
        for timer in node._timers
        if is_active(timer)
    ]


async def test_no_timer_runs_on_a_hidden_screen(app: LlmbApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        wizard = await loaded(pilot)
        assert active_timers(wizard)
        await pilot.press("J")
        await on_top(pilot, JobsScreen)
        jobs = app.screen
        await until(pilot, lambda: not active_timers(wizard), "the wizard rests")
        assert active_timers(jobs)
        await pilot.press("question_mark")
        await on_top(pilot, HelpDialog)
        await until(pilot, lambda: not active_timers(jobs), "the list rests")
        await pilot.press("escape", "escape")
        await on_top(pilot, WizardScreen)
        assert active_timers(wizard)
