"""The whole journey by keyboard on the embedded cluster: nothing is patched."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from llmb_tui.demo.cluster import DemoCluster
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.screens.run import RunScreen
from llmb_tui.wizard.steps import StepId
from tests.kit.demo import drop_connections, fault
from tests.kit.pilot import choose, loaded, marks, on_top, shown_run_state, step_of, submit, until

SIZE = (120, 36)


async def walk_to_review(pilot: Pilot[None], workload: str, dtype: str, scale: str) -> None:
    await loaded(pilot)
    await choose(pilot, "workload", workload)
    await pilot.press("enter", "tab")
    await choose(pilot, "dtype", dtype)
    await pilot.press("enter")
    await choose(pilot, "scale", scale)
    await until(pilot, lambda: marks(pilot)[StepId.CLUSTER] == "done", "the saved cluster answers and is ticked")
    await pilot.press("enter")
    if step_of(pilot) is StepId.INSTALL:
        await until(pilot, lambda: marks(pilot)[StepId.INSTALL] == "open", "the install was looked at")
        await pilot.press("enter")
        await until(pilot, lambda: marks(pilot)[StepId.INSTALL] == "done", "the install is whole")
        await pilot.press("enter")
    assert step_of(pilot) is StepId.REVIEW


@pytest.mark.parametrize(
    ("workload", "dtype", "scale"),
    [("nemotron4@25.04/15b", "fp8", "64"), ("llama3.1@24.11/405b", "bf16", "32")],
    ids=["nemo2", "hydra"],
)
async def test_from_the_first_screen_to_a_verdict(
    places: UserPaths, cluster: DemoCluster, workload: str, dtype: str, scale: str
) -> None:
    app = LlmbApp(Services(places))
    async with app.run_test(size=SIZE) as pilot:
        await walk_to_review(pilot, workload, dtype, scale)
        await submit(pilot)
        await until(pilot, lambda: shown_run_state(pilot).stage == "done", "the run is done")
        final = shown_run_state(pilot)
        assert final.progress.steps_done == 50
        assert final.verdict is not None
        assert (final.verdict.result, final.verdict.rule) == ("PASS", "last step")
        assert cluster.profile.notice is not None
        await pilot.press("q")
        assert marks(pilot)[StepId.REVIEW] == "done"


# On the fast clock a run that hangs is out of time after some seconds, which a busy machine needs to start again.
@pytest.mark.parametrize("cluster", [60.0], indirect=True)
async def test_a_run_continues_while_the_program_is_closed(places: UserPaths, cluster: DemoCluster) -> None:
    fault(cluster, "hang-at-step", "4")
    first = LlmbApp(Services(places))
    async with first.run_test(size=SIZE) as pilot:
        await walk_to_review(pilot, "nemotron4@25.04/15b", "fp8", "64")
        await submit(pilot)
        await until(pilot, lambda: shown_run_state(pilot).progress.steps_done >= 3, "some steps are done")
        await pilot.press("q", "q")

    second = LlmbApp(Services(places))
    async with second.run_test(size=SIZE) as pilot:
        await loaded(pilot)
        await pilot.press("w")
        await on_top(pilot, RunScreen)
        await until(pilot, lambda: shown_run_state(pilot).progress.steps_done >= 3, "what was copied is there again")
        await pilot.press("c")
        await until(pilot, lambda: not isinstance(pilot.app.screen, RunScreen), "cancel asks first")
        await pilot.press("y")
        await on_top(pilot, RunScreen)
        await until(pilot, lambda: shown_run_state(pilot).stage == "cancelled", "the job is cancelled")
        assert shown_run_state(pilot).verdict is None


async def test_an_install_continues_after_the_connection_broke(places: UserPaths, cluster: DemoCluster) -> None:
    app = LlmbApp(Services(places))
    async with app.run_test(size=SIZE) as pilot:
        await loaded(pilot)
        await choose(pilot, "workload", "nemotron4@25.04/15b")
        await pilot.press("enter", "enter", "enter")
        await until(pilot, lambda: marks(pilot)[StepId.CLUSTER] == "done", "the saved cluster answers and is ticked")
        await pilot.press("5", "enter")
        await until(pilot, lambda: marks(pilot)[StepId.INSTALL] in ("busy", "done"), "the install has begun")
        drop_connections(cluster)
        await until(pilot, lambda: marks(pilot)[StepId.INSTALL] == "done", "the install is whole")
    image = Path(cluster.profile.install_dir) / "images" / "nvidia+nemo+25.02.01.sqsh"
    assert image.is_file()
