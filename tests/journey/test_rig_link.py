"""What the run's screen says when the link hangs, when it needs a person, and when only Slurm is silent."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from llmb_tui.plan.make import plan
from llmb_tui.plan.selection import Selection
from llmb_tui.services import Services
from llmb_tui.store.paths import Places
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.dialogs import Secret
from llmb_tui.ui.screens.run import RunScreen
from tests.journey.test_rig_journey import brought_image
from tests.journey.test_screen_journey import SIZE, state
from tests.rig.cluster import Rig
from tests.rig.line import Line
from tests.ui_wizard.wizard_pilot import loaded, on_top, until

# The heartbeat's promise, and what a busy machine may add.
NOTICED_WITHIN_S = 15.0
TOLERANCE_S = 5.0


@pytest.fixture(autouse=True)
def _nobody_else_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


@pytest.fixture
def run_id(rig: Rig, places: Places) -> str:
    """A run whose training hangs at its eighth step, submitted earlier."""
    rig.set("faults/hang-at-step", "8")
    services = Services(places)
    services.save_profile(rig.profile(name="rig", install_dir=str(brought_image(rig))))
    made = plan(services.catalog(), Selection("nemotron4", "25.04", "15b", "h100", "bf16", 16))
    services.installer("rig", made).run(lambda _: None, threading.Event())
    run = services.submit(services.draft("rig", made))
    services.close()
    return run.id


async def watch(pilot: Pilot[None]) -> None:
    await loaded(pilot)
    await pilot.press("w")
    await until(pilot, lambda: state(pilot).progress.steps_done >= 7, "the run's steps are seen")


def shown(app: LlmbApp) -> str:
    return str(app.screen.query_one("#notice", Static).render())


async def test_a_link_that_hangs_is_noticed_and_comes_back(rig: Rig, places: Places, run_id: str) -> None:
    with Line(rig.port("login")) as line:
        services = Services(places)
        services.save_profile(line.profile(services.profile("rig")))
        app = LlmbApp(services)
        async with app.run_test(size=SIZE) as pilot:
            await watch(pilot)
            line.hang()
            began = time.monotonic()
            await until(pilot, lambda: state(pilot).link == "lost", "the screen says that the link is lost")
            assert time.monotonic() - began < NOTICED_WITHIN_S + TOLERANCE_S
            assert state(pilot).job is not None, "and still shows what was known of the job"
            line.resume()
            line.cut()
            await until(pilot, lambda: state(pilot).link == "live", "it comes back by itself")
            assert state(pilot).run_id == run_id


async def test_a_second_factor_is_asked_for_only_when_a_person_wants_it(rig: Rig, places: Places, run_id: str) -> None:
    with Line(rig.port("mfa")) as line:
        services = Services(places)
        install_dir = services.profile("rig").install_dir
        services.save_profile(line.profile(rig.profile("mfa", name="rig", install_dir=install_dir)))
        app = LlmbApp(services)
        async with app.run_test(size=SIZE) as pilot:
            await loaded(pilot)
            await pilot.press("w")
            await give_code(pilot, rig)
            await until(pilot, lambda: state(pilot).progress.steps_done >= 7, "the run's steps are seen")
            line.cut()
            await until(pilot, lambda: state(pilot).link == "lost", "the screen says that the link is lost")
            screen = app.screen
            assert isinstance(screen, RunScreen)
            await until(pilot, lambda: bool(screen.check_action("log_in", ())), "logging in is offered")
            assert app.screen is screen, "nobody was asked"
            await pilot.press("l")
            await give_code(pilot, rig)
            await until(pilot, lambda: state(pilot).link == "live", "the link is live again")
            assert state(pilot).run_id == run_id


async def test_a_controller_that_hangs_is_told_from_a_dead_link(rig: Rig, places: Places, run_id: str) -> None:
    app = LlmbApp(Services(places))
    async with app.run_test(size=SIZE) as pilot:
        await watch(pilot)
        before = state(pilot).job
        with rig.controller_hung():
            app.services.lookout("rig").look_soon()
            await until(pilot, lambda: state(pilot).slurm_note != "", "the screen says that Slurm does not answer")
            assert state(pilot).link == "live"
            assert state(pilot).slurm_note[:10] in shown(app)
            assert state(pilot).job is not None
            assert before is not None
            assert replace(before, elapsed_s=None) == replace(state(pilot).job or before, elapsed_s=None)
        await until(pilot, lambda: state(pilot).slurm_note == "", "and that it answers again")
        assert state(pilot).run_id == run_id


async def give_code(pilot: Pilot[None], rig: Rig) -> None:
    await on_top(pilot, Secret)
    pilot.app.screen.query_one(Input).value = rig.totp()
    await pilot.press("enter")
