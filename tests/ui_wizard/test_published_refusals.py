"""What stands against the published procedure on a cluster: commits that are not public, a token that is missing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from llmb_tui.errors import Trouble
from llmb_tui.launch.install import StepState
from llmb_tui.store.paths import Places
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.found import Subject
from llmb_tui.ui.screens.keys import KeysDialog
from llmb_tui.ui.widgets.choices import ChoiceList
from llmb_tui.ui.widgets.paragraphs import Paragraphs
from llmb_tui.ui.work import Learned
from llmb_tui.wizard.steps import StepId
from tests.ui_wizard.found_states import EOS
from tests.ui_wizard.published_pilot import (
    LLAMA,
    LOST,
    NOT_THERE,
    Open,
    actions,
    at_procedures,
    at_review,
    chosen,
    made,
    words,
)
from tests.ui_wizard.wizard_pilot import choose, marks, on_top, until


@pytest.fixture
def services(tmp_path: Path) -> Open:
    found = Open(Places(tmp_path / "config", tmp_path / "state"))
    found.save_profile(EOS)
    return found


async def test_commits_that_are_not_public_disable_it_before_anybody_chooses_it(services: Open) -> None:
    services.public = LOST
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await at_procedures(pilot)
        await pilot.press("4", "c")
        await until(pilot, lambda: bool(wizard._planned.published.problems), "the commits were looked for")
        await pilot.press("3", "P", "down")
        assert chosen(wizard) == "direct"
        assert made(wizard).launchable
        ((_, said),) = wizard.query_one("#not-published", Paragraphs).parts
        assert str(said) == f"{LOST.found} {LOST.mend}"
        await pilot.press("1")
        await choose(pilot, "workload", "grok1@25.02/314b")
        await pilot.press("3", "P", "down")
        assert chosen(wizard) == "recipe", "another recipe takes other commits"
        asked = services.asked.count(("commits", "direct"))
        await pilot.press("1")
        await pilot.press("home")
        await choose(pilot, "workload", LLAMA)
        assert [problem.reason for problem in wizard._planned.published.problems] == [LOST.found]
        assert services.asked.count(("commits", "direct")) == asked


async def test_a_look_that_cannot_ask_for_them_is_whole_all_the_same(services: Open) -> None:
    services.trouble = Trouble("The connection broke.")
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await at_procedures(pilot)
        await pilot.press("4", "c")
        await until(pilot, lambda: ("commits", "direct") in services.asked, "they were asked for")
        await until(pilot, lambda: not wizard._found.doing, "the look is over")
        assert (marks(wizard)[StepId.CLUSTER], wizard._found.trouble) == ("done", None)
        services.trouble, services.public = None, LOST
        await pilot.press("c")
        await until(pilot, lambda: bool(wizard._planned.published.problems), "they are asked for again")


async def test_who_has_chosen_it_is_told_and_cannot_submit_until_a_later_look_finds_them(services: Open) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await at_procedures(pilot)
        await pilot.press("down")
        services.public = LOST
        await pilot.press("4", "c")
        await until(pilot, lambda: marks(wizard)[StepId.SCALE] == "flagged", "the commits were looked for")
        assert marks(wizard)[StepId.CLUSTER] == "flagged"
        await pilot.press("6")
        await pilot.pause()
        assert "submit" not in actions(wizard)
        facts = words(wizard.query_one("#pane-review Paragraphs", Paragraphs).parts)
        assert facts["✗ error"].startswith(LOST.found)
        services.public = replace(LOST, status="ok", found="all are there")
        await pilot.press("4", "c")
        await until(pilot, lambda: marks(wizard)[StepId.SCALE] == "done", "they were found")


async def test_an_install_that_does_not_find_one_disables_it_too(services: Open) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await at_procedures(pilot)
        await at_review(pilot, wizard, "down")
        refused = StepState("commits-llama3.1-25.04", "Commits", "failed", NOT_THERE)
        subject = Subject(EOS, made(wizard).selection, "recipe")
        wizard.post_message(Learned(subject, "install", {"steps": (refused,)}, over=True))
        await until(pilot, lambda: marks(wizard)[StepId.SCALE] == "flagged", "it is taken over")
        assert "submit" not in actions(wizard)


async def test_the_token_that_an_install_lacks_is_the_one_that_is_asked_for(services: Open) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await at_procedures(pilot)
        await at_review(pilot, wizard, "down", "5")
        lacking = StepState("token-x", "Hugging Face token", "failed", key_would_help="hugging-face")
        subject = Subject(EOS, made(wizard).selection, "recipe")
        wizard.post_message(Learned(subject, "install", {"steps": (lacking,)}, over=True))
        await on_top(pilot, KeysDialog)
        await pilot.pause()
        assert app.screen.query_one("#needs", ChoiceList).chosen == "hugging-face"
