"""NVIDIA's scripts by keyboard: chosen at Scale, options; its command at Review, copied, and submitted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from textual.widgets import Static

from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.launch.policy import Policy
from llmb_tui.launch.prepared import LaunchPreview
from llmb_tui.launch.procedure_loader import preview
from llmb_tui.launch.upstream.command import differences
from llmb_tui.plan.make import plan
from llmb_tui.plan.plan import Problem
from llmb_tui.plan.selection import Selection
from llmb_tui.request import RunRequest
from llmb_tui.store.paths import UserPaths
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.dialogs import Confirm
from llmb_tui.ui.panes.review import review_facts
from llmb_tui.ui.panes.scale import ScalePane
from llmb_tui.ui.screens.keys import KeysDialog
from llmb_tui.ui.screens.wizard import WizardScreen
from llmb_tui.ui.widgets.texts import Paragraphs, Scroller
from llmb_tui.ui.wizard_effects import read_start, wizard_rules
from llmb_tui.wizard.events import StepsChanged
from llmb_tui.wizard.steps import StepId
from tests.kit.pilot import (
    by_head,
    choose,
    know,
    loaded,
    marks,
    on_screen,
    on_top,
    plan_of,
    request_of,
    state_of,
    summaries,
    until,
)
from tests.kit.runs import CATALOG
from tests.ui.wizard.found_states import EOS, INSTALLED, draft_of, state_at
from tests.ui.wizard.upstream_pilot import (
    CHOSEN,
    LLAMA,
    RECIPE,
    Open,
    at_procedures,
    at_review,
    chosen,
    command,
)

SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
MOUNTED = replace(EOS, name="mounted", mounts=("/data:/data",))
MOUNTS_REASON = "launch.sh cannot add mounts."


@pytest.fixture
def services(places: UserPaths) -> Open:
    found = Open(places)
    found.clusters.save(EOS)
    return found


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
        assert chosen(wizard) == "upstream"
        text = on_screen(app)
        assert "▸ NVIDIA's scripts  of v25.04" in text
        assert "direct                our own script" in text
        await pilot.press("enter")
        assert summaries(pilot)[StepId.SCALE] == "8 GPUs · NVIDIA's scripts"
        await pilot.press("3", "P", "up")
        assert chosen(wizard) == "direct"
        assert summaries(pilot)[StepId.SCALE] == "8 GPUs"


async def test_a_small_screen_has_it_behind_a_key_until_it_is_chosen(services: Open) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(80, 24)) as pilot:
        wizard = await loaded(pilot)
        await choose(pilot, "workload", LLAMA)
        await pilot.press("3")
        await pilot.pause()
        assert not wizard.query_one("#procedures").display
        assert "P: direct or NVIDIA's own" in on_screen(app)
        await pilot.press("P")
        assert wizard.query_one("#procedures").display


@SIZES
async def test_what_it_cannot_do_for_the_cluster_disables_it_with_the_whole_reason(
    services: Open, size: tuple[int, int]
) -> None:
    services.clusters.save(replace(EOS, mounts=MOUNTED.mounts))
    app = LlmbApp(services)
    async with app.run_test(size=size) as pilot:
        wizard = await at_procedures(pilot)
        await pilot.press("down")
        assert chosen(wizard) == "direct"
        assert plan_of(wizard).launchable
        assert "NVIDIA's scripts  – launch.sh cannot" in on_screen(app)
        (part,) = wizard.query_one("#not-published", Paragraphs).parts
        assert str(part[1]).startswith(MOUNTS_REASON)
        assert wizard.query_one(ScalePane).region.contains_region(wizard.query_one("#not-published").region)


async def test_a_cluster_that_makes_it_impossible_flags_the_answer_and_keeps_it(services: Open) -> None:
    services.clusters.save(MOUNTED)
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await at_procedures(pilot)
        await pilot.press("down", "right")
        await choose(pilot, "clusters", "mounted")
        assert marks(pilot)[StepId.SCALE] == "flagged"
        assert MOUNTS_REASON in [one.reason for one in plan_of(wizard).problems]
        await pilot.press("3")
        assert "✗ NVIDIA's scripts" in on_screen(app)
        await pilot.press("6")
        await pilot.pause()
        assert "cannot be launched this way" in str(wizard.query_one("#script-text", Static).content)
        assert "copies the command" not in on_screen(app)
        await pilot.press("y")
        assert app.clipboard.endswith("--procedure upstream")  # the choice, not what would not do what is asked for
        assert "s" not in keys_of(wizard)
        await pilot.press("enter")
        assert MOUNTS_REASON in [note.message[: len(MOUNTS_REASON)] for note in app._notifications]
        assert app.screen is wizard
        await pilot.press("3", "P", "up")
        assert marks(pilot)[StepId.SCALE] != "flagged"


async def test_steps_that_the_script_does_not_take_stand_against_it_at_once(services: Open) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await at_procedures(pilot, "grok1@25.02/314b")
        await pilot.press("down")
        assert chosen(wizard) == "upstream"
        wizard.query_one("#steps").focus()
        await pilot.press("2", "0")
        (reason,) = (one.reason for one in plan_of(wizard).problems if one.severity == "error")
        assert reason == "launch.sh cannot set the number of steps, so it would not be 20."


@SIZES
async def test_review_shows_the_command_to_the_letter_and_copies_it(services: Open, size: tuple[int, int]) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=size) as pilot:
        wizard = await at_procedures(pilot)
        await at_review(pilot, wizard, "down")
        assert str(wizard.query_one("#script-text", Static).content) == command()
        facts = by_head(wizard.query_one("#pane-review Paragraphs", Paragraphs).parts)
        assert facts["procedure"] == "NVIDIA's scripts: setup.sh and launch.sh of v25.04, unchanged"
        assert facts["cost"] == "1.4 GPU-hours + start-up"
        assert facts["submit"] == (
            "launch.sh is started on the login node, detached and at most once; it may submit up to three jobs"
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
        assert RECIPE.upstream is not None
        assert said == [*differences(RECIPE), *RECIPE.upstream.notes]
        assert any("pyarrow" in one for one in said)
        await pilot.press("end")
        await pilot.pause()
        assert "vboost" in on_screen(app)


async def test_the_direct_procedure_is_submitted_and_copied_as_before(services: Open) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await at_procedures(pilot)
        await pilot.press("4", "c")
        await until(pilot, lambda: marks(pilot)[StepId.CLUSTER] == "done", "the checks are made")
        found = replace(state_of(wizard).cluster, steps=INSTALLED, prepared=draft_of(plan_of(wizard)))
        await know(pilot, wizard, found)
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
        await at_procedures(pilot)
        await pilot.press("down", "4", "c")
        await until(pilot, lambda: marks(pilot)[StepId.CLUSTER] == "done", "the checks are made")
        services.stand_in.asked.clear()
        await pilot.press("5", "s")
        await until(pilot, lambda: ("installer", "upstream") in services.stand_in.asked, "the install runs")
        assert {procedure for _, procedure in services.stand_in.asked} == {"upstream"}
        await until(pilot, lambda: marks(pilot)[StepId.INSTALL] == "done", "the install is whole")
        await pilot.pause()
        assert "NVIDIA's scripts; " in on_screen(app)


async def test_another_procedure_forgets_what_was_found_for_the_first_and_looks_again(services: Open) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await at_procedures(pilot)
        await at_review(pilot, wizard, "down")
        services.stand_in.asked.clear()
        services.stand_in.may_answer.clear()
        await pilot.press("3", "P", "up")
        assert marks(pilot)[StepId.INSTALL] == "open"
        await until(pilot, lambda: wizard.bar.link == "connected", "the connection is as it was")
        services.stand_in.may_answer.set()
        await until(
            pilot, lambda: ("preflight", "direct") in services.stand_in.asked, "it is looked at again by itself"
        )
        assert ("preflight", "upstream") not in services.stand_in.asked


async def test_what_a_thread_still_says_of_the_other_procedure_is_not_taken(services: Open) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await at_procedures(pilot)
        await pilot.press("4", "c")
        await until(pilot, lambda: marks(pilot)[StepId.CLUSTER] == "done", "the checks are made")
        wizard.dispatch(StepsChanged(replace(request_of(wizard), procedure="upstream"), INSTALLED))
        assert marks(pilot)[StepId.INSTALL] == "open"


async def test_the_keys_are_those_of_the_procedure(services: Open) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        await at_procedures(pilot)
        await pilot.press("down", "5", "K")
        await on_top(pilot, KeysDialog)
        await pilot.pause()
        assert "Hugging Face token  needed" in on_screen(app)


def reviewed(selection: Selection, profile: SlurmProfile = EOS) -> dict[str, str]:
    return by_head(review_facts(state_at(StepId.REVIEW, selection, profile, "upstream")))


def test_review_says_what_comes_first_and_what_is_otherwise() -> None:
    said = reviewed(CHOSEN, replace(EOS, cpus_per_task=8))
    assert said["first"] == "The cluster is not ready: step 4 comes first."
    assert said["! warning"].startswith("launch.sh cannot pin tasks to CPUs")
    assert "tokenizer" not in said


def test_what_hands_no_token_over_warns_of_none() -> None:
    said = reviewed(Selection("nemotron4", "25.04", "15b", "h100", "bf16", 16))
    assert "submit" in said
    assert "token" not in said


@pytest.mark.parametrize("recipe", CATALOG.recipes, ids=lambda recipe: recipe.id)
def test_every_recipe_of_ours_has_it_and_without_a_cluster_no_command(recipe: Any) -> None:
    assert wizard_rules(CATALOG, Policy()).preview("upstream", recipe, None) == LaunchPreview(
        detail=f"of {recipe.upstream.tag}"
    )


def test_a_recipe_without_it_and_a_profile_that_cannot_be_read_are_problems() -> None:
    made = plan(CATALOG, CHOSEN)
    lean = preview(RunRequest(replace(RECIPE, upstream=None), made, EOS, "upstream"))
    odd = preview(RunRequest(RECIPE, made, replace(EOS, env=(("ODD", "a\nb"),)), "upstream"))
    assert [problem.severity for problem in lean.problems + odd.problems] == ["error", "error"]
    assert lean.problems[0] == Problem(
        "procedure",
        "error",
        "llama3.1@25.04 cannot be launched with NVIDIA's scripts. Its preset does not describe them.",
        "Choose our script.",
    )
    assert lean.command == odd.command == ""
    assert wizard_rules(CATALOG, Policy()).preview("upstream", replace(RECIPE, upstream=None), None) == lean


def test_who_comes_back_finds_the_procedure_of_the_last_run(services: Open) -> None:
    run = draft_of(plan(CATALOG, CHOSEN)).run
    services.runs.save(replace(run, procedure="upstream"))
    assert read_start(services)[0].answers.procedure == "upstream"
