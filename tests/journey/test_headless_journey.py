"""From a selection to a verdict without a person, by the verbs, on the embedded cluster."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from llmb_tui.demo.cluster import DemoCluster
from tests.journey.journey_selections import LLAMA_HYDRA, NEMOTRON, Call
from tests.kit.demo import fault

BOTH_FAMILIES = pytest.mark.parametrize(
    ("by", "selection"), [("program", NEMOTRON), ("call", LLAMA_HYDRA)], ids=["nemo2", "hydra"]
)
"""One of them as programs that know nothing of each other but what is on the disk."""


@pytest.fixture
def way(by: str, request: pytest.FixtureRequest) -> Call:
    """How verbs are run."""
    made: Call = request.getfixturevalue(by)
    return made


@BOTH_FAMILIES
def test_demo_ends_with_a_verdict(way: Call, selection: tuple[str, ...]) -> None:
    lines = way("demo", "--headless", *selection).stdout.splitlines()
    assert re.fullmatch(r"verdict: PASS \d+\.\d % of published", lines[-1])
    stages = [line.split(":")[0] for line in lines if not line.startswith(" ")]
    assert stages == ["plan", "connect", "preflight", "install", "render", "submit", "watch", "verdict"]
    assert "simulated" in lines[1]


@BOTH_FAMILIES
def test_the_verbs_go_the_same_way(way: Call, cluster: DemoCluster, selection: tuple[str, ...]) -> None:
    name = cluster.profile.name
    installed = json.loads(way("install", name, *selection, "--json").stdout)
    assert {step["status"] for step in installed} == {"done"}
    submitted = json.loads(way("submit", "--cluster", name, *selection, "--yes", "--json").stdout)
    run = submitted["id"]
    assert (submitted["cluster"], submitted["procedure"], len(submitted["job_ids"])) == (name, "direct", 1)

    changes = [json.loads(line) for line in way("watch", run, "--json").stdout.splitlines()]
    final = changes[-1]
    assert (final["state"], final["steps_done"], final["verdict"]["result"]) == ("done", 50, "PASS")
    assert [c["steps_done"] for c in changes] == sorted(c["steps_done"] for c in changes)

    assert json.loads(way("jobs", "--json").stdout) == [{**final, "note": "", "tags": []}]
    (result,) = json.loads(way("results", run, "--json").stdout)
    assert result.pop("result")["loss"]["falls"]
    assert result == final
    assert json.loads(way("watch", run, "--once", "--json").stdout) == final
    log = way("logs", run).stdout
    assert "train_step_timing in s" in log
    assert "\x1b" not in log
    followed = way("logs", run, "-f").stdout
    assert followed == log

    archive = str(cluster.root.parent / "evidence.tar.zst")
    exported = json.loads(way("export", run, "-o", archive, "--json").stdout)
    assert exported["missing"] == []
    checked = json.loads(way("verify", archive, "--json").stdout)
    assert {one["outcome"] for one in checked["findings"] if one["id"] and one["what"] != "simulated"} == {"agrees"}
    assert checked["runs"][0]["step_time_s"] == final["step_time_s"]


def test_clusters_and_doctor(call: Call, cluster: DemoCluster) -> None:
    name = cluster.profile.name
    (saved,) = json.loads(call("clusters", "--json").stdout)
    assert (saved["name"], saved["account"], saved["notice"]) == (name, "demo", cluster.profile.notice)
    report = json.loads(call("doctor", name, "--json").stdout)
    assert report["passed"]
    assert {"id", "title", "status", "found", "needed", "mend", "variables"} == set(report["checks"][0])
    blackwell = ("-w", "nemotron4-340b", "-s", "340b", "--gpu", "b200", "-d", "fp8", "--scale", "128")
    failed = json.loads(call("doctor", name, *blackwell, "--json", code=1).stdout)
    assert any(check["status"] == "failed" and check["mend"] for check in failed["checks"])


def test_logs_as_json_lines(call: Call, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"one \x1b[31mtwo\x1b[0m\nthree")
    lines = [json.loads(line) for line in call("logs", str(tmp_path / "log"), "--json").stdout.splitlines()]
    assert lines == [{"line": "one two"}, {"line": "three"}]


def test_a_run_that_is_not_installed_is_not_submitted(call: Call, cluster: DemoCluster) -> None:
    done = call("submit", "--cluster", cluster.profile.name, *NEMOTRON, "--yes", code=1)
    assert f"llmb-tui install {cluster.profile.name}" in done.stderr
    assert json.loads(call("jobs", "--json").stdout) == []


def test_without_a_terminal_submitting_needs_yes(call: Call, cluster: DemoCluster) -> None:
    done = call("submit", "--cluster", cluster.profile.name, *NEMOTRON, code=1)
    assert "--yes" in done.stderr


def test_a_dry_run_prints_the_script_and_submits_nothing(call: Call, cluster: DemoCluster) -> None:
    script = call("submit", "--cluster", cluster.profile.name, *NEMOTRON, "--dry-run").stdout
    assert script.startswith("#!/bin/bash")
    assert "#SBATCH --nodes=8" in script
    assert json.loads(call("jobs", "--json").stdout) == []


def test_a_slow_cluster_fails_and_exits_with_3(call: Call, cluster: DemoCluster) -> None:
    fault(cluster, "slow", "1.2")
    name = cluster.profile.name
    call("install", name, *NEMOTRON)
    run = call("submit", "--cluster", name, *NEMOTRON, "--yes").stdout.strip()
    assert "verdict: FAIL" in call("watch", run, code=3).stdout
    call("results", run, code=3)


@pytest.mark.parametrize("cluster", [60.0], indirect=True)  # faster, the job could be out of time before its cancel
def test_cancel_ends_the_job_and_the_watch(call: Call, cluster: DemoCluster) -> None:
    fault(cluster, "hang-at-step", "3")
    name = cluster.profile.name
    call("install", name, *NEMOTRON)
    run = call("submit", "--cluster", name, *NEMOTRON, "--yes").stdout.strip()
    call("cancel", run)
    final = json.loads(call("watch", run, "--json", code=4).stdout.splitlines()[-1])
    assert final["state"] == "cancelled"
    assert final["verdict"]["result"] is None
    assert final["verdict"]["reasons"]


def test_a_selection_that_cannot_be_launched_is_refused_before_anything(call: Call, cluster: DemoCluster) -> None:
    selection = (*NEMOTRON[:-1], "96")
    done = call("install", cluster.profile.name, *selection, code=1)
    assert "scale" in done.stderr


def test_an_unknown_cluster_and_an_unknown_run(call: Call) -> None:
    assert "nowhere" in call("install", "nowhere", *NEMOTRON, code=1).stderr
    assert "llmb-tui jobs" in call("watch", "abc123", code=1).stderr


def test_results_of_a_log_file_have_a_step_time_and_no_verdict(call: Call, tmp_path: Path) -> None:
    line = "Training epoch 0, iteration {0}/2 | global_step: {0} | train_step_timing in s: 2.{0} | loss: 1\n"
    log = tmp_path / "log-x_1_0.out"
    log.write_text("".join(line.format(i) for i in range(3)))
    (found,) = json.loads(call("results", str(log), "--json").stdout)
    assert (found["steps_done"], found["step_time_s"], found["verdict"]["result"]) == (3, 2.2, None)
    (same,) = json.loads(call("results", str(tmp_path), "--json").stdout)
    assert same["id"] == str(log)
