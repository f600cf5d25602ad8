"""Makes the pictures of the README by walking the real app on the embedded cluster: `python -m screenshots`."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from textual.pilot import Pilot
from textual.widgets import Static

from llmb_tui.demo.cluster import DemoCluster
from llmb_tui.services import Services
from llmb_tui.store.paths import Places
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.screens.run import RunScreen
from llmb_tui.ui.widgets.choices import ChoiceList
from llmb_tui.ui.widgets.preview import Preview
from llmb_tui.ui.widgets.rail import Rail
from llmb_tui.watch.state import RunState
from llmb_tui.wizard.steps import StepId

FOLDER = Path(__file__).parent
SIZE = (120, 36)
SHOWN_AT_STEP = 31
DEADLINE_S = 120.0


async def until(pilot: Pilot[None], true: Callable[[], bool]) -> None:
    """Wait for what threads bring about."""
    ends = time.monotonic() + DEADLINE_S
    while not true():
        if time.monotonic() > ends:
            sys.exit(f"the walk got stuck at {pilot.app.screen}")
        await pilot.pause(0.02)


async def choose(pilot: Pilot[None], value: str) -> None:
    """Move the focused list to a choice."""
    choices = pilot.app.focused
    while isinstance(choices, ChoiceList) and choices.chosen != value:
        await pilot.press("down")


def mark(pilot: Pilot[None], step: StepId) -> str:
    """How the rail marks a step."""
    return next(one.mark for one in pilot.app.screen.query_one(Rail).steps if one.step is step)


def run_state(app: LlmbApp) -> RunState:
    """What the run's screen shows."""
    state = app.screen.run_state if isinstance(app.screen, RunScreen) else None
    return state or RunState("")


def take(pilot: Pilot[None], name: str) -> None:
    """Save the screen as it is."""
    (FOLDER / f"{name}.svg").write_text(pilot.app.export_screenshot(title="llmb-tui"), encoding="utf-8")


async def walk(app: LlmbApp) -> None:
    """From the first screen to a verdict, with a picture at each step that the README shows."""
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: any(preview.plan for preview in app.screen.query(Preview)))
        await pilot.pause()
        await choose(pilot, "nemotron4@25.04/15b")
        await pilot.press("enter", "tab")
        await choose(pilot, "fp8")
        await pilot.press("enter")
        await choose(pilot, "64")
        await until(pilot, lambda: mark(pilot, StepId.CLUSTER) == "done")
        take(pilot, "wizard-scale")
        await pilot.press("5", "enter")
        await until(pilot, lambda: mark(pilot, StepId.INSTALL) == "done")
        await pilot.press("enter")
        await until(pilot, lambda: "#SBATCH" in str(app.screen.query_one("#script-text", Static).content))
        take(pilot, "wizard-review")
        await pilot.press("enter", "y")
        await until(pilot, lambda: isinstance(app.screen, RunScreen))
        await until(pilot, lambda: run_state(app).progress.steps_done >= SHOWN_AT_STEP)
        take(pilot, "run")
        await until(pilot, lambda: run_state(app).stage == "done")
        await pilot.press("q")
        await pilot.pause(0.3)
        await pilot.press("J")
        await pilot.pause(0.5)
        take(pilot, "jobs")


def main() -> None:
    """Make all pictures."""
    os.environ["TEXTUAL_ANIMATIONS"] = "none"
    with tempfile.TemporaryDirectory(prefix="llmb-tui-") as folder:
        root = Path(folder)
        with DemoCluster(root / "cluster") as cluster:
            services = Services(Places(root / "config", root / "state"))
            services.clusters.save(cluster.profile)
            asyncio.run(walk(LlmbApp(services)))
            cluster.end_jobs()
    from tests.rig.cluster import Rig  # noqa: PLC0415 - only where the pictures of a real login node are made

    if reason := Rig.unavailable():
        sys.exit(f"The pictures of a real login node were not made: {reason}.")
    from screenshots.on_rig import make  # noqa: PLC0415

    make(FOLDER)


if __name__ == "__main__":
    main()
