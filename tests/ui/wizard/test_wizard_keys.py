"""The wizard by keyboard: steps 1 to 3 and the preview."""

from __future__ import annotations

import asyncio
import errno
import threading
from dataclasses import replace
from typing import Any

import pytest
from textual.events import AppBlur, AppFocus
from textual.pilot import Pilot
from textual.widgets import Input, Static

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.load import load_presets
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.errors import LlmbError
from llmb_tui.services import Services
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.dialogs import Failure
from llmb_tui.ui.panes.pane import Pane
from llmb_tui.ui.screens.disk import DiskScreen
from llmb_tui.ui.screens.wizard import WizardScreen
from llmb_tui.ui.screens.wizard_body import WizardBody
from llmb_tui.ui.widgets.choices import ChoiceList
from llmb_tui.ui.widgets.preview import Preview
from llmb_tui.ui.widgets.rail import Rail
from llmb_tui.wizard.events import Answered
from llmb_tui.wizard.steps import StepId
from tests.kit.pilot import (
    NEMOTRON,
    SIZE,
    at_scale,
    burst,
    choose,
    focused_list,
    loaded,
    marks,
    on_screen,
    on_top,
    plan_of,
    rows,
    step_of,
    text_of,
    until,
)
from tests.kit.runs import PLAN, make_run


@pytest.mark.parametrize("over", [("J", "q"), ("question_mark", "escape")], ids=["runs", "help"])
async def test_return_to_the_preview_types_into_no_hidden_field(app: LlmbApp, over: tuple[str, str]) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        wizard = await loaded(pilot)
        await choose(pilot, "workload", NEMOTRON)
        await pilot.press("3", "p")
        assert wizard.has_class("-preview")
        answers = wizard.state.answers if wizard.state else None
        await pilot.press(over[0])
        await until(pilot, lambda: app.screen is not wizard, "the covering screen")
        await pilot.press(over[1])
        await on_top(pilot, WizardScreen)
        await pilot.press("l", "escape", "down")
        assert wizard.state is not None
        assert (wizard.state.answers, wizard.state.step) == (answers, StepId.SCALE)
        await pilot.press("p", "6")
        assert wizard.state.step is StepId.REVIEW


async def test_return_from_another_window_focuses_the_first_field(app: LlmbApp) -> None:
    """A dialog about a failure opened meanwhile, while no widget had the focus."""
    async with app.run_test(size=SIZE) as pilot:
        wizard = await loaded(pilot)
        await choose(pilot, "workload", NEMOTRON)
        await pilot.press("3")
        app.post_message(AppBlur())
        await pilot.pause()
        app.push_screen(Failure(LlmbError("It failed.")))
        await on_top(pilot, Failure)
        app.post_message(AppFocus())
        await pilot.press("enter")
        await on_top(pilot, WizardScreen)
        assert wizard.focused is not None
        assert wizard.body.pane in wizard.focused.ancestors


async def test_a_skeleton_is_painted_before_the_presets_are_read(app: LlmbApp, monkeypatch: pytest.MonkeyPatch) -> None:
    may_read = threading.Event()

    def load_late(*args: Any) -> Catalog:
        may_read.wait()
        return load_presets(*args)

    monkeypatch.setattr("llmb_tui.catalog.load.load_presets", load_late)
    async with app.run_test() as pilot:
        wizard = app.screen
        assert isinstance(wizard, WizardScreen)
        assert [step.summary for step in wizard.query_one(Rail).steps] == [""] * 7
        may_read.set()
        await loaded(pilot)


async def test_first_pane_does_not_wait_for_the_others_and_keys_are_kept(
    app: LlmbApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_complete, complete = asyncio.Event(), WizardBody.complete

    async def complete_late(body: WizardBody) -> None:
        await may_complete.wait()
        await complete(body)

    monkeypatch.setattr(WizardBody, "complete", complete_late)
    async with app.run_test(size=SIZE) as pilot:
        wizard = app.screen
        assert isinstance(wizard, WizardScreen)
        await until(
            pilot, lambda: any(preview.figures.plan for preview in wizard.query(Preview)), "the choices are there"
        )
        assert len(wizard.query(Pane)) == 1
        await pilot.press("right")
        assert step_of(pilot) is StepId.WORKLOAD
        may_complete.set()
        await loaded(pilot)
        assert step_of(pilot) is StepId.HARDWARE


async def walk(pilot: Pilot[None], list_id: str, value: str) -> None:
    """Move the cursor of the focused list down to a choice."""
    result = focused_list(pilot, list_id)
    for _ in range(len(result.shown)):
        if result.chosen != value:
            await pilot.press("down")
    assert result.chosen == value


async def test_the_first_three_steps_by_keyboard(app: LlmbApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        wizard = await loaded(pilot)
        assert step_of(pilot) is StepId.WORKLOAD
        await walk(pilot, "workload", NEMOTRON)
        await pilot.press("enter")
        assert step_of(pilot) is StepId.HARDWARE
        await pilot.press("tab")
        await walk(pilot, "dtype", "fp8")
        await pilot.press("enter")
        assert step_of(pilot) is StepId.SCALE
        await walk(pilot, "scale", "64")
        await pilot.press("enter")
        assert step_of(pilot) is StepId.CLUSTER

        chosen = plan_of(wizard).selection
        assert (chosen.workload, chosen.size, chosen.gpu, chosen.dtype, chosen.scale) == (
            "nemotron4",
            "15b",
            "h100",
            "fp8",
            64,
        )
        assert [marks(pilot)[one] for one in list(StepId)[:4]] == ["done", "done", "done", "open"]


async def test_choice_that_became_impossible_is_crossed_in_its_list(app: LlmbApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        wizard = await loaded(pilot)
        wizard.dispatch(Answered("workload", "nemotron4-340b@25.12/340b"))
        wizard.dispatch(Answered("gpu", "gb200"))
        wizard.dispatch(Answered("workload", NEMOTRON))
        await pilot.press("2")
        assert [row for row in rows(app) if "✗ GB200" in row and " – " in row]


async def test_the_preview_follows_each_key(app: LlmbApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        wizard = await at_scale(pilot)
        seen = []
        for _ in range(3):
            await pilot.press("j")
            seen.append((plan_of(wizard).selection.scale, plan_of(wizard).estimate))
        assert [scale for scale, _ in seen] == [32, 64, 128]
        assert all(estimate is not None and estimate.method == "published" for _, estimate in seen)


async def test_the_preview_is_recomputed_before_the_key_is_done(app: LlmbApp) -> None:
    """The plan is computed in the watcher of the value, without a message in between."""
    async with app.run_test(size=SIZE) as pilot:
        wizard = await at_scale(pilot)
        field = wizard.query_one("#other-scale", Input)
        field.focus()
        await pilot.pause()
        field.insert_text_at_cursor("128")
        assert plan_of(wizard).selection.scale == 128


async def test_keys_that_come_together_act_in_their_order(app: LlmbApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        wizard = await at_scale(pilot)
        field = wizard.query_one("#other-scale", Input)
        field.focus()
        await pilot.pause()
        burst(pilot, "7", "backspace", "2", "4", "tab")
        await until(pilot, lambda: wizard.focused is not field, "the tab has left the field")
        assert field.value == "24"


async def test_going_back_keeps_every_answer(app: LlmbApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        wizard = await at_scale(pilot)
        await choose(pilot, "scale", "256")
        before = plan_of(wizard).selection
        await pilot.press("left", "left", "left")
        assert step_of(pilot) is StepId.WORKLOAD
        assert plan_of(wizard).selection == before
        await pilot.press("right", "right")
        assert step_of(pilot) is StepId.SCALE
        assert wizard.query_one("#scale ChoiceList", ChoiceList).chosen == "256"


async def test_disabled_choice_is_shown_with_its_reason_and_skipped(app: LlmbApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        wizard = await loaded(pilot)
        await choose(pilot, "workload", NEMOTRON)
        await pilot.press("right")
        gpus = wizard.query_one("#gpu", ChoiceList)
        texts = [str(option.prompt) for option in gpus.options]
        assert any("GB200" in text and "not in nemotron4@25.04" in text for text in texts)
        await pilot.press("down", "down", "down")
        assert gpus.chosen == "h100"


async def test_a_later_answer_that_became_impossible_is_flagged_and_kept(app: LlmbApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        wizard = await loaded(pilot)
        await choose(pilot, "workload", "nemotron4-340b@25.12/340b")
        await pilot.press("right")
        await choose(pilot, "gpu", "gb200")
        await pilot.press("left")
        await pilot.press("k")
        assert plan_of(wizard).selection.workload == "nemotron4"
        assert plan_of(wizard).selection.gpu == "gb200"
        assert marks(pilot)[StepId.HARDWARE] == "flagged"
        await pilot.press("right")
        assert "GB200" in text_of(app, "#issues").upper()
        await pilot.press("right")
        assert step_of(pilot) is StepId.HARDWARE, "an error at this step blocks the next step"
        await pilot.press("left")
        assert step_of(pilot) is StepId.WORKLOAD, "and never the previous step"


async def test_a_typed_scale_that_is_not_listed_is_previewed_and_flagged(app: LlmbApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        wizard = await at_scale(pilot)
        await pilot.press("tab", *"96")
        plan = plan_of(wizard)
        assert plan.selection.scale == 96
        assert plan.estimate is not None
        assert plan.estimate.method == "interpolated"
        assert marks(pilot)[StepId.SCALE] == "flagged"
        assert "96" in text_of(app, "#issues")
        await pilot.press("enter")
        assert step_of(pilot) is StepId.SCALE
        await pilot.press("escape", "left")
        assert step_of(pilot) is StepId.HARDWARE


async def test_letters_do_not_get_into_a_number(app: LlmbApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        wizard = await at_scale(pilot)
        await pilot.press("tab", *"q1y2")
        assert wizard.query_one("#other-scale", Input).value == "12"


async def test_leaving_the_preview_restores_the_focus(app: LlmbApp) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        wizard = await at_scale(pilot)
        steps = wizard.query_one("#steps", Input)
        steps.focus()
        await pilot.press("escape")
        left = app.focused
        assert left is not None
        await pilot.press("p", "p", "p")
        await until(pilot, lambda: app.focused is left, "the list of scales is there again")
        await pilot.press("p")
        await pilot.resize_terminal(120, 36)
        await until(pilot, lambda: app.focused is left, "the list has the focus if there is room for both")


async def test_failed_background_read_shows_only_a_message(
    app: LlmbApp, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dialog would reopen whenever it is closed, because the wizard reads when it becomes active."""

    def broken(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    async with app.run_test(size=SIZE) as pilot:
        wizard = await loaded(pilot)
        monkeypatch.setattr(type(services.runs), "listing", broken)
        await pilot.press("question_mark", "escape")
        await until(pilot, lambda: app._notifications, "the message is shown")
        assert app.screen is wizard


async def test_steps_and_time_limit_change_the_run(app: LlmbApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        wizard = await at_scale(pilot)
        default = plan_of(wizard)
        wizard.query_one("#steps", Input).focus()
        await pilot.press(*"100")
        assert plan_of(wizard).steps == 100
        assert plan_of(wizard).gpu_hours == (default.gpu_hours or 0) * 100 / default.steps
        await pilot.press("down", *"01:00:00")
        assert plan_of(wizard).time_limit == "01:00:00"
        await pilot.press("backspace", "backspace")
        assert marks(pilot)[StepId.SCALE] == "flagged"
        assert wizard.query_one(Preview).figures.plan is None


async def test_typing_filters_the_list_and_escape_restores_the_answer(app: LlmbApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        wizard = await loaded(pilot)
        await choose(pilot, "workload", NEMOTRON)
        choices = wizard.query_one("#workload ChoiceList", ChoiceList)
        await pilot.press("slash", *"gb300")
        assert [choice.value for choice in choices.shown] == ["nemotron4-340b@25.12/340b"]
        assert plan_of(wizard).selection.workload == "nemotron4-340b"
        await pilot.press("escape")
        assert choices.chosen == NEMOTRON
        assert len(choices.shown) > 1
        assert choices.has_focus
        await pilot.press("slash", *"gb300", "enter")
        assert choices.chosen == "nemotron4-340b@25.12/340b"
        assert step_of(pilot) is StepId.WORKLOAD


async def test_number_keys_go_to_a_step(app: LlmbApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await loaded(pilot)
        for number in "2367351":
            await pilot.press(number)
            assert step_of(pilot) == int(number)


async def test_the_choice_is_copied_as_a_command(app: LlmbApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await at_scale(pilot)
        await choose(pilot, "scale", "64")
        await pilot.press("y")
        await pilot.pause()
        assert app.clipboard == "llmb-tui plan -w nemotron4@25.04 -s 15b --gpu h100 -d bf16 --scale 64"


async def test_help_lists_the_keys_of_this_screen(app: LlmbApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await loaded(pilot)
        await pilot.press("question_mark")
        await pilot.pause()
        text = str(app.screen.query_one(Static).content)
        for tooltip in ("Copy the choice as a command line", "Filter the list", "Previous step; keeps answers"):
            assert tooltip in text
        await pilot.press("escape")
        assert isinstance(app.screen, WizardScreen)


async def test_every_key_has_an_id_and_a_tooltip(app: LlmbApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        wizard = await loaded(pilot)
        for number in "1234567":
            await pilot.press(number)
            for widget in (wizard, *wizard.query("*")):
                if not type(widget).__module__.startswith("llmb_tui"):
                    continue
                for binding in type(widget).__dict__.get("BINDINGS", ()):
                    assert binding.id, binding
                    assert binding.tooltip, binding


async def test_click_chooses_and_stays_at_the_step(app: LlmbApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        wizard = await loaded(pilot)
        await pilot.click("#workload ChoiceList", offset=(5, 2))
        await pilot.pause()
        assert plan_of(wizard).selection.workload == "llama3.1"
        assert step_of(pilot) is StepId.WORKLOAD
        await pilot.click(Rail, offset=(5, 5))
        assert step_of(pilot) is not StepId.WORKLOAD


async def test_the_palette_offers_the_actions_of_the_keys(app: LlmbApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        wizard = await loaded(pilot)
        titles = [command.title for command in app.get_system_commands(wizard)]
        assert {"Next", "Copy", "Runs", "Help", "Review", "Find"} <= set(titles)
        await pilot.press("ctrl+p", *"review", "enter")
        await pilot.pause()
        assert step_of(pilot) is StepId.REVIEW


async def test_disk_screen_opens_from_the_cluster_step(app: LlmbApp) -> None:
    profile = SlurmProfile(
        "eos", "127.0.0.1", "acct", "batch", "/lustre", port=9, known_hosts="/nonexistent", user="me"
    )
    async with app.run_test(size=SIZE) as pilot:
        wizard = await loaded(pilot)
        await pilot.press("4", "d")
        assert app.screen is wizard
        assert "Choose a cluster first." in [note.message for note in app._notifications]
    app.services.clusters.save(profile)
    again = LlmbApp(app.services)
    async with again.run_test(size=SIZE) as pilot:
        wizard = await loaded(pilot)
        wizard.dispatch(Answered("cluster", "eos"))
        await pilot.press("4", "d")
        await on_top(pilot, DiskScreen)
        await pilot.press("q")
        await until(pilot, lambda: again.screen is wizard, "the wizard is back")


async def test_run_again_from_the_list_restores_the_answers_of_the_run(app: LlmbApp) -> None:
    chosen = replace(PLAN.selection, scale=128, steps=60)
    app.services.runs.save(make_run("before", plan=replace(PLAN, selection=chosen), job_state="COMPLETED"))
    async with app.run_test(size=SIZE) as pilot:
        wizard = await loaded(pilot)
        await pilot.press("J")
        await until(pilot, lambda: "128×H100" in on_screen(app), "the run is listed")
        await pilot.press("a")
        await until(pilot, lambda: app.screen is wizard, "the wizard is back")
        assert step_of(pilot) is StepId.SCALE
        assert plan_of(wizard).selection == chosen
        assert "cluster eos is no longer saved" in " ".join(note.message for note in app._notifications)


async def test_runs_open_over_the_wizard_and_close_again(app: LlmbApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        wizard = await loaded(pilot)
        await pilot.press("J")
        await until(pilot, lambda: app.screen is not wizard, "the runs are shown")
        await pilot.press("q")
        await until(pilot, lambda: app.screen is wizard, "the wizard is back")


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=lambda size: f"{size[0]}x{size[1]}")
async def test_nothing_is_cut_off(app: LlmbApp, size: tuple[int, int]) -> None:
    async with app.run_test(size=size) as pilot:
        wizard = await loaded(pilot)
        await choose(pilot, "workload", NEMOTRON)
        for number in "1234567":
            await pilot.press(number)
            await pilot.pause()
            pane = wizard.body.pane
            assert pane.max_scroll_y == 0 or number == "1", f"step {number} needs scrolling"
            for widget in pane.query("ChoiceList, Input"):
                if widget.display and widget.parent is not None and widget.is_on_screen:
                    assert pane.region.x <= widget.region.x < widget.region.right <= pane.region.right
            preview = wizard.query_one(Preview).region
            assert not pane.region.overlaps(preview)
            assert preview.right <= size[0]
