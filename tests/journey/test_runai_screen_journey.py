"""The whole journey by keyboard on the simulated Run:ai site, with suspend, resume and cancel. Nothing is patched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from llmb_tui.cluster.runai.cluster import runai_of
from llmb_tui.cluster.runai.profile import RunaiProfile
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.dialogs import ConfirmDialog
from llmb_tui.ui.screens.llmb_runs import LlmbRunsScreen
from llmb_tui.ui.screens.run import RunScreen
from llmb_tui.ui.widgets.choices import ChoiceList
from llmb_tui.watch.timing import Timing
from llmb_tui.wizard.steps import StepId
from tests.kit.pilot import (
    actions,
    choose,
    loaded,
    marks,
    on_screen,
    on_top,
    shown_run_state,
    step_of,
    submit,
    text_of,
    until,
)
from tests.kit.runai import FaultySite, runai_site

SIZE = (120, 36)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[FaultySite]:
    with runai_site(tmp_path / "runai", speed=1.0) as site:
        yield site


def open_app(places: UserPaths, profile: RunaiProfile, secret: str) -> LlmbApp:
    services = Services(places, timing=Timing(look_every_s=0.5))
    services.clusters.save(profile)
    runai_of(services.clusters.cluster(profile)).secret.give(secret)
    return LlmbApp(services)


async def walk(pilot: Pilot[None]) -> None:
    """Go from the first screen to the run's screen."""
    await loaded(pilot)
    await choose(pilot, "workload", "nemotron4-340b@25.12/340b")
    await pilot.press("3")
    await choose(pilot, "scale", "256")
    our_script, upstream = pilot.app.screen.query_one("#procedure", ChoiceList).shown
    assert our_script.disabled_reason is None
    assert "Slurm" in str(upstream.disabled_reason)
    await until(pilot, lambda: marks(pilot)[StepId.CLUSTER] == "done", "the cluster answers and is marked")
    await pilot.press("5")
    assert "the workload brings its files" in on_screen(pilot.app)
    assert "there is no login node" in on_screen(pilot.app)
    assert not pilot.app.screen.active_bindings["K"].enabled
    await pilot.press("enter")
    assert step_of(pilot) is StepId.REVIEW
    await submit(pilot)


async def confirm(pilot: Pilot[None], key: str) -> str:
    """Press a key and confirm the question that follows; returns that question."""
    await pilot.press(key)
    await on_top(pilot, ConfirmDialog)
    question = on_screen(pilot.app)
    await pilot.press("y")
    await on_top(pilot, RunScreen)
    return question


async def test_from_the_first_screen_to_a_verdict_on_runai(places: UserPaths, site: FaultySite) -> None:
    app = open_app(places, site.profile, site.app_secret)
    async with app.run_test(size=SIZE) as pilot:
        await walk(pilot)
        await until(pilot, lambda: shown_run_state(pilot).stage == "queued", "it waits")
        site.skip(300)
        await until(pilot, lambda: shown_run_state(pilot).progress.steps_done > 2, "it trains")
        assert "suspend" in actions(app.screen)
        assert "resume" not in actions(app.screen)
        assert "releases its nodes" in await confirm(pilot, "p")
        site.skip(30)
        await until(pilot, lambda: shown_run_state(pilot).stage == "suspended", "the run is suspended")
        assert "SUSPENDED" in text_of(app, "RunHeader")
        assert "suspended" in text_of(app, "StageLine")
        await confirm(pilot, "p")
        site.skip(300)
        await until(pilot, lambda: shown_run_state(pilot).stage == "measuring", "the run trains again")
        site.skip(7200)
        await until(pilot, lambda: shown_run_state(pilot).stage == "done", "the run is done")
        final = shown_run_state(pilot)
        assert final.verdict is not None
        assert final.verdict.result in ("PASS", "WARN")
        assert "Slurm" not in on_screen(app)
        assert "suspend" not in actions(app.screen)
        await pilot.press("q", "J", "o")
        await on_top(pilot, LlmbRunsScreen)
        await until(pilot, lambda: "there is no login node" in on_screen(app), "the reason for the empty list is shown")


async def test_without_a_kubeconfig_the_log_is_missed_and_a_cancel_deletes(places: UserPaths, site: FaultySite) -> None:
    app = open_app(places, replace(site.profile, kubeconfig=None), site.app_secret)
    async with app.run_test(size=SIZE) as pilot:
        await walk(pilot)
        site.skip(300)
        await until(pilot, lambda: "RUNNING" in text_of(app, "RunHeader"), "it runs")
        await until(pilot, lambda: "/workloads" in text_of(app, "#notice"), "the cluster's page is shown")
        assert "workload is deleted" in await confirm(pilot, "c")
        site.skip(30)
        await until(pilot, lambda: shown_run_state(pilot).stage == "cancelled", "the run is cancelled")
        assert "has no kubeconfig" in shown_run_state(pilot).no_verdict
        assert site.request_count("DELETE", "/workloads/distributed/") == 1
