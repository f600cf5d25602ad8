"""Profile, trace, checkpoints and tokenizer: switched at Scale, options; shown at Review."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from textual.widgets import Input

from llmb_tui.plan.make import plan
from llmb_tui.plan.selection import NOTHING_MORE, OPTIONS, RunOptions, Selection
from llmb_tui.services import Services
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.panes.review import confirmation_question, review_facts
from llmb_tui.ui.panes.scale import ScalePane
from llmb_tui.ui.screens.wizard import WizardScreen
from llmb_tui.ui.widgets.choices import Switches
from llmb_tui.ui.widgets.texts import Paragraphs
from llmb_tui.ui.wizard_effects import read_start
from llmb_tui.wizard.state import ClusterState
from llmb_tui.wizard.steps import StepId
from tests.kit.pilot import SIZE, at_scale, by_head, choose, loaded, marks, on_screen, plan_of, step_of
from tests.kit.runs import CATALOG
from tests.ui.wizard.found_states import EOS, draft_of, state_at

SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
LLAMA = Selection("llama3.1", "25.04", "8b", "h100", "bf16", 8)
NEMOTRON = "nemotron4@25.04/15b"
GROK = "grok1@25.02/314b"


def rows(wizard: WizardScreen) -> list[str]:
    return [str(option.prompt).strip() for option in wizard.query_one(Switches).options]


def reviewed(selection: Selection, notes: tuple[str, ...] = ()) -> dict[str, str]:
    draft = replace(draft_of(plan(CATALOG, selection)), notes=notes)
    return by_head(review_facts(state_at(StepId.REVIEW, selection, cluster=ClusterState(prepared=draft))))


@SIZES
async def test_a_profile_by_keyboard(services: Services, size: tuple[int, int]) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=size) as pilot:
        wizard = await at_scale(pilot, NEMOTRON)
        assert not wizard.query_one("#profile-row").display
        await pilot.press("o", "space")
        assert (plan_of(wizard).options, plan_of(wizard).steps) == (RunOptions(False, True, 20, 25), 25)
        await pilot.press("tab", "5", "tab", "1", "2")
        assert wizard.query_one("#profile-stop", Input).has_focus
        assert (plan_of(wizard).options, plan_of(wizard).steps) == (RunOptions(False, True, 5, 12), 12)
        assert "[x] Nsight profile   steps 5–12" in rows(wizard)
        await pilot.pause()
        text = on_screen(app)
        assert "profile from" in text
        assert "set by options" in text
        await pilot.press("o")
        assert (
            plan_of(wizard).options.profile_stop == 12
        )  # in a field, a letter is neither a step nor a key of the pane
        await pilot.press("shift+tab", "shift+tab", "space")
        assert (plan_of(wizard).options, plan_of(wizard).steps) == (NOTHING_MORE, 50)
        await pilot.press("space")
        assert plan_of(wizard).options == RunOptions(False, True, 5, 12)


@SIZES
async def test_moved_switch_is_on_the_screen(services: Services, size: tuple[int, int]) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=size) as pilot:
        wizard = await at_scale(pilot, NEMOTRON)
        await pilot.press("o", "space")
        await pilot.pause()
        switches = wizard.query_one(Switches).region
        assert wizard.query_one(ScalePane).region.contains_region(switches)
        text = on_screen(app)
        assert "[x] Nsight profile   steps 20–25" in text
        assert "NCCL trace – not in this recipe" in text


async def test_small_screen_hides_options_until_one_is_set(app: LlmbApp) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        wizard = await at_scale(pilot, NEMOTRON)
        assert not wizard.query_one("#extras").display
        assert "o: profile, trace, checkpoints" in on_screen(app)
        await pilot.press("o")
        assert wizard.query_one("#extras").display
    again = LlmbApp(Services(app.services.places))
    again.services.runs.save(draft_of(plan(CATALOG, replace(LLAMA, options=RunOptions(profile=True)))).run)
    async with again.run_test(size=(80, 24)) as pilot:
        wizard = await loaded(pilot)
        await pilot.press("3")
        await pilot.pause()
        assert wizard.query_one("#extras").display


async def test_moving_over_switches_changes_nothing_and_enter_continues(app: LlmbApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        wizard = await at_scale(pilot, NEMOTRON)
        await pilot.press("o", "down", "up", "end", "home")
        assert plan_of(wizard).options == NOTHING_MORE
        await pilot.press("enter")
        assert step_of(pilot) is StepId.CLUSTER


async def test_cursor_skips_unsupported_switches(app: LlmbApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        wizard = await at_scale(pilot, NEMOTRON)
        await pilot.press("o", "down", "space")
        assert plan_of(wizard).options == RunOptions(save_checkpoint=True)
        assert "[ ] hub tokenizer – not in this recipe" in rows(wizard)


async def test_option_that_became_impossible_is_flagged_and_can_be_switched_off(app: LlmbApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        wizard = await at_scale(pilot, "llama3.1@25.04/8b")
        await pilot.press("o", "down", "space")
        assert plan_of(wizard).options.nccl_trace
        await pilot.press("1")
        wizard.body.pane.focus_first()
        await choose(pilot, "workload", NEMOTRON)
        assert marks(pilot)[StepId.SCALE] == "flagged"
        await pilot.press("3")
        assert "✗ [x] NCCL trace – not in this recipe" in rows(wizard)
        await pilot.press("o", "space")
        assert plan_of(wizard).options == NOTHING_MORE
        assert "[ ] NCCL trace – not in this recipe" in rows(wizard)
        assert plan_of(wizard).launchable


@SIZES
async def test_the_path_of_a_checkpoint_is_typed(services: Services, size: tuple[int, int]) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=size) as pilot:
        wizard = await at_scale(pilot, NEMOTRON)
        field = wizard.query_one("#load-checkpoint", Input)
        await pilot.press("o", "tab", *"/ckpt/no=1")
        assert field.has_focus
        assert (plan_of(wizard).options.load_checkpoint, plan_of(wizard).steps) == ("/ckpt/no=1", 1)
        await pilot.pause()
        assert "/ckpt/no=1" in on_screen(app)
        for _ in range(10):
            await pilot.press("backspace")
        assert plan_of(wizard).options == NOTHING_MORE


async def test_field_shows_the_reason_if_the_recipe_loads_no_checkpoint(app: LlmbApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        wizard = await at_scale(pilot, GROK)
        field = wizard.query_one("#load-checkpoint", Input)
        assert field.disabled
        assert field.placeholder == "– not in this recipe"


async def test_steps_that_were_typed_and_a_profile_contradict_each_other(app: LlmbApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        wizard = await at_scale(pilot, NEMOTRON)
        wizard.query_one("#steps", Input).focus()
        await pilot.press(*"100")
        await pilot.press("escape", "o", "space", "right")
        assert step_of(pilot) is StepId.SCALE
        assert [problem.field for problem in plan_of(wizard).problems if problem.severity == "error"] == ["steps"]


@pytest.mark.parametrize(
    ("selection", "said"),
    [
        (LLAMA, "our script: NVIDIA's settings, given to NeMo by our script"),
        (
            Selection("grok1", "25.02", "314b", "h100", "bf16", 512),
            "our script: NVIDIA's command and settings, launched by",
        ),
    ],
    ids=["nemo2", "hydra"],
)
def test_review_names_the_launch_method_and_the_alternative(selection: Selection, said: str) -> None:
    text = reviewed(selection)["launch"]
    assert text.startswith(said)
    assert text.endswith("the alternative is NVIDIA's scripts")


def test_review_names_a_tokenizer_from_the_hub() -> None:
    hub = reviewed(replace(LLAMA, options=RunOptions(hub_tokenizer=True)))
    assert hub["tokenizer"].startswith("The tokenizer is meta-llama/Meta-Llama-3-8B, from the model hub.")
    assert "tokenizer" not in reviewed(LLAMA)


def test_review_names_options_and_their_effects() -> None:
    options = RunOptions(profile=True, save_checkpoint=True)
    said = reviewed(replace(LLAMA, scale=16, options=options))
    assert said["steps"].startswith("25, ")
    assert "the verdict will be WARN" in said["profile"]
    assert "about 105 GB" in said["save"]
    assert "--profile --save-checkpoint" in said["command"]
    assert set(reviewed(LLAMA)).isdisjoint(option.word for option in OPTIONS)


def test_review_shows_notes_of_the_prepared_job() -> None:
    assert reviewed(LLAMA, notes=("Tasks are [b]pinned.",))["note"] == "Tasks are [b]pinned."


def test_confirmation_names_the_options() -> None:
    with_both = replace(LLAMA, scale=16, options=RunOptions(nccl_trace=True, save_checkpoint=True))
    with_options, plain = (state_at(StepId.REVIEW, chosen).proposal.request for chosen in (with_both, LLAMA))
    assert with_options is not None
    assert plain is not None
    assert "with NCCL trace and save checkpoint" in str(confirmation_question(with_options))
    assert "with" not in str(confirmation_question(plain))


@SIZES
async def test_review_has_room_for_options_and_script(services: Services, size: tuple[int, int]) -> None:
    services.clusters.save(EOS)
    app = LlmbApp(services)
    async with app.run_test(size=size) as pilot:
        wizard = await at_scale(pilot, "llama3.1@25.04/8b")
        await pilot.press("o", "space", "6")
        await pilot.pause()
        facts = wizard.query_one("#pane-review Paragraphs", Paragraphs)
        assert {"launch", "profile"} <= set(by_head(facts.parts))
        assert "launch" in on_screen(app)
        assert wizard.query_one("#script").region.height >= 4


def test_options_of_the_last_run_are_restored(services: Services) -> None:
    chosen = plan(CATALOG, replace(LLAMA, options=RunOptions(profile=True, profile_stop=30)))
    services.runs.save(draft_of(chosen).run)
    assert read_start(services)[0].answers.options == RunOptions(profile=True, profile_stop=30)


def test_run_that_was_saved_without_options_is_read(services: Services) -> None:
    run = draft_of(plan(CATALOG, LLAMA)).run
    services.runs.save(run)
    path = services.runs.folder(run.id) / "run.json"
    document = json.loads(path.read_text())
    del document["plan"]["options"], document["plan"]["selection"]["options"]
    path.write_text(json.dumps(document))
    assert read_start(services)[0].answers.options == NOTHING_MORE
    assert services.runs.load(run.id) == run
