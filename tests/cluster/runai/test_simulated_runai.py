"""The client against the simulated control plane, which follows the published contract."""

from __future__ import annotations

import contextlib
import os
import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from llmb_tui.cluster.failures import DisconnectedError, NoAnswerError, UnreachableError
from llmb_tui.cluster.runai.api import RunaiApi
from llmb_tui.cluster.runai.kube import Kube
from llmb_tui.cluster.runai.pod_log import PodLog
from llmb_tui.cluster.runai.profile import RunaiProfile
from llmb_tui.cluster.runai.values import first_pod, job_from_workload
from llmb_tui.errors import LlmbError
from llmb_tui.watch.follow import Follower
from tests.demo.runai.runai_client import request
from tests.kit.runai import Fault, FaultySite, runai_site

BROKEN = 60 * int(os.environ.get("LLMB_CAMPAIGN", "1"))
"""Create workloads on a line that breaks."""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[FaultySite]:
    with runai_site(tmp_path / "runai", speed=1.0) as started:
        yield started


@pytest.fixture
def api(site: FaultySite) -> Iterator[RunaiApi]:
    profile = RunaiProfile("demo", site.base_url, site.app_id, site.project, ca_file=str(site.ca_file))
    api = RunaiApi(profile, lambda: site.app_secret)

    class Hurried(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:  # noqa: ARG002 - no pauses between repetitions
            return self.is_set()

    api.closed = Hurried()
    with contextlib.closing(api):
        yield api


def test_the_requests_of_a_preflight(api: RunaiApi) -> None:
    project = api.project()
    assert project is not None
    assert project.phase == "Ready"
    assert {quota.node_pool: (quota.deserved, quota.limit) for quota in project.quotas} == {
        "default": (256, 512),
        "b200": (64, 64),
    }
    assert api.cluster(project.cluster_id).state == "Connected"
    assert {pool.name for pool in api.node_pools(project.cluster_id)} == {"default", "b200"}
    nodes = api.nodes(project.cluster_id)
    assert {(node.node_pool, node.gpu_type, node.gpus) for node in nodes} == {
        ("default", "NVIDIA-H100-80GB-HBM3", 8),
        ("b200", "NVIDIA-B200", 8),
    }
    assert len({node.name for node in nodes}) == 96
    assert {claim.claim for claim in api.claims(project.id) if claim.is_usable} == {"llmb-data", "scratch"}
    secrets = {each.name: (each.kind, each.secret, each.keys) for each in api.credentials(project.id)}
    assert secrets["huggingface"] == ("genericSecret", "genericsecret-huggingface", ("HF_TOKEN",))
    assert secrets["nvcr"][0] == "dockerRegistry"


def test_the_life_of_a_workload(site: FaultySite, api: RunaiApi) -> None:
    text = api.create("distributed", request())
    site.skip(200)
    job = job_from_workload(api.read_workloads([text])[text], api.events(text), now=site.clock())
    assert (job.id, job.state, job.reason) == (text, "RUNNING", "")
    assert job.nodes == 32
    master = first_pod(api.pods(text))
    assert master is not None
    assert (master.name, master.container) == ("run-1-master-0", "pytorch")
    api.suspend("distributed", text)
    site.skip(60)
    assert api.read_workloads([text, "6d0c7c1f-0000-0000-0000-000000000000"])[text].state == "SUSPENDED"
    api.resume("distributed", text)
    assert api.read_workloads([text])[text].state == "PENDING"
    assert api.delete("distributed", text)
    site.skip(200)
    assert api.read_workloads([text])[text].state == "CANCELLED"
    result = api.find("run-1")
    assert result is not None
    assert result.id == text
    assert not api.delete("distributed", text)


def test_a_login_that_expires_in_the_middle(site: FaultySite, api: RunaiApi) -> None:
    text = api.create("distributed", request())
    site.faults.append(Fault("GET", revoked=True))
    assert api.read_workloads([text]).keys() == {text}
    assert site.request_count("POST", "/token") == 2


def test_no_workload_is_made_twice_or_lost_on_a_line_that_breaks(site: FaultySite, api: RunaiApi) -> None:
    dice = random.Random(4)
    ways = [
        lambda: Fault(refused=True),
        lambda: Fault(lost=True),
        lambda: Fault(cut_after=dice.randrange(900)),
        lambda: Fault(status=dice.choice([429, 500, 502, 503, 504])),
        lambda: Fault(body=b"<html>"),
        lambda: Fault(revoked=True),
    ]
    made: dict[str, str] = {}
    open_, not_made = [], []
    for number in range(BROKEN):
        name = f"run-{number}"
        # Some of the first requests meet a fault; later requests do not.
        site.faults[:] = [dice.choice(ways)() if dice.random() < 0.5 else Fault(body=None) for _ in range(4)]
        try:
            made[name] = api.create("distributed", {**request(), "name": name})
        except (DisconnectedError, NoAnswerError):
            open_.append(name)
        except (LlmbError, UnreachableError):
            not_made.append(name)
    there = [workload.body["name"] for workload in site.workloads.all()]
    assert sorted(there) == sorted(set(there)), "a workload was made twice"
    assert set(made) <= set(there), "a workload was lost"
    assert not set(there) & set(not_made), "a workload exists although its creation was reported as failed"
    site.faults.clear()
    for name in there:
        result = api.find(name)
        assert result is not None
        assert made.get(name, result.id) == result.id
    print(f"{BROKEN} on a line that breaks: {len(made)} made, {len(open_)} open, {len(not_made)} not sent")  # noqa: T201
    assert made


def test_a_log_whose_line_is_cut(site: FaultySite, api: RunaiApi, tmp_path: Path) -> None:
    api.create("distributed", request())
    site.skip(100)
    log = PodLog(Kube(str(site.kubeconfig)), "runai-llmb", "run-1-master-0", "pytorch")
    with contextlib.closing(Follower(log, tmp_path / "log")) as follower:
        for _ in range(10):
            site.skip(60)
            with contextlib.suppress(DisconnectedError):
                follower.copy_available(0.2)
            site.drop_connections()
        site.skip(600)
        while follower.behind():
            with contextlib.suppress(DisconnectedError):
                follower.copy_available(0.2)
            follower.retry_soon()
    lines = (tmp_path / "log").read_text().splitlines()
    assert len([line for line in lines if line.startswith("Training epoch 0")]) == 50
    assert lines[-1] == "`Trainer.fit` stopped: `max_steps=50` reached."
