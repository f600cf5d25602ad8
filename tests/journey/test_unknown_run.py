"""Runs whose submission is unknown: the verbs ask the cluster unprompted, and report a state as unknown."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from llmb_tui.demo.cluster import DemoCluster
from llmb_tui.launch.runs import Runs
from llmb_tui.plan import make
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from llmb_tui.ui.app import LlmbApp
from tests.journey.journey_selections import NEMOTRON, Call
from tests.kit.demo import fault
from tests.kit.pilot import SIZE, loaded, shown_run_state, until
from tests.kit.runs import NEMOTRON as SELECTION
from tests.kit.runs import delivery_of, direct_spec


@pytest.fixture
def unknown(call: Call, cluster: DemoCluster, places: UserPaths) -> str:
    """Id of a submitted run; the answer of its submission was lost."""
    fault(cluster, "hang-at-step", "3")
    call("install", cluster.profile.name, *NEMOTRON)
    run_id = call("submit", "--cluster", cluster.profile.name, *NEMOTRON, "--yes").stdout.strip()
    _forget(places, run_id)
    return run_id


def _forget(places: UserPaths, run_id: str) -> None:
    runs = Runs(places)
    runs.save(replace(runs.load(run_id), submission="unknown", job_ids=(), note="The cluster has not answered yet."))


@pytest.mark.parametrize("cluster", [100.0], indirect=True)  # a faster job could end before its cancel
def test_jobs_watch_and_cancel_reconcile_an_unknown_run(call: Call, places: UserPaths, unknown: str) -> None:
    (run,) = json.loads(call("jobs", "--json").stdout)
    assert (run["id"], len(run["job_ids"])) == (unknown, 1)
    _forget(places, unknown)
    assert json.loads(call("watch", unknown, "--once", "--json").stdout)["job_ids"] == run["job_ids"]
    _forget(places, unknown)
    assert json.loads(call("cancel", unknown, "--json").stdout) == {"id": unknown, "cancelled": run["job_ids"]}


def test_a_cluster_that_does_not_answer_leaves_it_unknown(call: Call, cluster: DemoCluster, unknown: str) -> None:
    cluster.stop()
    done = call("jobs", "--json", code=2)
    (same,) = json.loads(done.stdout)
    assert (same["state"], same["job_ids"]) == ("unknown", [])
    assert f"it is not known yet whether run {unknown} was submitted" in done.stderr
    done = call("watch", unknown, "--once", "--json", code=2)
    assert json.loads(done.stdout)["state"] == "unknown"
    assert f"it is not known yet whether run {unknown} was submitted" in done.stderr
    done = call("cancel", unknown, code=2)
    assert "Nothing was cancelled" in done.stderr


def test_a_submission_that_never_began_is_withdrawn(call: Call, places: UserPaths, unknown: str) -> None:
    run = Runs(places).load(unknown)
    for trace in Path(delivery_of(run).place.folder).iterdir():
        trace.unlink()
    for output in Path(direct_spec(run).task_dir).glob("sbatch_*"):
        output.unlink()
    (entry,) = json.loads(call("jobs", "--json").stdout)
    assert entry["state"] == "withdrawn"
    assert "withdrawn" in str(entry["verdict"]["reasons"])
    assert json.loads(call("cancel", unknown, "--json").stdout) == {"id": unknown, "cancelled": []}


def test_an_intent_is_submitted_once_and_as_it_was_confirmed(
    call: Call, cluster: DemoCluster, places: UserPaths
) -> None:
    call("install", cluster.profile.name, *NEMOTRON)
    services = Services(places)
    plan = make.plan(services.catalog, SELECTION)
    prepared = services.launcher.prepare(services.request(cluster.profile.name, plan))
    services.runs.save_script(prepared.run.id, prepared.script)
    services.runs.save(prepared.run)
    resume = ("submit", "--resume", prepared.run.id, "--yes")
    services.clusters.save(replace(cluster.profile, account="other"))
    assert "would now result in a different job" in call(*resume, code=1).stderr
    services.clusters.save(cluster.profile)
    submitted = json.loads(call(*resume, "--json").stdout)
    assert (submitted["id"], len(submitted["job_ids"])) == (prepared.run.id, 1)
    again = call(*resume)
    assert again.stdout.strip() == prepared.run.id
    assert "It is not submitted again." in again.stderr
    assert services.runs.load(prepared.run.id).job_ids == tuple(submitted["job_ids"])
    assert (services.runs.folder(prepared.run.id) / "script.sh").read_text() == prepared.script


def test_without_a_terminal_and_yes_the_cluster_is_not_contacted(call: Call, cluster: DemoCluster) -> None:
    name = cluster.profile.name
    cluster.stop()  # an attempt to connect would fail with exit code 2
    done = call("submit", "--cluster", name, *NEMOTRON, code=1)
    assert "Nothing was submitted" in done.stderr
    assert "--yes" in done.stderr
    assert json.loads(call("jobs", "--json").stdout) == []


async def test_the_run_screen_reconciles_an_unknown_run_when_it_opens(places: UserPaths, unknown: str) -> None:
    app = LlmbApp(Services(places))
    async with app.run_test(size=SIZE) as pilot:
        await loaded(pilot)
        await pilot.press("w")
        await until(pilot, lambda: shown_run_state(pilot).progress.steps_done > 0, "the run is found and watched")
    assert Runs(places).load(unknown).submission == "submitted"


async def test_the_list_of_runs_reconciles_an_unknown_run(places: UserPaths, unknown: str) -> None:
    app = LlmbApp(Services(places))
    async with app.run_test(size=SIZE) as pilot:
        await loaded(pilot)
        await pilot.press("J")
        await until(pilot, lambda: Runs(places).load(unknown).submission == "submitted", "the run is submitted")
