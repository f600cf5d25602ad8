"""Checks of a preflight on a Run:ai cluster, with their remedies."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from llmb_tui.cluster.runai.cluster import RunaiCluster
from llmb_tui.cluster.runai.profile import RunaiProfile
from llmb_tui.demo.runai import documents
from llmb_tui.launch.procedure_loader import procedure
from llmb_tui.plan.selection import Selection
from llmb_tui.preflight.kinds import cluster_checks
from llmb_tui.preflight.needs import RunaiNeeds
from llmb_tui.preflight.report import Check, Preflight
from llmb_tui.preflight.run import run_preflight
from tests.kit.runai import Fault, FaultySite, runai_site
from tests.launch.runai.workload_cases import NEMOTRON_340B, request_of

LLAMA = Selection("llama3.1", "25.04", "70b", "h100", "bf16", 64)
Look = Callable[..., Preflight]


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultySite]:
    with runai_site(tmp_path_factory.mktemp("runai"), speed=1.0) as site:
        yield site


@pytest.fixture
def demo(started: FaultySite, monkeypatch: pytest.MonkeyPatch) -> FaultySite:
    """The site, without changes by earlier tests."""
    monkeypatch.setattr("llmb_tui.cluster.runai.api.FIRST_PAUSE_S", 0.0)
    started.faults.clear()
    return started


@pytest.fixture
def look(demo: FaultySite) -> Look:
    def look(selection: Selection | None = NEMOTRON_340B, *, hub_tokenizer: bool = False, **profile: Any) -> Preflight:
        changed: RunaiProfile = replace(demo.profile, **profile)
        needs = RunaiNeeds(changed)
        if selection is not None:
            request = request_of(selection, changed, hub_tokenizer=hub_tokenizer)
            needs = procedure("runai").needs(request)  # type: ignore[assignment]
        with contextlib.closing(RunaiCluster(changed)) as cluster:
            cluster.secret.give(demo.app_secret)
            return run_preflight(cluster, cluster_checks(needs))

    return look


def check_named(report: Preflight, name: str) -> Check:
    (check,) = (check for check in report.checks if check.id == name)
    return check


def assert_check(report: Preflight, name: str, status: str, found: str, needed: str, fix: str) -> None:  # noqa: PLR0917
    check = check_named(report, name)
    assert (check.status, found in check.found, needed in check.needed) == (status, True, True), check
    assert fix in check.fix
    assert bool(check.fix) == (status != "ok")


def test_all_is_well(look: Look) -> None:
    report = look(image_pull_secret="dockerreg-nvcr")
    assert {check.id: check.status for check in report.checks} == dict.fromkeys(
        "login clock account cluster gpus gpu-type claims pull-secret image".split(), "ok"
    )
    assert report.exit_code == 0
    assert all(check.found and check.needed for check in report.checks)
    assert "256 deserved, at most 512" in check_named(report, "gpus").found
    assert check_named(report, "image").needed.startswith("nvcr.io/nvidia/nemo:")


def test_without_a_plan_only_the_cluster_is_checked(look: Look) -> None:
    assert [check.id for check in look(None).checks] == ["login", "clock", "account", "cluster"]


@pytest.mark.parametrize(
    ("profile", "selection", "check", "found", "needed", "fix"),
    [
        ({"project": "absent"}, NEMOTRON_340B, "account", "sees no such project", "absent", "Set one of"),
        ({"mounts": ("d:/data:nowhere",)}, NEMOTRON_340B, "claims", "llmb-data, scratch", "nowhere", "Data sources"),
        ({"node_pool": "a100"}, NEMOTRON_340B, "gpus", "no quota there", "256 GPUs in a100", "another node pool"),
        ({"node_pool": "a100"}, NEMOTRON_340B, "gpu-type", "no node with a GPU", "32 nodes", "node pool"),
        ({}, replace(NEMOTRON_340B, scale=1024), "gpus", "at most 512", "1024 GPUs", "fewer GPUs"),
        ({"node_pool": "b200"}, LLAMA, "gpu-type", "8 × NVIDIA-B200", "8 nodes with 8 × H100", "node pool with"),
        ({"image_pull_secret": "none"}, LLAMA, "pull-secret", "not among", "none", "under Credentials"),
    ],
)  # fmt: skip
def test_each_wrong_request_is_found_with_its_remedy(  # noqa: PLR0917
    look: Look, profile: dict[str, Any], selection: Selection, check: str, found: str, needed: str, fix: str
) -> None:
    report = look(selection, **profile)
    assert_check(report, check, "failed", found, needed, fix)
    assert report.exit_code == 1, "the request is wrong, not the cluster"
    assert not report.passed


def test_more_than_the_project_deserves_may_be_preempted(look: Look) -> None:
    report = look(replace(NEMOTRON_340B, scale=512))
    assert_check(report, "gpus", "warning", "256 deserved", "512 GPUs", "may be preempted")
    assert report.passed


def test_nodes_that_are_not_ready_are_waited_for(look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = documents.nodes()
    of_pool = [node for node in nodes if node["nodePool"] == "default"]
    monkeypatch.setattr(documents, "nodes", lambda: nodes)
    most = replace(LLAMA, scale=8 * len(of_pool))
    assert check_named(look(most), "gpu-type").status == "ok"
    of_pool[0]["status"] = "NotReady"
    report = look(most)
    assert_check(
        report,
        "gpu-type",
        "warning",
        f"{len(of_pool) - 1} ready of {len(of_pool)}",
        "H100",
        "enough other nodes are ready",
    )
    nodes.remove(of_pool[0])
    assert_check(look(most), "gpu-type", "failed", f"of {len(of_pool) - 1} such", "H100", "fewer GPUs")


@pytest.mark.parametrize(
    ("gpu_type", "status", "found", "fix"),
    [
        ("NVIDIA-H100-80GB-HBM3", "ok", "8 × NVIDIA-H100-80GB-HBM3", ""),
        ("NVIDIA H100 80GB HBM3", "ok", "8 × NVIDIA H100", ""),
        ("NVIDIA-H100-PCIe", "warning", "8 × NVIDIA-H100-PCIe", "H100 SXM, and NVIDIA-H100-PCIe is slower"),
        ("NVIDIA-H100-NVL", "warning", "8 × NVIDIA-H100-NVL", "verdict of a run on it will be WARN"),
        ("NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", "failed", "1g.10gb (MIG slices)", "A MIG slice is not a whole H100."),
        ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "failed", "1g.5gb (MIG slices)", "A MIG slice is not a whole H100."),
        ("NVIDIA-GH200-480GB", "failed", "0 ready of 0 such nodes", "node pool with these nodes"),
        ("NVIDIA-H800", "failed", "0 ready of 0 such nodes", "node pool with these nodes"),
    ],
)
def test_the_gpus_of_a_pool_are_read_by_name(  # noqa: PLR0917
    look: Look, monkeypatch: pytest.MonkeyPatch, gpu_type: str, status: str, found: str, fix: str
) -> None:
    nodes = documents.nodes()
    for node in nodes:
        node["gpuInfo"]["gpuType"] = gpu_type
    monkeypatch.setattr(documents, "nodes", lambda: nodes)
    assert_check(look(LLAMA), "gpu-type", status, found, "H100", fix)


def test_a_hub_credential_has_to_be_there(look: Look) -> None:
    named = {"hub_credential": "huggingface"}
    assert check_named(look(LLAMA, hub_tokenizer=True, **named), "hub-credential").status == "ok"
    assert not [check for check in look(LLAMA, **named).checks if check.id == "hub-credential"]
    report = look(LLAMA, hub_tokenizer=True, hub_credential="other")
    assert_check(report, "hub-credential", "failed", "not among", "other", "under Credentials")
    assert report.exit_code == 1
    for name in ("nvcr", "genericsecret-huggingface"):
        report = look(LLAMA, hub_tokenizer=True, hub_credential=name)
        assert_check(report, "hub-credential", "failed", "", "HF_TOKEN", "under Credentials")


@pytest.mark.parametrize(
    ("path", "check"),
    [("/nodes$", "gpu-type"), ("/pvc$", "claims"), ("/credentials$", "pull-secret"), ("/clusters/[^/]+$", "cluster")],
)
@pytest.mark.parametrize("status", [403, 404])
def test_a_question_without_permission_does_not_block(
    look: Look, demo: FaultySite, path: str, check: str, status: int
) -> None:
    demo.faults.append(Fault("GET", path, status=status))
    report = look(image_pull_secret="dockerreg-nvcr")
    assert_check(report, check, "warning", "no permission to read it", "", "role")
    assert report.passed


def test_a_failed_question_is_not_a_missing_permission(look: Look, demo: FaultySite) -> None:
    demo.faults.append(Fault("GET", "/nodes$", 99, status=503))
    assert_check(look(), "gpu-type", "warning", "failed to list the nodes", "", "")


@pytest.mark.parametrize(("ahead_s", "words"), [(120, "behind of"), (-120, "ahead of")])
def test_a_clock_that_is_off(look: Look, monkeypatch: pytest.MonkeyPatch, ahead_s: float, words: str) -> None:
    def date(_handler: object, _timestamp: float | None = None) -> str:
        return formatdate(time.time() + ahead_s, usegmt=True)

    monkeypatch.setattr(BaseHTTPRequestHandler, "date_time_string", date)
    assert_check(look(None), "clock", "warning", words.split(maxsplit=1)[0], "at most 1 min", "NTP")


@pytest.mark.parametrize("state", ["Disconnected", "WaitingToConnect"])
def test_a_cluster_that_is_not_connected_gates(look: Look, monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    cluster = documents.cluster()
    monkeypatch.setattr(documents, "cluster", lambda: {**cluster, "status": {"state": state}})
    report = look()
    assert_check(report, "cluster", "failed", f"simulated, {state}", "Connected", "administrators")
    assert report.exit_code == 2
    assert "gpus" not in [check.id for check in report.checks], "no further check runs"


def test_a_project_that_is_not_ready_is_the_clusters_trouble(look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    project = documents.project

    def creating(*words: Any) -> Any:
        document = project(*words)
        return {**document, "status": {**document["status"], "phase": "Creating", "phaseMessage": "namespace is made"}}

    monkeypatch.setattr(documents, "project", creating)
    report = look()
    assert_check(report, "account", "failed", "Creating namespace is made", "Ready", "administrators")
    assert report.exit_code == 2


def test_a_claim_that_failed_is_the_clusters_trouble(look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    claims = documents.claims()
    failing = [{**claim, "status": {**(claim.get("status") or {}), "status": "Failed"}} for claim in claims]
    monkeypatch.setattr(documents, "claims", lambda: failing)
    report = look()
    assert_check(report, "claims", "failed", "Failed", "llmb-data", "administrators")
    assert report.exit_code == 2


def test_a_broken_connection_is_retried_during_the_preflight(look: Look, demo: FaultySite) -> None:
    demo.faults += [Fault("GET", path, refused=True) for path in ("/projects", "/nodes", "/pvc")]
    assert look().exit_code == 0
