"""The run's screen while the link hangs, while it waits for a login, and while only Slurm does not answer."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from llmb_tui.launch.readiness import ClusterEvidence
from llmb_tui.plan.make import plan
from llmb_tui.plan.selection import Selection
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.dialogs import Secret
from llmb_tui.ui.screens.run import RunScreen
from tests.journey.test_rig_journey import brought_image
from tests.kit.pilot import SIZE, loaded, on_top, shown_run_state, text_of, until
from tests.kit.runs import slurm
from tests.rig.cluster import Rig
from tests.rig.line import Line


@pytest.fixture(autouse=True)
def _nobody_else_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


@pytest.fixture
def run_id(rig: Rig, places: UserPaths) -> str:
    """A submitted run whose training hangs at its eighth step."""
    rig.set("faults/hang-at-step", "8")
    services = Services(places)
    services.clusters.save(rig.profile(name="rig", install_dir=str(brought_image(rig))))
    run_plan = plan(services.catalog, Selection("nemotron4", "25.04", "15b", "h100", "bf16", 16))
    request = services.request("rig", run_plan)
    steps = services.launcher.installer(request).run(lambda _: None, threading.Event())
    run = services.launcher.submit(
        services.launcher.prepare(request), ClusterEvidence(services.launcher.preflight(request), steps)
    )
    services.clusters.close()
    return run.id


async def watch(pilot: Pilot[None]) -> None:
    await loaded(pilot)
    await pilot.press("w")
    await until(pilot, lambda: shown_run_state(pilot).progress.steps_done >= 7, "the run's steps are seen")


async def test_a_hanging_link_is_noticed_and_reconnected(rig: Rig, places: UserPaths, run_id: str) -> None:
    with Line(rig.port("login")) as line:
        services = Services(places)
        services.clusters.save(line.profile(slurm(services.clusters.profile("rig"))))
        app = LlmbApp(services)
        async with app.run_test(size=SIZE) as pilot:
            await watch(pilot)
            line.hang()
            await until(pilot, lambda: shown_run_state(pilot).link == "lost", "the screen shows the lost link")
            assert shown_run_state(pilot).job is not None, "the screen lost the last known job state"
            line.resume()
            line.cut()
            await until(pilot, lambda: shown_run_state(pilot).link == "live", "the link is live again")
            assert shown_run_state(pilot).run_id == run_id


async def test_a_second_factor_prompts_only_on_request(rig: Rig, places: UserPaths, run_id: str) -> None:
    with Line(rig.port("mfa")) as line:
        services = Services(places)
        install_dir = slurm(services.clusters.profile("rig")).install_dir
        services.clusters.save(line.profile(rig.profile("mfa", name="rig", install_dir=install_dir)))
        app = LlmbApp(services)
        async with app.run_test(size=SIZE) as pilot:
            await loaded(pilot)
            await pilot.press("w")
            await give_code(pilot, rig)
            await until(pilot, lambda: shown_run_state(pilot).progress.steps_done >= 7, "the run's steps are seen")
            line.cut()
            await until(pilot, lambda: shown_run_state(pilot).link == "lost", "the screen shows the lost link")
            screen = app.screen
            assert isinstance(screen, RunScreen)
            await until(pilot, lambda: bool(screen.check_action("log_in", ())), "the screen offers to log in")
            assert app.screen is screen, "the program asked for a login"
            await pilot.press("l")
            await give_code(pilot, rig)
            await until(pilot, lambda: shown_run_state(pilot).link == "live", "the link is live again")
            assert shown_run_state(pilot).run_id == run_id


async def test_a_hung_controller_is_distinguished_from_a_dead_link(rig: Rig, places: UserPaths, run_id: str) -> None:
    app = LlmbApp(Services(places))
    async with app.run_test(size=SIZE) as pilot:
        await watch(pilot)
        await until(pilot, lambda: getattr(shown_run_state(pilot).job, "state", "") == "RUNNING", "the job is running")
        before = shown_run_state(pilot).job
        with rig.controller_hung():
            app.services.clusters.poller("rig").poll_soon()
            await until(pilot, lambda: shown_run_state(pilot).slurm_note != "", "the screen reports Slurm's silence")
            assert shown_run_state(pilot).link == "live"
            assert shown_run_state(pilot).slurm_note[:10] in text_of(app, "#notice")
            assert shown_run_state(pilot).job is not None
            assert before is not None
            assert replace(before, elapsed_s=None) == replace(shown_run_state(pilot).job or before, elapsed_s=None)
        await until(pilot, lambda: shown_run_state(pilot).slurm_note == "", "the screen drops that report")
        assert shown_run_state(pilot).run_id == run_id


async def give_code(pilot: Pilot[None], rig: Rig) -> None:
    await on_top(pilot, Secret)
    pilot.app.screen.query_one(Input).value = rig.totp()
    await pilot.press("enter")
