"""The training itself, from the screen to the verdict: NeMo's own recipe, shrunken, in a real job of two nodes.

Nothing is patched: the program plans it from a preset of the user's own, submits it over SSH, and follows its log. What
stands in is the container, which the log says, and the GPUs: `python` in there is a NeMo of this machine on its CPU.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from llmb_tui.store.paths import UserPaths
from llmb_tui.ui.app import LlmbApp
from llmb_tui.watch.parse import StepParser
from llmb_tui.wizard.steps import StepId
from tests.journey.test_rig_journey import brought_image, remote_log, saved, walk_to_review
from tests.kit.pilot import SIZE, choose, loaded, marks, shown_run_state, submit, until
from tests.kit.runs import direct_spec
from tests.nemo.shrunken import PRESET, container_options
from tests.rig.cluster import Rig

STEPS, BATCH = 30, 16
PATIENCE_S = 150.0
"""Two ranks import NeMo, on two cores that other processes use, too."""


@pytest.fixture
def places(tmp_path: Path) -> UserPaths:
    """A user's directories, with the shrunken preset as a custom one."""
    places = UserPaths(tmp_path / "config", tmp_path / "state")
    places.presets.mkdir(parents=True)
    shutil.copy(PRESET, places.presets)
    return places


async def watch_until(pilot: Pilot[None], condition: Callable[[], bool]) -> None:
    """Wait for a state of the run, which may take long; fail at once if the run fails or is cancelled before."""

    def is_fulfilled() -> bool:
        now = shown_run_state(pilot)
        assert condition() or now.stage not in ("failed", "cancelled"), now.progress
        return condition()

    await until(pilot, is_fulfilled, "the run's state", deadline_s=PATIENCE_S)


async def test_from_the_screen_to_a_verdict(rig: Rig, places: UserPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    services = saved(places, rig.profile(install_dir=str(brought_image(rig)), **container_options(rig, "2.2.1")))
    app = LlmbApp(services)
    async with app.run_test(size=SIZE) as pilot:
        await loaded(pilot)
        await choose(pilot, "workload", "shrunken@1.0/tiny")
        await until(pilot, lambda: marks(pilot)[StepId.CLUSTER] == "done", "the saved cluster answers and is ticked")
        await walk_to_review(pilot)
        await submit(pilot)
        await watch_until(pilot, lambda: shown_run_state(pilot).progress.steps_done > 0)
        seen_first = shown_run_state(pilot).progress.steps_done
        await watch_until(pilot, lambda: shown_run_state(pilot).stage == "done")
        final = shown_run_state(pilot)

    log = remote_log(services)
    run = services.runs.all()[0]
    assert (services.runs.folder(run.id) / "log").read_bytes() == log
    text = log.decode()
    assert f"no container was started for image {direct_spec(run).container_image}" in text
    assert text.count("\nNeMo 2.2.1\n") == 1
    assert "\ntrainer.num_nodes = 2\n" in text
    assert text.index('\ntrainer.accelerator = "cpu"\n') < text.index("Training epoch 0, iteration 0/29")
    assert text.count("iteration 0/29") == 1
    assert "All distributed processes registered. Starting with 2 processes" in text

    last = StepParser("nemo2").feed(log)[-1]
    assert (last.index, last.total, last.consumed_samples) == (STEPS - 1, STEPS, STEPS * BATCH)
    assert 0 < seen_first < STEPS, "the log is followed while the job runs"
    assert final.progress.steps_done == STEPS
    verdict = final.verdict
    assert verdict is not None
    assert run.plan.estimate is not None
    assert verdict.measured_s == last.step_time_s
    assert verdict.ratio == pytest.approx(run.plan.estimate.step_time_s / verdict.measured_s)
    assert (verdict.result == "PASS") == (verdict.ratio >= 0.95)
