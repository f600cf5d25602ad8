"""Objections of a cluster to NVIDIA's scripts: commits that are not public, a missing token."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llmb_tui.errors import LlmbError
from llmb_tui.launch.step_state import StepState
from llmb_tui.plan.plan import Problem
from llmb_tui.store.paths import UserPaths
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.screens.keys import KeysDialog
from llmb_tui.ui.screens.wizard import WizardScreen
from llmb_tui.ui.widgets.choices import ChoiceList
from llmb_tui.ui.widgets.texts import Paragraphs
from llmb_tui.wizard.events import StepsChanged, TaskEnded
from llmb_tui.wizard.proposal import objection_key
from llmb_tui.wizard.steps import StepId
from tests.kit.pilot import (
    actions,
    by_head,
    choose,
    marks,
    on_top,
    plan_of,
    request_of,
    state_of,
    until,
)
from tests.ui.wizard.found_states import EOS
from tests.ui.wizard.upstream_pilot import (
    LLAMA,
    LOST,
    NOT_THERE,
    Open,
    at_procedures,
    at_review,
    chosen,
)


def objections(wizard: WizardScreen) -> tuple[Problem, ...]:
    """Objections of the chosen cluster to NVIDIA's scripts."""
    objection = state_of(wizard).objections.get(objection_key(request_of(wizard), "upstream"))
    return (objection,) if objection is not None else ()


@pytest.fixture
def services(places: UserPaths) -> Open:
    result = Open(places)
    result.clusters.save(EOS)
    return result


async def test_private_commits_disable_upstream_before_it_is_chosen(services: Open) -> None:
    services.stand_in.public = LOST
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await at_procedures(pilot)
        await pilot.press("4", "c")
        await until(pilot, lambda: bool(objections(wizard)), "the commits were checked")
        await pilot.press("3", "P", "down")
        assert chosen(wizard) == "direct"
        assert plan_of(wizard).launchable
        ((_, content),) = wizard.query_one("#not-published", Paragraphs).parts
        assert str(content) == f"{LOST.found} {LOST.fix}"
        await pilot.press("1")
        await choose(pilot, "workload", "grok1@25.02/314b")
        await pilot.press("3", "P", "down")
        assert chosen(wizard) == "upstream", "another recipe takes other commits"
        asked = services.stand_in.asked.count(("commits", "direct"))
        await pilot.press("1")
        await pilot.press("home")
        await choose(pilot, "workload", LLAMA)
        assert [problem.reason for problem in objections(wizard)] == [LOST.found]
        assert services.stand_in.asked.count(("commits", "direct")) == asked


async def test_probe_completes_without_the_early_checks(services: Open) -> None:
    services.stand_in.error = LlmbError("The connection broke.")
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await at_procedures(pilot)
        await pilot.press("4", "c")
        await until(pilot, lambda: ("commits", "direct") in services.stand_in.asked, "the request for the commits")
        await until(pilot, lambda: not state_of(wizard).cluster.tasks, "the probe has ended")
        assert (marks(pilot)[StepId.CLUSTER], state_of(wizard).cluster.error) == ("done", None)
        services.stand_in.error, services.stand_in.public = None, LOST
        await pilot.press("c")
        await until(pilot, lambda: bool(objections(wizard)), "the objections")


async def test_private_commits_block_submission_until_a_later_check_passes(services: Open) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await at_procedures(pilot)
        await pilot.press("down")
        services.stand_in.public = LOST
        await pilot.press("4", "c")
        await until(pilot, lambda: marks(pilot)[StepId.SCALE] == "flagged", "the commits were checked")
        assert marks(pilot)[StepId.CLUSTER] == "flagged"
        await pilot.press("6")
        await pilot.pause()
        assert "submit" not in actions(wizard)
        facts = by_head(wizard.query_one("#pane-review Paragraphs", Paragraphs).parts)
        assert facts["✗ error"].startswith(LOST.found)
        services.stand_in.public = replace(LOST, status="ok", found="all exist")
        await pilot.press("4", "c")
        await until(pilot, lambda: marks(pilot)[StepId.SCALE] == "done", "the commits")


async def test_install_that_lacks_a_commit_disables_upstream(services: Open) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await at_procedures(pilot)
        await at_review(pilot, wizard, "down")
        refused = StepState("commits-llama3.1-25.04", "Commits", "failed", NOT_THERE)
        wizard.dispatch(StepsChanged(request_of(wizard), (refused,)))
        await until(pilot, lambda: marks(pilot)[StepId.SCALE] == "flagged", "the adopted result")
        assert "submit" not in actions(wizard)


async def test_dialog_asks_for_the_token_that_the_install_lacks(services: Open) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await at_procedures(pilot)
        await at_review(pilot, wizard, "down", "5")
        lacking = StepState("token-x", "Hugging Face token", "failed", key_would_help="hugging-face")
        wizard.dispatch(StepsChanged(request_of(wizard), (lacking,)))
        wizard.dispatch(TaskEnded(request_of(wizard), "install"))
        await on_top(pilot, KeysDialog)
        await pilot.pause()
        assert app.screen.query_one("#needs", ChoiceList).chosen == "hugging-face"
