"""What the run's screen says when the link hangs, when it needs a person, and when only Slurm is silent."""

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
    """A run whose training hangs at its eighth step, submitted earlier."""
    rig.set("faults/hang-at-step", "8")
    services = Services(places)
    services.clusters.save(rig.profile(name="rig", install_dir=str(brought_image(rig))))
    made = plan(services.catalog, Selection("nemotron4", "25.04", "15b", "h100", "bf16", 16))
    request = services.request("rig", made)
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


async def test_a_link_that_hangs_is_noticed_and_comes_back(rig: Rig, places: UserPaths, run_id: str) -> None:
    with Line(rig.port("login")) as line:
        services = Services(places)
        services.clusters.save(line.profile(slurm(services.clusters.profile("rig"))))
        app = LlmbApp(services)
        async with app.run_test(size=SIZE) as pilot:
            await watch(pilot)
            line.hang()
            await until(pilot, lambda: shown_run_state(pilot).link == "lost", "the screen says that the link is lost")
            assert shown_run_state(pilot).job is not None, "and still shows what was known of the job"
            line.resume()
            line.cut()
            await until(pilot, lambda: shown_run_state(pilot).link == "live", "it comes back by itself")
            assert shown_run_state(pilot).run_id == run_id


async def test_a_second_factor_is_asked_for_only_when_a_person_wants_it(
    rig: Rig, places: UserPaths, run_id: str
) -> None:
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
            await until(pilot, lambda: shown_run_state(pilot).link == "lost", "the screen says that the link is lost")
            screen = app.screen
            assert isinstance(screen, RunScreen)
            await until(pilot, lambda: bool(screen.check_action("log_in", ())), "logging in is offered")
            assert app.screen is screen, "nobody was asked"
            await pilot.press("l")
            await give_code(pilot, rig)
            await until(pilot, lambda: shown_run_state(pilot).link == "live", "the link is live again")
            assert shown_run_state(pilot).run_id == run_id


async def test_a_hung_controller_is_distinguished_from_a_dead_link(rig: Rig, places: UserPaths, run_id: str) -> None:
    app = LlmbApp(Services(places))
    async with app.run_test(size=SIZE) as pilot:
        await watch(pilot)
        await until(
            pilot, lambda: getattr(shown_run_state(pilot).job, "state", "") == "RUNNING", "nothing changes soon"
        )
        before = shown_run_state(pilot).job
        with rig.controller_hung():
            app.services.clusters.poller("rig").poll_soon()
            await until(pilot, lambda: shown_run_state(pilot).slurm_note != "", "the screen says that Slurm is silent")
            assert shown_run_state(pilot).link == "live"
            assert shown_run_state(pilot).slurm_note[:10] in text_of(app, "#notice")
            assert shown_run_state(pilot).job is not None
            assert before is not None
            assert replace(before, elapsed_s=None) == replace(shown_run_state(pilot).job or before, elapsed_s=None)
        await until(pilot, lambda: shown_run_state(pilot).slurm_note == "", "and that it answers again")
        assert shown_run_state(pilot).run_id == run_id


async def give_code(pilot: Pilot[None], rig: Rig) -> None:
    await on_top(pilot, Secret)
    pilot.app.screen.query_one(Input).value = rig.totp()
    await pilot.press("enter")
