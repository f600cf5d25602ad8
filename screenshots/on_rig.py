"""Pictures of the app on a real login node: OpenSSH with a second factor, Slurm, and a broken connection.

Containers and training are stand-ins from the test rig.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

from textual.pilot import Pilot
from textual.widgets import Input, Static

from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.dialogs import Secret
from llmb_tui.wizard.steps import StepId
from tests.journey.test_rig_journey import brought_image
from tests.kit.pilot import SIZE, choose, loaded, marks, on_top, shown_run_state, submit, until
from tests.rig.cluster import Rig
from tests.rig.line import Line

NOTICE = "test cluster, simulated GPUs"


def make(folder: Path) -> None:
    """Start a rig, use the app on it and save the pictures."""
    os.environ.pop("SSH_AUTH_SOCK", None)
    rig = Rig().start()
    try:
        with Line(rig.port("mfa")) as line, tempfile.TemporaryDirectory(prefix="llmb-tui-") as home:
            services = Services(UserPaths(Path(home) / "config", Path(home) / "state"))
            install_dir = str(brought_image(rig))
            profile = rig.profile("mfa", name="testbed", install_dir=install_dir, notice=NOTICE)
            services.clusters.save(line.profile(profile))
            rig.set("speed", "20")
            asyncio.run(walk(services, rig, line, folder))
    finally:
        rig.stop()


async def walk(services: Services, rig: Rig, line: Line, folder: Path) -> None:
    """Run a benchmark from the second factor to the verdict; the connection breaks during the run."""
    app = LlmbApp(services)

    def take(name: str) -> None:
        (folder / f"{name}.svg").write_text(app.export_screenshot(title="llmb-tui"), encoding="utf-8")

    async with app.run_test(size=SIZE) as pilot:
        await loaded(pilot)
        await choose(pilot, "workload", "nemotron4@25.04/15b")
        await pilot.press("4", "enter")
        await on_top(pilot, Secret)
        take("second-factor")
        await give_code(pilot, rig)
        await until(pilot, lambda: marks(pilot)[StepId.CLUSTER] == "done", "the cluster is checked")
        await pilot.pause(0.5)
        take("cluster-checked")
        await pilot.press("e", "ctrl+r")
        await until(pilot, lambda: "partitions" in str(app.screen.query_one("#read", Static).render()), "it is read")
        app.screen.query_one("#profile-partition", Input).focus()
        await pilot.pause(0.5)
        take("cluster-offers")
        await pilot.press("escape", "5", "enter")
        await until(pilot, lambda: marks(pilot)[StepId.INSTALL] == "done", "the install is whole")
        await pilot.press("enter")
        await submit(pilot)
        await until(pilot, lambda: shown_run_state(pilot).progress.steps_done >= 20, "some steps are done")
        line.cut()
        await until(pilot, lambda: shown_run_state(pilot).link == "lost", "the link is lost")
        await until(pilot, lambda: bool(app.screen.check_action("log_in", ())), "logging in is offered")
        app.screen.refresh_bindings()
        await pilot.pause(0.5)
        take("link-lost")
        await pilot.press("l")
        await give_code(pilot, rig)
        await until(pilot, lambda: shown_run_state(pilot).stage == "done", "the run is done")
        await pilot.pause(0.5)
        take("run-on-slurm")


async def give_code(pilot: Pilot[None], rig: Rig) -> None:
    """Type the current one-time code."""
    await on_top(pilot, Secret)
    pilot.app.screen.query_one(Input).value = rig.totp()
    await pilot.press("enter")
