"""Suites from a flag or a file to their result, by the verbs, on the embedded cluster."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from llmb_tui.cluster.profiles import save_profile
from llmb_tui.demo.cluster import DemoCluster
from llmb_tui.demo.slurm.store import Store
from llmb_tui.plan.make import plan
from llmb_tui.plan.selection import Selection
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from llmb_tui.watch.timing import Timing
from tests.journey.conftest import make_call
from tests.journey.journey_selections import NEMOTRON, Call
from tests.kit import verbs
from tests.kit.demo import end_jobs, fault

FAST = 1500.0
SELECTION = NEMOTRON[:-2]
FILE = """
cluster = "demo"
workloads = ["nemotron4@25.04"]
sizes = ["15b"]
precisions = ["fp8"]
scales = [16]
repeats = 3
"""
Answer = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("suites")


@pytest.fixture(scope="module", autouse=True)
def _quick() -> Iterator[None]:
    with patch("llmb_tui.services.Timing", lambda: Timing(0.5, 0.5, 0.5)):
        yield


@pytest.fixture(scope="module")
def demo(home: Path) -> Iterator[DemoCluster]:
    """A cluster for all tests of this file, with the recipe installed."""
    with DemoCluster(home / "cluster", speed=FAST) as cluster:
        save_profile(UserPaths(home / "config", home / "state").clusters, cluster.profile)
        make_call(verbs.run, home)("install", "demo", *NEMOTRON)
        yield cluster
        end_jobs(cluster)


@pytest.fixture
def suite(demo: DemoCluster, home: Path) -> Call:
    assert demo.server
    run = make_call(verbs.run, home)
    return lambda *words, code=0: run("suite", *words, code=code)


def watch_to_end(suite: Call, kind: str, *words: str, code: int = 0) -> dict[str, Any]:
    """Plan, confirm and watch a suite; returns the last document of the watch."""
    selection = (kind, *(SELECTION[:2] if kind == "acceptance" else SELECTION), *words, "--cluster", "demo")
    planned = json.loads(suite("plan", *selection, "--offline", "--json").stdout)
    submitted = json.loads(suite("submit", *selection, "--yes", "--json").stdout)
    assert [row["key"] for row in submitted["rows"]] == [row["key"] for row in planned["rows"]]
    # The full run of a tune suite has another layout than the plan.
    assert planned["gpu_hours"] == pytest.approx(submitted["gpu_hours"], rel=0.01 if kind == "tune" else None)
    lines = suite("watch", submitted["id"], "--json", code=code).stdout.splitlines()
    document: dict[str, Any] = json.loads(lines[-1])
    assert document["over"]
    return document


def test_scaling(suite: Call) -> None:
    planned = json.loads(suite("plan", "scaling", *SELECTION, "--cluster", "demo", "--json").stdout)
    assert [row["selection"]["scale"] for row in planned["rows"]][-1] == 2048
    assert planned["free_nodes"] == 288
    assert 0 < planned["parallel_s"] < planned["serial_s"]
    document = watch_to_end(suite, "scaling", "--max-scale", "32")
    assert (document["verdicts"]["PASS"], document["counts"]["done"]) == (2, 2)


def test_precision(suite: Call) -> None:
    planned = json.loads(
        suite("plan", "precision", *SELECTION, "--scale", "16", "--cluster", "demo", "--offline", "--json").stdout
    )
    assert [row["selection"]["dtype"] for row in planned["rows"]] == ["bf16", "fp8"]


def test_repeat_reports_its_noise(suite: Call) -> None:
    assert "(95 %, 2 runs)" in watch_to_end(suite, "repeat", "--scale", "16", "--count", "2")["lines"][0]


def test_acceptance_of_a_slow_cluster_fails(suite: Call, demo: DemoCluster) -> None:
    fault(demo, "slow", "1.2")
    try:
        document = watch_to_end(suite, "acceptance", "--max-scale", "16", "--shuffle", "3", code=3)
    finally:
        fault(demo, "slow", None)
    assert (document["result"], document["verdicts"]["FAIL"]) == ("FAIL", 2)
    assert document["lines"][0] == "FAIL: 0 of 2 configurations pass."


def test_tune_ends_with_the_full_run_of_the_best(suite: Call) -> None:
    document = watch_to_end(suite, "tune", "--scale", "16", "--count", "2")
    assert document["lines"][0].startswith("full run of the best: ")
    assert any("The estimates were off by" in line for line in document["lines"])
    assert [row["state"] for row in document["rows"]] == ["done"] * 3


@pytest.fixture
def waiting(demo: DemoCluster) -> Iterator[None]:
    """Keep the jobs from starting and ending without the test."""
    fault(demo, "queue-wait", "1e9")
    yield
    fault(demo, "queue-wait", None)


@pytest.mark.usefixtures("waiting")
def test_a_suite_file_is_resumed_and_refused_after_a_change(suite: Call, tmp_path: Path) -> None:
    file = tmp_path / "weekly.toml"
    file.write_text(FILE)
    first = suite("submit", str(file), "--yes")
    again = suite("submit", str(file), "--yes", "--json")
    suite_document = json.loads(again.stdout)
    assert f"Suite {suite_document['id']} is active" in again.stderr
    assert suite_document["id"] in first.stderr
    assert len({row["run"] for row in suite_document["rows"]}) == 3
    file.write_text(FILE.replace("repeats = 3", "repeats = 4"))
    assert "--new" in suite("submit", str(file), "--yes", code=1).stderr
    suites = json.loads(suite("list", "--json").stdout)
    assert [entry["name"] for entry in suites].count("weekly") == 1
    file.write_text(FILE)
    cancelled = json.loads(suite("cancel", str(file), "--yes", "--json").stdout)
    assert (cancelled["id"], len(cancelled["cancelled"])) == (suite_document["id"], 3)
    document = json.loads(suite("watch", suite_document["id"], "--json", code=4).stdout.splitlines()[-1])
    assert (document["over"], document["counts"]["cancelled"]) == (True, 3)
    assert json.loads(suite("cancel", suite_document["id"], "--json").stdout)["cancelled"] == []


@pytest.mark.usefixtures("waiting")
def test_slurm_alone_ends_a_chain(suite: Call, demo: DemoCluster, home: Path, tmp_path: Path) -> None:
    file = tmp_path / "chain.toml"
    file.write_text(FILE + "chain = true\nstop_after = 1\n")
    submitted = json.loads(suite("submit", str(file), "--yes", "--json").stdout)
    assert (submitted["counts"]["not_sent"], len(submitted["rows"])) == (0, 3)
    jobs = Store(demo.root / "slurm").all()[-3:]
    assert [job.dependency for job in jobs] == ["", *(f"afterok:{job.id}" for job in jobs[:-1])]
    make_call(verbs.run, home)("cancel", submitted["rows"][0]["run"], "--yes")
    document = json.loads(suite("watch", submitted["id"], "--json", code=4).stdout.splitlines()[-1])
    assert document["counts"]["cancelled"] == 3


def test_common_facts_of_all_rows_are_queried_once(demo: DemoCluster, home: Path) -> None:
    assert demo.server
    services = Services(UserPaths(home / "config", home / "state"))
    session = services.clusters.login_node("demo")
    session.connect()
    launcher, calls, checked_ = services.launcher.with_answer_cache(), [], []
    for scale in (16, 32, 32):
        selection = Selection("nemotron4", "25.04", "15b", "h100", "fp8", scale)
        request = services.request("demo", plan(services.catalog, selection))
        before = session.calls_last_minute
        evidence = launcher.evidence(request)
        calls.append(session.calls_last_minute - before)
        checked_.append({check.id: check for check in evidence.preflight.checks} if evidence.preflight else {})
        assert {step.status for step in evidence.steps} == {"done"}
    plain = services.launcher.evidence(request)
    assert plain.preflight is not None
    assert {check.id: check.status for check in plain.preflight.checks} == {
        name: check.status for name, check in checked_[1].items()
    }
    assert [checks["nodes"].needed for checks in checked_] == ["2 × 8 H100", "4 × 8 H100", "4 × 8 H100"]
    assert calls[0] > 5
    assert calls[1:] == [1, 0], "one trial of the other job by Slurm, and no call once its result is known"
    services.close()
