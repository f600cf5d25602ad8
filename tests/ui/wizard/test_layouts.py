"""Custom layouts by keyboard and mouse: typed, or picked from the list of valid layouts."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from textual.pilot import Pilot
from textual.widgets import Button, Input

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.plan import layouts as layouts_room
from llmb_tui.plan.layouts import Layouts, layouts
from llmb_tui.plan.make import plan
from llmb_tui.plan.selection import Overrides, Selection
from llmb_tui.services import Services
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.panes.scale import LayoutPart, ScalePane
from llmb_tui.ui.screens import layouts as layouts_screen
from llmb_tui.ui.screens.layouts import LayoutsDialog
from llmb_tui.ui.screens.wizard import WizardScreen
from llmb_tui.ui.widgets.choices import ChoiceList
from llmb_tui.ui.widgets.texts import Paragraphs
from llmb_tui.ui.wizard_effects import read_start
from llmb_tui.wizard.answers import layout_text
from llmb_tui.wizard.steps import StepId
from tests.kit.pilot import (
    SIZE,
    at_scale,
    loaded,
    marks,
    on_screen,
    on_top,
    plan_of,
    step_of,
    summaries,
    text_of,
    until,
)
from tests.kit.runs import CATALOG
from tests.ui.wizard.found_states import draft_of

SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 36)], ids=["80x24", "120x36"])
NEMOTRON = Selection("nemotron4", "25.04", "15b", "h100", "bf16", 16)


def overrides(wizard: WizardScreen) -> Overrides:
    return plan_of(wizard).selection.overrides


def field(wizard: WizardScreen, name: str) -> Input:
    return wizard.query_one(f"#layout-{name}", Input)


def checks_text(wizard: WizardScreen) -> str:
    """The text below the fields, as one line."""
    return " ".join(str(wizard.query_one("#layout-checks", Paragraphs).render()).split())


async def open_list(pilot: Pilot[None]) -> LayoutsDialog:
    """The list of valid layouts, once it is loaded."""
    await on_top(pilot, LayoutsDialog)
    dialog = pilot.app.screen
    assert isinstance(dialog, LayoutsDialog)
    await until(pilot, lambda: not dialog.query_one("#take", Button).disabled, "the layouts are compared")
    await pilot.pause()
    return dialog


@SIZES
async def test_l_opens_the_layout_fields_with_the_recipes_values(services: Services, size: tuple[int, int]) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=size) as pilot:
        wizard = await at_scale(pilot)
        assert not wizard.query_one(LayoutPart).display
        await pilot.press("l")
        await pilot.pause()
        assert field(wizard, "tp").has_focus
        shown = {one.id: one.placeholder for one in wizard.query_one(LayoutPart).query(Input)}
        assert list(shown.values()) == ["2", "1", "1", "1", "1", "2", "64", "4096", "32"]
        assert wizard.query_one(ScalePane).region.contains_region(field(wizard, "layers").region)
        assert overrides(wizard) == Overrides()


@SIZES
async def test_each_key_updates_the_plan_and_the_problems(services: Services, size: tuple[int, int]) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=size) as pilot:
        wizard = await at_scale(pilot)
        await pilot.press("l", "3")
        assert overrides(wizard) == Overrides(tp=3)
        await pilot.pause()
        (wrong, *_) = [problem for problem in plan_of(wizard).problems if problem.severity == "error"]
        assert f"✗ error: {wrong.reason} {wrong.fix}" in checks_text(wizard)
        assert marks(pilot)[StepId.SCALE] == "flagged"
        checks = wizard.query_one("#layout-checks", Paragraphs)
        assert wizard.query_one(ScalePane).region.contains_region(checks.region), "the checks are visible"
        assert wrong.reason[:20] not in str(wizard.query_one("#issues").render()), "the reason is shown only once"
        await pilot.press("backspace", "4")
        assert "✗" not in checks_text(wizard)
        assert marks(pilot)[StepId.SCALE] != "flagged"


async def test_the_plan_follows_in_the_frame_of_the_key(app: LlmbApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        wizard = await at_scale(pilot)
        await pilot.press("l")
        field(wizard, "tp").insert_text_at_cursor("4")
        assert plan_of(wizard).parallelism.tp == 4


async def test_error_blocks_next_but_not_back(app: LlmbApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        wizard = await at_scale(pilot)
        await pilot.press("l", "3", "enter")
        assert step_of(pilot) is StepId.SCALE
        await pilot.press("escape", "left")
        assert step_of(pilot) is StepId.HARDWARE
        await pilot.press("right")
        assert field(wizard, "tp").value == "3"
        assert wizard.query_one(LayoutPart).display


async def test_unusual_layout_is_marked_and_can_be_run(app: LlmbApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        wizard = await at_scale(pilot)
        await pilot.press("l", "tab", "tab", "2")
        assert overrides(wizard) == Overrides(cp=2)
        await pilot.pause()
        (note,) = [problem for problem in plan_of(wizard).problems if problem.field == "cp"]
        assert f"· unusual: {note.reason}" in checks_text(wizard)
        assert plan_of(wizard).launchable


async def test_custom_layout_shows_difference_and_step_time(app: LlmbApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        wizard = await at_scale(pilot)
        await pilot.press("l", "4", "tab", "tab", "tab", "tab", "tab", "1")
        assert overrides(wizard) == Overrides(tp=4, mbs=1)
        await pilot.pause()
        assert "differs from the published layout: TP 4, not 2; MBS 1, not 2" in checks_text(wizard)
        assert "recipe default 2.66 s" in checks_text(wizard)


async def test_rail_and_review_name_a_custom_layout(app: LlmbApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        wizard = await at_scale(pilot)
        await pilot.press("l", "4", "enter")
        assert summaries(pilot)[StepId.SCALE] == "16 GPUs · custom layout"
        await pilot.press("6")
        await pilot.pause()
        facts = wizard.query_one("#pane-review Paragraphs", Paragraphs).parts
        words = "\n".join(f"{head} {body}" for head, body in facts)
        assert "differs from the published layout: TP 4, not 2" in words
        await pilot.press("3", "l", "backspace", "2")
        assert summaries(pilot)[StepId.SCALE] == "16 GPUs", "a typed value equal to the recipe's counts as unchanged"


async def test_one_key_or_click_restores_the_recipes_layout(app: LlmbApp) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await at_scale(pilot)
        for way in ("key in the field", "key in a list", "button", "mouse"):
            wizard.body.pane.focus_first()
            await pilot.press("l", "4", "tab", "2")
            assert overrides(wizard) == Overrides(tp=4, pp=2), way
            if way == "key in a list":
                await pilot.press("escape")
            if way == "button":
                wizard.query_one("#recipes-layout", Button).focus()
            await pilot.pause()
            if way == "mouse":
                await pilot.click("#recipes-layout")
            else:
                await pilot.press("enter" if way == "button" else "ctrl+r")
            await pilot.pause()
            assert overrides(wizard) == Overrides(), way
            assert {one.value for one in wizard.query_one(LayoutPart).query(Input)} == {""}, way


async def test_the_parts_open_by_a_click_on_their_names(app: LlmbApp) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        wizard = await at_scale(pilot)
        for name, part in (("layout", "#layout"), ("options", "#extras"), ("procedure", "#procedures")):
            assert not wizard.query_one(part).display
            wizard.query_one(f"#{name}-label").scroll_visible(animate=False)
            await pilot.pause()
            await pilot.click(f"#{name}-label")
            await pilot.pause()
            assert wizard.query_one(part).display, name


async def test_the_command_names_the_layout(app: LlmbApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await at_scale(pilot)
        await pilot.press("l", "4", "escape", "y")
        await pilot.pause()
        assert app.clipboard == "llmb-tui plan -w nemotron4@25.04 -s 15b --gpu h100 -d bf16 --scale 16 --tp 4"


async def test_layout_of_the_last_run_is_restored(services: Services) -> None:
    chosen = replace(NEMOTRON, overrides=Overrides(tp=4, mbs=1))
    services.runs.save(draft_of(plan(CATALOG, chosen)).run)
    assert read_start(services)[0].answers.overrides == chosen.overrides
    app = LlmbApp(Services(services.places))
    async with app.run_test(size=(80, 24)) as pilot:
        wizard = await loaded(pilot)
        await pilot.press("3")
        await pilot.pause()
        assert wizard.query_one(LayoutPart).display
        assert (field(wizard, "tp").value, field(wizard, "mbs").value, field(wizard, "pp").value) == ("4", "1", "")


@SIZES
async def test_the_list_ranks_the_valid_layouts_and_marks_the_published_one(
    services: Services, size: tuple[int, int]
) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=size) as pilot:
        await at_scale(pilot)
        await pilot.press("ctrl+l")
        dialog = await open_list(pilot)
        result = layouts(CATALOG, NEMOTRON)
        choices = dialog.query_one("#choices", ChoiceList)
        assert [one.value for one in choices.shown] == [layout_text(one.overrides) for one in result.best]
        assert [one.value for one in choices.shown if one.published] == [""]
        assert choices.chosen == "", "the recipe's own is the one that was asked for"
        text = on_screen(app)
        assert f"the fastest {len(result.best)} of {result.valid:,} valid layouts" in text
        assert "● published" in text
        for button in ("#take", "#leave"):
            assert dialog.query_one(".dialog").content_region.contains_region(dialog.query_one(button).region)
        assert all(len(str(option.prompt)) <= choices.content_size.width for option in choices.options)


async def test_a_layout_from_the_list_fills_the_fields(app: LlmbApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        wizard = await at_scale(pilot)
        await pilot.press("l", "8", "ctrl+l")
        dialog = await open_list(pilot)
        best = layouts(CATALOG, NEMOTRON).best
        wanted = next(one for one in best if len(one.overrides.set_fields()) > 1)
        choices = dialog.query_one("#choices", ChoiceList)
        while choices.chosen != layout_text(wanted.overrides):
            await pilot.press("down")
        about = " ".join(f"{head}{body}" for head, body in dialog.query_one("#about-choice", Paragraphs).parts)
        assert wanted.memory is not None
        assert wanted.memory.verdict in about
        assert all(words in about for words in wanted.unusual)
        await pilot.press("enter")
        await on_top(pilot, WizardScreen)
        assert overrides(wizard) == wanted.overrides
        assert plan_of(wizard).estimate == wanted.estimate
        given = {name.replace("_", "-"): str(value) for name, value in wanted.overrides.set_fields().items()}
        for name in ("tp", "pp", "cp", "ep", "vp", "mbs", "gbs", "seq-len", "layers"):
            assert field(wizard, name).value == given.get(name, ""), name


async def test_the_published_layout_is_taken_from_the_list(app: LlmbApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        wizard = await at_scale(pilot)
        await pilot.press("l", "8", "ctrl+l")
        dialog = await open_list(pilot)
        choices = dialog.query_one("#choices", ChoiceList)
        choices.highlighted = next(index for index, one in enumerate(choices.shown) if one.published)
        await pilot.press("enter")
        await on_top(pilot, WizardScreen)
        assert overrides(wizard) == Overrides()
        assert field(wizard, "tp").value == ""


async def test_the_list_opens_and_answers_by_mouse(app: LlmbApp) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await at_scale(pilot)
        await pilot.press("l")
        await pilot.pause()
        await pilot.click("#valid-layouts")
        await open_list(pilot)
        await pilot.click("#choices", offset=(10, 3))
        await pilot.click("#take")
        await on_top(pilot, WizardScreen)
        assert overrides(wizard) == layouts(CATALOG, NEMOTRON).best[3].overrides


async def test_leaving_the_list_changes_nothing(app: LlmbApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        wizard = await at_scale(pilot)
        await pilot.press("l", "4")
        for keys in (("escape",), ("tab", "tab", "enter")):
            await pilot.press("ctrl+l")
            await open_list(pilot)
            await pilot.press("down", *keys)
            await on_top(pilot, WizardScreen)
            assert overrides(wizard) == Overrides(tp=4), keys


class Held:
    """A comparison of layouts that waits until the test releases it."""

    def __init__(self) -> None:
        self.may_go = threading.Event()
        self.gone = threading.Event()

    def __call__(self, catalog: Catalog, selection: Selection) -> Layouts:
        self.may_go.wait()
        result = layouts(catalog, selection)
        self.gone.set()
        return result


async def test_long_comparison_shows_progress_and_can_be_cancelled(
    app: LlmbApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held()
    monkeypatch.setattr(layouts_room, "layouts", held)
    monkeypatch.setattr(layouts_screen, "PATIENCE_S", 0.0)
    async with app.run_test(size=SIZE) as pilot:
        wizard = await at_scale(pilot)
        await pilot.press("ctrl+l")
        await on_top(pilot, LayoutsDialog)
        await until(pilot, lambda: "comparing layouts for" in text_of(app, "#choices-said"), "the duration is shown")
        await pilot.press("enter")
        assert isinstance(app.screen, LayoutsDialog), "the list has no layout yet"
        await pilot.press("escape")
        await on_top(pilot, WizardScreen)
        held.may_go.set()
        await until(pilot, held.gone.is_set, "the thread has ended")
        await pilot.press("l", "4")
        assert overrides(wizard) == Overrides(tp=4), "a late comparison is dropped"


def empty(catalog: Catalog, selection: Selection) -> Layouts:  # noqa: ARG001 - the room's
    return Layouts((), 0)


def broken(catalog: Catalog, selection: Selection) -> Layouts:  # noqa: ARG001 - the room's
    raise ValueError("this layout is nothing")


async def test_empty_list_and_failure_show_the_reason(app: LlmbApp, monkeypatch: pytest.MonkeyPatch) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        await at_scale(pilot)
        for compare, words in ((empty, "No layout divides this number of GPUs"), (broken, "ValueError")):
            monkeypatch.setattr(layouts_room, "layouts", compare)
            await pilot.press("ctrl+l")
            await on_top(pilot, LayoutsDialog)
            await until(pilot, lambda words=words: words in text_of(app, "#choices-said"), "the reason is shown")
            await pilot.press("enter")
            assert isinstance(app.screen, LayoutsDialog)
            await pilot.press("escape")
            await on_top(pilot, WizardScreen)
