"""The printed table of `doctor` on the embedded cluster."""

from __future__ import annotations

from llmb_tui.demo.cluster import DemoCluster
from tests.journey.journey_selections import NEMOTRON, Call


def test_a_ready_cluster_has_one_line_for_each_check(call: Call, cluster: DemoCluster) -> None:
    lines = call("doctor", cluster.profile.name, *NEMOTRON).stdout.splitlines()
    assert ["ok", "Scheduler", "Slurm", "22.05.8"] in [line.split() for line in lines]
    assert any(line.split()[:2] == ["ok", "PMIx"] for line in lines)
    assert lines[-1].endswith("0 failed: ready")
    assert not any("(needed: " in line for line in lines)


def test_each_error_names_the_requirement_and_the_fix(call: Call, cluster: DemoCluster) -> None:
    blackwell = ("-w", "nemotron4-340b", "-s", "340b", "--gpu", "b200", "-d", "fp8", "--scale", "128")
    lines = call("doctor", cluster.profile.name, *blackwell, code=1).stdout.splitlines()
    gpu_line = next(line for line in lines if line.split()[:2] == ["failed", "GPUs"])
    assert gpu_line.endswith("8 × h100")
    problem = next(line for line in lines if line.startswith("✗ failed: GPUs (needed: 8 × B200 in a node): "))
    assert problem.endswith(".")
    assert lines[-1].endswith("failed: not ready")
