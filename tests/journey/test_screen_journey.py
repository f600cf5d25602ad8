"""The whole journey by keyboard on the embedded cluster: nothing is patched."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from llmb_tui.demo.cluster import DemoCluster
from llmb_tui.services import Services
from llmb_tui.store.paths import Places
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.screens.run import RunScreen
from llmb_tui.ui.screens.wizard import WizardScreen
from llmb_tui.ui.widgets.rail import Rail
from llmb_tui.watch.state import RunState
from llmb_tui.wizard.steps import StepId
from tests.ui_wizard.wizard_pilot import choose, loaded, until

SIZE = (120, 36)


def marks(pilot: Pilot[None]) -> dict[StepId, str]:
    wizard = next(screen for screen in pilot.app.screen_stack if isinstance(screen, WizardScreen))
    return {one.step: one.mark for one in wizard.query_one(Rail).steps}


def at(pilot: Pilot[None]) -> StepId:
    return pilot.app.screen.query_one(Rail).current


def state(pilot: Pilot[None]) -> RunState:
    screen = pilot.app.screen
    return (isinstance(screen, RunScreen) and screen.run_state) or RunState("not watched")


def script(wizard: WizardScreen) -> str:
    return str(wizard.query_one("#script-text", Static).content)


async def walk_to_review(pilot: Pilot[None], workload: str, dtype: str, scale: str) -> None:
    await loaded(pilot)
    await choose(pilot, "workload", workload)
    await pilot.press("enter", "tab")
    await choose(pilot, "dtype", dtype)
    await pilot.press("enter")
    await choose(pilot, "scale", scale)
    await until(pilot, lambda: marks(pilot)[StepId.CLUSTER] == "done", "the saved cluster answers and is ticked")
    await pilot.press("enter")
    if at(pilot) is StepId.INSTALL:
        await until(pilot, lambda: marks(pilot)[StepId.INSTALL] == "open", "the install was looked at")
        await pilot.press("enter")
        await until(pilot, lambda: marks(pilot)[StepId.INSTALL] == "done", "the install is whole")
        await pilot.press("enter")
    assert at(pilot) is StepId.REVIEW


async def submit(pilot: Pilot[None]) -> None:
    wizard = pilot.app.screen
    assert isinstance(wizard, WizardScreen)
    await until(pilot, lambda: "#SBATCH" in script(wizard), "the script is rendered")
    await pilot.press("enter")
    await until(pilot, lambda: pilot.app.screen is not wizard, "the question is asked")
    await pilot.press("y")
    await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen), "the run's screen opens")


@pytest.mark.parametrize(
    ("workload", "dtype", "scale"),
    [("nemotron4@25.04/15b", "fp8", "64"), ("llama3.1@24.11/405b", "bf16", "32")],
    ids=["nemo2", "hydra"],
)
async def test_from_the_first_screen_to_a_verdict(
    places: Places, cluster: DemoCluster, workload: str, dtype: str, scale: str
) -> None:
    app = LlmbApp(Services(places))
    async with app.run_test(size=SIZE) as pilot:
        await walk_to_review(pilot, workload, dtype, scale)
        await submit(pilot)
        await until(pilot, lambda: state(pilot).stage == "done", "the run is done")
        final = state(pilot)
        assert final.progress.steps_done == 50
        assert final.verdict is not None
        assert (final.verdict.result, final.verdict.rule) == ("PASS", "last step")
        assert cluster.profile.notice is not None
        await pilot.press("q")
        assert marks(pilot)[StepId.REVIEW] == "done"


async def test_who_quits_and_comes_back_finds_the_run_going_on(places: Places, cluster: DemoCluster) -> None:
    cluster.fault("hang-at-step", "4")
    first = LlmbApp(Services(places))
    async with first.run_test(size=SIZE) as pilot:
        await walk_to_review(pilot, "nemotron4@25.04/15b", "fp8", "64")
        await submit(pilot)
        await until(pilot, lambda: state(pilot).progress.steps_done >= 3, "some steps are done")
        began = time.monotonic()
        await pilot.press("q", "q")
    assert time.monotonic() - began < 5

    second = LlmbApp(Services(places))
    async with second.run_test(size=SIZE) as pilot:
        await loaded(pilot)
        await pilot.press("w")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen), "the run's screen opens again")
        await until(pilot, lambda: state(pilot).progress.steps_done >= 3, "what was copied is there again")
        await pilot.press("c")
        await until(pilot, lambda: not isinstance(pilot.app.screen, RunScreen), "cancel asks first")
        await pilot.press("y")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen), "the question is answered")
        await until(pilot, lambda: state(pilot).stage == "cancelled", "the job is cancelled")
        assert state(pilot).verdict is None


async def test_an_install_goes_on_after_the_connection_broke(places: Places, cluster: DemoCluster) -> None:
    app = LlmbApp(Services(places))
    async with app.run_test(size=SIZE) as pilot:
        await loaded(pilot)
        await choose(pilot, "workload", "nemotron4@25.04/15b")
        await pilot.press("enter", "enter", "enter")
        await until(pilot, lambda: marks(pilot)[StepId.CLUSTER] == "done", "the saved cluster answers and is ticked")
        await pilot.press("5", "enter")
        await until(pilot, lambda: marks(pilot)[StepId.INSTALL] in ("busy", "done"), "the install has begun")
        cluster.drop_connections()
        await until(pilot, lambda: marks(pilot)[StepId.INSTALL] == "done", "the install is whole")
    image = Path(cluster.profile.install_dir) / "images" / "nvidia+nemo+25.02.01.sqsh"
    assert image.is_file()
