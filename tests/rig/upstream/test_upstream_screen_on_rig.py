"""NVIDIA's scripts by keyboard, on a real login node: chosen, installed, submitted, watched to the verdict."""

from __future__ import annotations

from textual.pilot import Pilot
from textual.widgets import Static

from llmb_tui.services import Services
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.dialogs import ConfirmDialog
from llmb_tui.ui.screens.run import RunScreen
from llmb_tui.wizard.steps import StepId
from tests.kit.pilot import marks, on_top, shown_run_state, until
from tests.rig.upstream.conftest import MakeOperator
from tests.rig.upstream.test_upstream_verbs_on_rig import GROK
from tests.rig.upstream.upstream_operator import remote_log, spec_of
from tests.ui.wizard.upstream_pilot import at_procedures, chosen

SIZE = (120, 40)


async def walk_to_review(pilot: Pilot[None]) -> None:
    """From a cluster that is looked at, through an install, to the command."""
    await pilot.press("4", "enter")
    await until(pilot, lambda: marks(pilot)[StepId.CLUSTER] == "done", "the cluster is looked at and ticked")
    await pilot.press("5")
    await until(pilot, lambda: marks(pilot)[StepId.INSTALL] == "open", "the install was looked at")
    await pilot.press("enter")
    await until(pilot, lambda: marks(pilot)[StepId.INSTALL] == "done", "the install is whole", deadline_s=180)
    await pilot.press("6")


async def test_grok1_of_25_02(make_operator: MakeOperator) -> None:
    operator = make_operator()
    operator.set_pace(GROK)
    services = Services(operator.places)
    app = LlmbApp(services)
    async with app.run_test(size=SIZE) as pilot:
        wizard = await at_procedures(pilot, "grok1@25.02/314b")
        await pilot.press("down")
        assert chosen(wizard) == "upstream"
        await walk_to_review(pilot)
        script = wizard.query_one("#script-text", Static)
        await until(pilot, lambda: "sbatch -A llmbench" in str(script.content), "the command is there")
        command = str(script.content)
        await pilot.press("enter")
        await on_top(pilot, ConfirmDialog)
        await pilot.press("y")
        await on_top(pilot, RunScreen)
        await until(pilot, lambda: shown_run_state(pilot).stage == "done", "the run is done")
        final = shown_run_state(pilot)
        assert final.verdict is not None
        assert (final.verdict.result, final.verdict.rule, final.progress.steps_done) == ("PASS", "last step", 50)
    (run,) = services.runs.all()
    assert (run.procedure, run.submission, spec_of(run).command) == ("upstream", "submitted", command)
    assert operator.copy(run).read_bytes() == remote_log(run).read_bytes()
