"""NVIDIA's scripts by keyboard: chosen at Scale, options; the command at Review, copied and submitted."""

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
from llmb_tui.ui.dialogs import ConfirmDialog
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
    result = Open(places)
    result.clusters.save(EOS)
    return result


def keys_of(wizard: WizardScreen) -> set[str]:
    return {key for key, active in wizard.active_bindings.items() if active.enabled and active.binding.show}


@SIZES
async def test_upstream_is_chosen_by_keyboard(services: Open, size: tuple[int, int]) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=size) as pilot:
        wizard = await at_procedures(pilot)
        assert chosen(wizard) == "direct"
        assert wizard.query_one(ScalePane).region.contains_region(wizard.query_one("#procedure").region)
        await pilot.press("down")
        assert chosen(wizard) == "upstream"
        text = on_screen(app)
        assert "▸ NVIDIA's scripts  of v25.04" in text
        assert "  our script " in text
        await pilot.press("enter")
        assert summaries(pilot)[StepId.SCALE] == "8 GPUs · NVIDIA's scripts"
        await pilot.press("3", "P", "up")
        assert chosen(wizard) == "direct"
        assert summaries(pilot)[StepId.SCALE] == "8 GPUs"


async def test_small_screen_hides_launch_methods_until_upstream_is_chosen(services: Open) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(80, 24)) as pilot:
        wizard = await loaded(pilot)
        await choose(pilot, "workload", LLAMA)
        await pilot.press("3")
        await pilot.pause()
        assert not wizard.query_one("#procedures").display
        assert "P: our script or NVIDIA's" in on_screen(app)
        await pilot.press("P")
        assert wizard.query_one("#procedures").display


@SIZES
async def test_upstream_that_the_cluster_prevents_is_disabled_with_the_whole_reason(
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


async def test_cluster_that_prevents_upstream_flags_and_keeps_the_answer(services: Open) -> None:
    services.clusters.save(MOUNTED)
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await at_procedures(pilot)
        await pilot.press("down", "right")
        await choose(pilot, "clusters", "mounted")
        assert marks(pilot)[StepId.SCALE] == "flagged"
        assert MOUNTS_REASON in [problem.reason for problem in plan_of(wizard).problems]
        await pilot.press("3")
        assert "✗ NVIDIA's scripts" in on_screen(app)
        await pilot.press("6")
        await pilot.pause()
        assert "cannot be launched with this method" in str(wizard.query_one("#script-text", Static).content)
        assert "copies the command" not in on_screen(app)
        await pilot.press("y")
        assert app.clipboard.endswith("--procedure upstream")  # the selection, not a command that cannot be launched
        assert "s" not in keys_of(wizard)
        await pilot.press("enter")
        assert MOUNTS_REASON in [note.message[: len(MOUNTS_REASON)] for note in app._notifications]
        assert app.screen is wizard
        await pilot.press("3", "P", "up")
        assert marks(pilot)[StepId.SCALE] != "flagged"


async def test_number_of_steps_disables_upstream_at_once(services: Open) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await at_procedures(pilot, "grok1@25.02/314b")
        await pilot.press("down")
        assert chosen(wizard) == "upstream"
        wizard.query_one("#steps").focus()
        await pilot.press("2", "0")
        (reason,) = (problem.reason for problem in plan_of(wizard).problems if problem.severity == "error")
        assert reason == "launch.sh cannot set the number of steps, so it would not be 20."


@SIZES
async def test_review_shows_and_copies_the_exact_command(services: Open, size: tuple[int, int]) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=size) as pilot:
        wizard = await at_procedures(pilot)
        await at_review(pilot, wizard, "down")
        assert str(wizard.query_one("#script-text", Static).content) == command()
        facts = by_head(wizard.query_one("#pane-review Paragraphs", Paragraphs).parts)
        assert facts["launch"] == "NVIDIA's scripts: setup.sh and launch.sh of v25.04, unchanged"
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
async def test_differences_and_token_notes_are_below_the_command(services: Open, size: tuple[int, int]) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=size) as pilot:
        wizard = await at_procedures(pilot)
        await at_review(pilot, wizard, "down")
        texts = [str(body) for _, body in wizard.query_one("#script-more", Paragraphs).parts if str(body)]
        assert RECIPE.upstream is not None
        assert texts == [*differences(RECIPE), *RECIPE.upstream.notes]
        assert any("pyarrow" in one for one in texts)
        await pilot.press("end")
        await pilot.pause()
        assert "vboost" in on_screen(app)


async def test_direct_procedure_is_submitted_and_copied(services: Open) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await at_procedures(pilot)
        await pilot.press("4", "c")
        await until(pilot, lambda: marks(pilot)[StepId.CLUSTER] == "done", "the checks are made")
        result = replace(state_of(wizard).cluster, steps=INSTALLED, prepared=draft_of(plan_of(wizard)))
        await know(pilot, wizard, result)
        await pilot.press("6")
        assert {"s", "y"} <= keys_of(wizard)
        assert "#!/bin/bash" in str(wizard.query_one("#script-text", Static).content)
        assert wizard.query_one("#script-more", Paragraphs).parts == ()
        await pilot.press("y")
        assert app.clipboard.startswith("llmb-tui submit ")
        assert "--procedure" not in app.clipboard
        await pilot.press("s")
        await on_top(pilot, ConfirmDialog)


async def test_cluster_is_probed_and_installed_for_upstream(services: Open) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        await at_procedures(pilot)
        await pilot.press("down", "4", "c")
        await until(pilot, lambda: marks(pilot)[StepId.CLUSTER] == "done", "the checks are made")
        services.stand_in.asked.clear()
        await pilot.press("5", "s")
        await until(pilot, lambda: ("installer", "upstream") in services.stand_in.asked, "the install runs")
        assert {procedure for _, procedure in services.stand_in.asked} == {"upstream"}
        await until(pilot, lambda: marks(pilot)[StepId.INSTALL] == "done", "the install is complete")
        await pilot.pause()
        assert "scripts · " in on_screen(app)


async def test_new_procedure_drops_earlier_checks_and_probes_again(services: Open) -> None:
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
        await until(pilot, lambda: ("preflight", "direct") in services.stand_in.asked, "the second preflight")
        assert ("preflight", "upstream") not in services.stand_in.asked


async def test_late_event_for_the_other_procedure_is_ignored(services: Open) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await at_procedures(pilot)
        await pilot.press("4", "c")
        await until(pilot, lambda: marks(pilot)[StepId.CLUSTER] == "done", "the checks are made")
        wizard.dispatch(StepsChanged(replace(request_of(wizard), procedure="upstream"), INSTALLED))
        assert marks(pilot)[StepId.INSTALL] == "open"


async def test_api_keys_are_those_of_the_procedure(services: Open) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        await at_procedures(pilot)
        await pilot.press("down", "5", "K")
        await on_top(pilot, KeysDialog)
        await pilot.pause()
        assert "Hugging Face token  needed" in on_screen(app)


def reviewed(selection: Selection, profile: SlurmProfile = EOS) -> dict[str, str]:
    return by_head(review_facts(state_at(StepId.REVIEW, selection, profile, "upstream")))


def test_review_names_the_unfinished_step_and_differences() -> None:
    said = reviewed(CHOSEN, replace(EOS, cpus_per_task=8))
    assert said["to do"] == "The cluster is not ready. Finish step 4 first."
    assert said["! warning"].startswith("launch.sh cannot pin tasks to CPUs")
    assert "tokenizer" not in said


def test_procedure_without_a_token_shows_no_token_warning() -> None:
    said = reviewed(Selection("nemotron4", "25.04", "15b", "h100", "bf16", 16))
    assert "submit" in said
    assert "token" not in said


@pytest.mark.parametrize("recipe", CATALOG.recipes, ids=lambda recipe: recipe.id)
def test_every_recipe_supports_upstream_and_has_no_command_without_a_cluster(recipe: Any) -> None:
    assert wizard_rules(CATALOG, Policy()).preview("upstream", recipe, None) == LaunchPreview(
        detail=f"of {recipe.upstream.tag}"
    )


def test_recipe_without_upstream_and_invalid_profile_are_problems() -> None:
    run_plan = plan(CATALOG, CHOSEN)
    lean = preview(RunRequest(replace(RECIPE, upstream=None), run_plan, EOS, "upstream"))
    odd = preview(RunRequest(RECIPE, run_plan, replace(EOS, env=(("ODD", "a\nb"),)), "upstream"))
    assert [problem.severity for problem in lean.problems + odd.problems] == ["error", "error"]
    assert lean.problems[0] == Problem(
        "procedure",
        "error",
        "llama3.1@25.04 cannot be launched with NVIDIA's scripts. Its preset does not describe them.",
        "Choose our script.",
    )
    assert lean.command == odd.command == ""
    assert wizard_rules(CATALOG, Policy()).preview("upstream", replace(RECIPE, upstream=None), None) == lean


def test_procedure_of_the_last_run_is_restored(services: Open) -> None:
    run = draft_of(plan(CATALOG, CHOSEN)).run
    services.runs.save(replace(run, procedure="upstream"))
    assert read_start(services)[0].answers.procedure == "upstream"
