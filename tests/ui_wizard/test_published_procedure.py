"""The published procedure by keyboard: chosen at Scale, options; its command at Review, copied, and submitted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Static

from llmb_tui.catalog.load import load_presets
from llmb_tui.launch.published.command import differences
from llmb_tui.plan.make import plan
from llmb_tui.plan.plan import Problem
from llmb_tui.plan.selection import Selection
from llmb_tui.store.paths import Places
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.dialogs import Confirm
from llmb_tui.ui.found import Found, Subject
from llmb_tui.ui.panes.review import review_facts
from llmb_tui.ui.panes.scale import ScalePane
from llmb_tui.ui.published import NOTHING_KNOWN, PublishedLaunch, published_launch
from llmb_tui.ui.screens.keys import KeysDialog
from llmb_tui.ui.screens.wizard import WizardScreen
from llmb_tui.ui.start import read_start
from llmb_tui.ui.view import View
from llmb_tui.ui.widgets.paragraphs import Paragraphs
from llmb_tui.ui.widgets.rail import Rail
from llmb_tui.ui.widgets.scroller import Scroller
from llmb_tui.ui.work import Learned
from llmb_tui.wizard.answers import Answers
from llmb_tui.wizard.steps import StepId
from tests.ui_wizard.found_states import EOS, INSTALLED, draft_of
from tests.ui_wizard.published_pilot import (
    CHOSEN,
    LLAMA,
    RECIPE,
    Open,
    at_procedures,
    at_review,
    chosen,
    command,
    made,
    words,
)
from tests.ui_wizard.test_wizard_text import on_screen
from tests.ui_wizard.wizard_pilot import choose, loaded, marks, on_top, until

SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
MOUNTED = replace(EOS, name="mounted", mounts=("/data:/data",))
MOUNTS_REASON = "launch.sh takes no further mounts."


@pytest.fixture
def services(tmp_path: Path) -> Open:
    found = Open(Places(tmp_path / "config", tmp_path / "state"))
    found.save_profile(EOS)
    return found


def scale_words(wizard: WizardScreen) -> str:
    return next(one.summary for one in wizard.query_one(Rail).steps if one.step is StepId.SCALE)


def keys_of(wizard: WizardScreen) -> set[str]:
    return {key for key, active in wizard.active_bindings.items() if active.enabled and active.binding.show}


@SIZES
async def test_it_is_chosen_by_keyboard(services: Open, size: tuple[int, int]) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=size) as pilot:
        wizard = await at_procedures(pilot)
        assert chosen(wizard) == "direct"
        assert wizard.query_one(ScalePane).region.contains_region(wizard.query_one("#procedure").region)
        await pilot.press("down")
        assert chosen(wizard) == "recipe"
        text = on_screen(app)
        assert "▸ published  NVIDIA's own scripts, v25.04" in text
        assert "direct     our script in the container" in text
        await pilot.press("enter")
        assert scale_words(wizard) == "8 GPUs · published procedure"
        await pilot.press("3", "P", "up")
        assert chosen(wizard) == "direct"
        assert scale_words(wizard) == "8 GPUs"


async def test_a_small_screen_has_it_behind_a_key_until_it_is_chosen(services: Open) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(80, 24)) as pilot:
        wizard = await loaded(pilot)
        await choose(pilot, "workload", LLAMA)
        await pilot.press("3")
        await pilot.pause()
        assert not wizard.query_one("#procedures").display
        assert "P: direct or published" in on_screen(app)
        await pilot.press("P")
        assert wizard.query_one("#procedures").display


@SIZES
async def test_what_it_cannot_do_for_the_cluster_disables_it_with_the_whole_reason(
    services: Open, size: tuple[int, int]
) -> None:
    services.save_profile(replace(EOS, mounts=MOUNTED.mounts))
    app = LlmbApp(services)
    async with app.run_test(size=size) as pilot:
        wizard = await at_procedures(pilot)
        await pilot.press("down")
        assert chosen(wizard) == "direct"
        assert made(wizard).launchable
        assert "published  – launch.sh takes" in on_screen(app)
        (part,) = wizard.query_one("#not-published", Paragraphs).parts
        assert str(part[1]).startswith(MOUNTS_REASON)
        assert wizard.query_one(ScalePane).region.contains_region(wizard.query_one("#not-published").region)


async def test_a_cluster_that_makes_it_impossible_flags_the_answer_and_keeps_it(services: Open) -> None:
    services.save_profile(MOUNTED)
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await at_procedures(pilot)
        await pilot.press("down", "right")
        await choose(pilot, "clusters", "mounted")
        assert marks(wizard)[StepId.SCALE] == "flagged"
        assert MOUNTS_REASON in [one.reason for one in made(wizard).problems]
        await pilot.press("3")
        assert "✗ published" in on_screen(app)
        await pilot.press("6")
        await pilot.pause()
        assert "cannot be launched this way" in str(wizard.query_one("#script-text", Static).content)
        assert "copies the command" not in on_screen(app)
        await pilot.press("y")
        assert app.clipboard.endswith("--procedure recipe")  # the choice, not what would not do what is asked for
        assert "s" not in keys_of(wizard)
        await pilot.press("enter")
        assert MOUNTS_REASON in [note.message[: len(MOUNTS_REASON)] for note in app._notifications]
        assert app.screen is wizard
        await pilot.press("3", "P", "up")
        assert marks(wizard)[StepId.SCALE] != "flagged"


async def test_steps_that_the_script_does_not_take_stand_against_it_at_once(services: Open) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await at_procedures(pilot, "grok1@25.02/314b")
        await pilot.press("down")
        assert chosen(wizard) == "recipe"
        wizard.query_one("#steps").focus()
        await pilot.press("2", "0")
        (reason,) = (one.reason for one in made(wizard).problems if one.severity == "error")
        assert reason == "launch.sh takes no number of steps, so it would not be 20."


@SIZES
async def test_review_shows_the_command_to_the_letter_and_copies_it(services: Open, size: tuple[int, int]) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=size) as pilot:
        wizard = await at_procedures(pilot)
        await at_review(pilot, wizard, "down")
        assert str(wizard.query_one("#script-text", Static).content) == command()
        facts = words(wizard.query_one("#pane-review Paragraphs", Paragraphs).parts)
        assert facts["procedure"] == "published: NVIDIA's setup.sh and launch.sh of v25.04, unchanged"
        assert facts["cost"] == "1.4 GPU-hours + start-up"
        assert facts["submit"] == (
            "launch.sh is started on the login node, detached and at most once; it may make up to three jobs"
        )
        assert "Hugging Face token" in facts["token"]
        assert "first" not in facts
        assert wizard.query_one("#script", Scroller).region.height >= 4
        assert wizard.query_one("#pane-review").region.contains_region(wizard.query_one("#script").region)
        await pilot.press("y")
        assert app.clipboard == command()


@SIZES
async def test_under_the_command_stand_the_differences_and_what_becomes_of_the_token(
    services: Open, size: tuple[int, int]
) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=size) as pilot:
        wizard = await at_procedures(pilot)
        await at_review(pilot, wizard, "down")
        said = [str(body) for _, body in wizard.query_one("#script-more", Paragraphs).parts if str(body)]
        assert RECIPE.published is not None
        assert said == [*differences(RECIPE), *RECIPE.published.notes]
        assert any("pyarrow" in one for one in said)
        await pilot.press("end")
        await pilot.pause()
        assert "vboost" in on_screen(app)


async def test_the_direct_procedure_is_submitted_and_copied_as_before(services: Open) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await at_procedures(pilot)
        await pilot.press("4", "c")
        await until(pilot, lambda: marks(wizard)[StepId.CLUSTER] == "done", "the checks are made")
        found = {"steps": INSTALLED, "draft": draft_of(made(wizard))}
        wizard.post_message(Learned(Subject(EOS, made(wizard).selection), "render", found, over=True))
        await pilot.pause()
        await pilot.press("6")
        assert {"s", "y"} <= keys_of(wizard)
        assert "#!/bin/bash" in str(wizard.query_one("#script-text", Static).content)
        assert wizard.query_one("#script-more", Paragraphs).parts == ()
        await pilot.press("y")
        assert app.clipboard.startswith("llmb-tui submit ")
        assert "--procedure" not in app.clipboard
        await pilot.press("s")
        await on_top(pilot, Confirm)


async def test_the_cluster_is_looked_at_and_installed_for_it(services: Open) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await at_procedures(pilot)
        await pilot.press("down", "4", "c")
        await until(pilot, lambda: marks(wizard)[StepId.CLUSTER] == "done", "the checks are made")
        services.asked.clear()
        await pilot.press("5", "s")
        await until(pilot, lambda: ("installer", "recipe") in services.asked, "the install runs")
        assert {procedure for _, procedure in services.asked} == {"recipe"}
        await until(pilot, lambda: marks(wizard)[StepId.INSTALL] == "done", "the install is whole")
        await pilot.pause()
        assert "for the published procedure" in on_screen(app)


async def test_another_procedure_forgets_what_was_found_for_the_first_and_looks_again(services: Open) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await at_procedures(pilot)
        await at_review(pilot, wizard, "down")
        services.asked.clear()
        await pilot.press("3", "P", "up")
        assert marks(wizard)[StepId.INSTALL] == "open"
        assert wizard.bar.link == "connected"
        await until(pilot, lambda: ("preflight", "direct") in services.asked, "it is looked at again by itself")
        assert ("preflight", "recipe") not in services.asked


async def test_what_a_thread_still_says_of_the_other_procedure_is_not_taken(services: Open) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await at_procedures(pilot)
        await pilot.press("4", "c")
        await until(pilot, lambda: marks(wizard)[StepId.CLUSTER] == "done", "the checks are made")
        subject = Subject(EOS, made(wizard).selection, "recipe")
        wizard.post_message(Learned(subject, "install", {"steps": INSTALLED}, over=True))
        await pilot.pause()
        assert marks(wizard)[StepId.INSTALL] == "open"


async def test_the_keys_are_those_of_the_procedure(services: Open) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        await at_procedures(pilot)
        await pilot.press("down", "5", "K")
        await on_top(pilot, KeysDialog)
        await pilot.pause()
        assert "Hugging Face token  needed" in on_screen(app)


def reviewed(selection: Selection, found: Found, published: PublishedLaunch = NOTHING_KNOWN) -> dict[str, str]:
    catalog = load_presets()
    chosen = plan(catalog, selection)
    answers = Answers(procedure="recipe")
    return words(review_facts(View(catalog, answers, answers, chosen, found, published)))


def test_review_says_what_comes_first_and_what_is_otherwise() -> None:
    profile = replace(EOS, cpus_per_task=8)
    launch = published_launch(RECIPE, plan(load_presets(), CHOSEN), profile)
    said = reviewed(CHOSEN, Found(profile=profile, selection=CHOSEN, procedure="recipe"), launch)
    assert said["first"] == "The cluster is not ready: step 4 comes first."
    assert said["! warning"].startswith("launch.sh pins no task to CPUs")
    assert "tokenizer" not in said


def test_what_hands_no_token_over_warns_of_none() -> None:
    nemotron = Selection("nemotron4", "25.04", "15b", "h100", "bf16", 16)
    catalog = load_presets()
    launch = published_launch(catalog.recipe("nemotron4", "25.04"), plan(catalog, nemotron), EOS)
    said = reviewed(nemotron, Found(profile=EOS, selection=nemotron, procedure="recipe"), launch)
    assert "submit" in said
    assert "token" not in said


@pytest.mark.parametrize("recipe", load_presets().recipes, ids=lambda recipe: recipe.id)
def test_every_recipe_of_ours_has_it_and_without_a_cluster_no_command(recipe: Any) -> None:
    assert published_launch(recipe, None, None) == NOTHING_KNOWN
    assert published_launch(recipe, None, EOS) == NOTHING_KNOWN


def test_a_recipe_without_it_and_a_profile_that_cannot_be_read_are_problems() -> None:
    made = plan(load_presets(), CHOSEN)
    lean = published_launch(replace(RECIPE, published=None), made, EOS)
    odd = published_launch(RECIPE, made, replace(EOS, env=(("ODD", "a\nb"),)))
    assert [problem.severity for problem in lean.problems + odd.problems] == ["error", "error"]
    assert lean.problems[0] == Problem(
        "procedure",
        "error",
        "No published procedure is known for llama3.1@25.04. Its preset has none.",
        "Choose the direct procedure.",
    )
    assert lean.command is odd.command is None


def test_who_comes_back_finds_the_procedure_of_the_last_run(services: Open) -> None:
    run = draft_of(plan(load_presets(), CHOSEN)).run
    services.runs().save(replace(run, procedure="recipe"))
    assert read_start(services).answers.procedure == "recipe"
