"""The whole journey by keyboard on a real login node: OpenSSH with a second factor, and Slurm. Nothing is patched.

Containers and training are the rig's stand-ins.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.dialogs import Secret
from llmb_tui.ui.screens.run import RunScreen
from llmb_tui.wizard.steps import StepId
from tests.kit import waiting
from tests.kit.pilot import SIZE, choose, loaded, marks, on_top, shown_run_state, submit, until
from tests.kit.runs import direct_spec
from tests.rig.cluster import Rig
from tests.rig.line import Line

IMAGE = "images/nvidia+nemo+25.02.01.sqsh"


@pytest.fixture(autouse=True)
def _nobody_else_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


@pytest.fixture
def install_dir(rig: Rig) -> Path:
    return brought_image(rig)


@pytest.fixture
def line(rig: Rig) -> Iterator[Line]:
    with Line(rig.port("login")) as between:
        yield between


def brought_image(rig: Rig) -> Path:
    """An install directory into which the operator has brought the image: the registry is out of reach here."""
    directory = rig.new_dir()
    image = f"{directory}/{IMAGE}"
    rig.as_operator(f"mkdir {directory}/images && enroot import -o {image} docker://nvcr.io#nvidia/nemo:25.02.01")
    return directory


def saved(places: UserPaths, profile: SlurmProfile) -> Services:
    services = Services(places)
    services.clusters.save(profile)
    return services


async def walk_to_review(pilot: Pilot[None]) -> None:
    await pilot.press("5", "enter")
    await until(pilot, lambda: marks(pilot)[StepId.INSTALL] == "done", "the install is whole", deadline_s=180)
    await pilot.press("enter")


def remote_log(services: Services) -> bytes:
    run = services.runs.all()[0]
    return Path(direct_spec(run).log.path(run.job_ids[0])).read_bytes()


async def test_from_a_second_factor_to_a_verdict(rig: Rig, places: UserPaths, install_dir: Path) -> None:
    services = saved(places, rig.profile("mfa", install_dir=str(install_dir)))
    app = LlmbApp(services)
    async with app.run_test(size=SIZE) as pilot:
        await loaded(pilot)
        await choose(pilot, "workload", "nemotron4@25.04/15b")
        await pilot.press("4", "enter")
        await on_top(pilot, Secret)
        pilot.app.screen.query_one(Input).value = rig.totp()
        await pilot.press("enter")
        await until(pilot, lambda: marks(pilot)[StepId.CLUSTER] == "done", "the cluster is checked and ticked")
        await walk_to_review(pilot)
        await submit(pilot)
        await until(pilot, lambda: shown_run_state(pilot).stage == "done", "the run is done")
        final = shown_run_state(pilot)
        assert final.progress.steps_done == 50
        assert final.verdict is not None
        assert final.verdict.result == "PASS"
    run = services.runs.all()[0]
    assert (services.runs.folder(run.id) / "log").read_bytes() == remote_log(services)
    # By itself sacct forgets at midnight what ended before.
    query = ["sacct", "-X", "-n", "-P", "-S", "now-1days", "-o", "JobID,State", f"--name={run.job_name}"]
    ended = [f"{run.job_ids[0]}|COMPLETED"]
    waiting.until(lambda: rig.as_root(query).stdout.split() == ended, "accounting knows one job of this name")


async def test_a_line_that_is_cut_during_the_run_loses_nothing(
    rig: Rig, places: UserPaths, install_dir: Path, line: Line
) -> None:
    rig.set("speed", "20")
    services = saved(places, line.profile(rig.profile(install_dir=str(install_dir))))
    app = LlmbApp(services)
    async with app.run_test(size=SIZE) as pilot:
        await loaded(pilot)
        await choose(pilot, "workload", "nemotron4@25.04/15b")
        await until(pilot, lambda: marks(pilot)[StepId.CLUSTER] == "done", "the saved cluster answers and is ticked")
        await walk_to_review(pilot)
        await submit(pilot)
        await until(pilot, lambda: shown_run_state(pilot).progress.steps_done >= 5, "some steps are done")
        line.refuse()
        line.cut()
        await until(pilot, lambda: shown_run_state(pilot).link == "lost", "the screen says that the link is lost")
        assert isinstance(app.screen, RunScreen)
        line.accept()
        await until(pilot, lambda: shown_run_state(pilot).link == "live", "the link is back by itself")
        await until(pilot, lambda: shown_run_state(pilot).stage == "done", "the run is done")
        final = shown_run_state(pilot)
        assert final.verdict is not None
        assert final.verdict.result == "PASS"
    run = services.runs.all()[0]
    assert (services.runs.folder(run.id) / "log").read_bytes() == remote_log(services)
