"""From the wizard to a suite of its run, and back."""

from __future__ import annotations

from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.services import Services
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.screens.jobs import JobsScreen
from llmb_tui.ui.screens.suite import SuiteScreen
from llmb_tui.ui.screens.suites import SuitesScreen
from llmb_tui.ui.screens.wizard import WizardScreen
from tests.kit.pilot import SIZE, actions, at_scale, choose, loaded, on_top, state_of, text_of, until


async def test_a_suite_is_planned_for_a_cluster(app: LlmbApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        wizard = await at_scale(pilot)
        assert "plan_suite" in actions(wizard)
        await pilot.press("S")
        await pilot.pause()
        assert isinstance(app.screen, WizardScreen)
        assert "A suite needs a cluster. Choose one in step 4." in [
            notification.message for notification in app._notifications
        ]
        await pilot.press("1")
        assert "plan_suite" not in actions(wizard)


async def test_suite_starts_from_the_wizard_and_keeps_its_draft(services: Services, app: LlmbApp) -> None:
    services.clusters.save(SlurmProfile("eos", "127.0.0.1", "acct", "batch", "/lustre/llmb", port=1))
    async with app.run_test(size=SIZE) as pilot:
        wizard = await at_scale(pilot)
        await choose(pilot, "scale", "64")
        await pilot.press("S")
        await on_top(pilot, SuiteScreen)
        screen = app.screen
        assert isinstance(screen, SuiteScreen)
        assert screen.draft.base == state_of(wizard).proposal.selection
        await pilot.press("home", "space")
        chosen = screen.draft
        assert chosen.scales == (16, 64)
        await pilot.press("q")
        await on_top(pilot, WizardScreen)
        await pilot.press("S")
        await on_top(pilot, SuiteScreen)
        assert isinstance(app.screen, SuiteScreen)
        assert app.screen is not screen
        assert app.screen.draft == chosen
        await pilot.press("q")
        await choose(pilot, "scale", "128")
        await pilot.press("S")
        await on_top(pilot, SuiteScreen)
        assert isinstance(app.screen, SuiteScreen)
        assert app.screen.draft.scales == (128,)


async def test_the_list_of_runs_leads_to_the_suites(app: LlmbApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await loaded(pilot)
        await pilot.press("J")
        await on_top(pilot, JobsScreen)
        await pilot.press("S")
        await on_top(pilot, SuitesScreen)
        await until(pilot, lambda: "No suites yet" in text_of(app, "#list-status"), "the empty list")
        await pilot.press("escape")
        await on_top(pilot, JobsScreen)
