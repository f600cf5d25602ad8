"""Makes the pictures of the README by walking the real app on the embedded cluster: `python -m screenshots`."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

from textual.pilot import Pilot
from textual.widgets import Static

from llmb_tui.cluster.runai.cluster import runai_of
from llmb_tui.demo.cluster import DemoCluster
from llmb_tui.demo.runai.site import DemoRunai
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.dialogs import ConfirmDialog
from llmb_tui.ui.screens.jobs import JobsScreen, JobTable
from llmb_tui.ui.screens.results import ResultsScreen
from llmb_tui.ui.screens.suite import SuiteScreen
from llmb_tui.ui.screens.suite_watch import SuiteWatchScreen
from llmb_tui.ui.widgets.chart_view import ChartView
from llmb_tui.ui.widgets.keyed_table import KeyedTable
from llmb_tui.wizard.steps import StepId
from tests.kit.demo import end_jobs
from tests.kit.history import remember, weeks
from tests.kit.pilot import (
    NEMOTRON,
    SIZE,
    at_scale,
    choose,
    loaded,
    marks,
    on_screen,
    on_top,
    shown_run_state,
    submit,
    text_of,
    until,
)

FOLDER = Path(__file__).parent
SHOWN_AT_STEP = 31
RUNAI_SPEED = 30.0


def take(pilot: Pilot[None], name: str) -> None:
    """Save the screen as it is."""
    (FOLDER / f"{name}.svg").write_text(pilot.app.export_screenshot(title="llmb-tui"), encoding="utf-8")


async def walk(app: LlmbApp) -> None:
    """From the first screen to a verdict, with a picture at each step that the README shows."""
    async with app.run_test(size=SIZE) as pilot:
        wizard = await at_scale(pilot, NEMOTRON)
        await pilot.press("2", "tab")
        await choose(pilot, "dtype", "fp8")
        await pilot.press("enter")
        await choose(pilot, "scale", "64")
        await until(pilot, lambda: marks(pilot)[StepId.CLUSTER] == "done", "the cluster is checked")
        take(pilot, "wizard-scale")
        await pilot.press("5", "enter")
        await until(pilot, lambda: marks(pilot)[StepId.INSTALL] == "done", "all is installed")
        await pilot.press("enter")
        await until(pilot, lambda: "#SBATCH" in str(wizard.query_one("#script-text", Static).content), "the script")
        take(pilot, "wizard-review")
        await submit(pilot)
        await until(pilot, lambda: shown_run_state(pilot).progress.steps_done >= SHOWN_AT_STEP, "some steps")
        take(pilot, "run")
        await until(pilot, lambda: shown_run_state(pilot).stage == "done", "the verdict")
        await pilot.press("q", "J")
        await on_top(pilot, JobsScreen)
        await until(pilot, lambda: app.screen.query_one(JobTable).row_count, "the run is listed")
        await pilot.pause(0.5)
        take(pilot, "jobs")


async def walk_suite(app: LlmbApp) -> None:
    """Three scales in two precisions: as they are chosen, and under way."""
    async with app.run_test(size=SIZE) as pilot:
        await at_scale(pilot, NEMOTRON)
        await until(pilot, lambda: marks(pilot)[StepId.CLUSTER] == "done", "the cluster is checked")
        await choose(pilot, "scale", "16")
        await pilot.press("S")
        await on_top(pilot, SuiteScreen)
        await until(pilot, lambda: "288 free nodes" in text_of(app, "#suite-sums"), "the cluster was asked")
        await pilot.press("down", "space", "down", "space", "tab", "down", "space")
        app.screen.query_one("#suite-at-most").focus()
        await pilot.press("2", "escape")
        await until(pilot, lambda: "at most 2 at a time" in text_of(app, "#suite-sums"), "the rows")
        take(pilot, "suite")
        await pilot.press("s")
        await on_top(pilot, ConfirmDialog)
        await pilot.press("y")
        await on_top(pilot, SuiteWatchScreen)
        some = ("not submitted", "PASS")
        await until(pilot, lambda: all(words in text_of(app, "#watch-sums") for words in some), "a verdict")
        take(pilot, "suite-watch")


async def walk_runai(app: LlmbApp) -> None:
    """A workload on a Run:ai cluster while it trains."""
    async with app.run_test(size=SIZE) as pilot:
        await at_scale(pilot, "nemotron4-340b@25.12/340b")
        await choose(pilot, "scale", "256")
        await until(pilot, lambda: marks(pilot)[StepId.INSTALL] == "done", "the cluster is checked")
        await pilot.press("6")
        await submit(pilot)
        await until(pilot, lambda: shown_run_state(pilot).progress.steps_done >= SHOWN_AT_STEP, "some steps")
        take(pilot, "run-on-runai")


async def walk_results(app: LlmbApp) -> None:
    """Twelve made-up weeks on two clusters: the groups, then the runs of the one that became slower."""
    async with app.run_test(size=SIZE) as pilot:
        await loaded(pilot)
        await pilot.press("R")
        await on_top(pilot, ResultsScreen)
        await until(pilot, lambda: app.screen.query_one(KeyedTable).row_count, "the groups")
        await until(pilot, lambda: "slower since" in on_screen(app), "all logs are read")
        take(pilot, "results")
        await pilot.press("down", "down", "enter")
        await until(pilot, lambda: app.screen.query_one(ChartView).chart, "the chart")
        await pilot.pause()
        take(pilot, "results-over-time")


def main() -> None:
    """Make all pictures."""
    os.environ["TEXTUAL_ANIMATIONS"] = "none"
    with tempfile.TemporaryDirectory(prefix="llmb-tui-") as folder:
        root = Path(folder)
        with DemoCluster(root / "cluster") as cluster:
            services = Services(UserPaths(root / "config", root / "state"))
            services.clusters.save(cluster.profile)
            asyncio.run(walk(LlmbApp(services)))
            # With answers of its own: those of the walk before are another precision.
            services = Services(UserPaths(root / "suite-config", root / "suite-state"))
            services.clusters.save(cluster.profile)
            asyncio.run(walk_suite(LlmbApp(services)))
            end_jobs(cluster)
        with DemoRunai(root / "runai", speed=RUNAI_SPEED) as site:
            services = Services(UserPaths(root / "runai-config", root / "runai-state"))
            services.clusters.save(site.profile)
            runai_of(services.clusters.cluster(site.profile)).secret.give(site.app_secret)
            asyncio.run(walk_runai(LlmbApp(services)))
    with tempfile.TemporaryDirectory(prefix="llmb-tui-") as folder:
        services = Services(UserPaths(Path(folder) / "config", Path(folder) / "state"))
        for past in weeks():
            remember(services.runs, past, time.time())
        asyncio.run(walk_results(LlmbApp(services)))
    from tests.rig.cluster import Rig  # noqa: PLC0415 - only where the pictures of a real login node are made

    if reason := Rig.unavailable():
        sys.exit(f"The pictures of a real login node were not made: {reason}.")
    from screenshots.on_rig import make  # noqa: PLC0415

    make(FOLDER)


if __name__ == "__main__":
    main()
