"""The life of workloads on the simulated control plane: phases, quota, names, deletion, and logins."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from llmb_tui.demo.cluster import DemoCluster
from llmb_tui.demo.runai import facts
from llmb_tui.errors import LlmbError
from tests.demo.runai.runai_client import Client, request, single
from tests.kit.runai import FaultySite, runai_site

SECRET = {"name": "HF_TOKEN", "secret": {"name": "genericsecret-huggingface", "key": "HF_TOKEN"}}


def reasons(client: Client, identity: str) -> list[str]:
    return [event["reason"] for event in client.get(f"/workloads/{identity}/events")["events"]][::-1]


def test_phases_from_the_submission_to_the_end(site: FaultySite, client: Client) -> None:
    identity = client.submit(request())
    seen = []
    for seconds in (0, 6, 15, 30, 60, 600):
        site.skip(seconds)
        seen.append(client.phase(identity))
    assert seen == ["Creating", "Pending", "Initializing", "Running", "Running", "Completed"]
    assert reasons(client, identity) == ["Scheduled", "Pulling", "Pulled", "Started", "Completed"]
    workload = client.get(f"/workloads/{identity}")
    assert (workload["k8sPhase"], workload["requestedPods"]["number"]) == ("Succeeded", 32)
    assert workload["createdAt"] < workload["completedAt"]


def test_pods_are_named_as_the_operators_name_them(site: FaultySite, client: Client) -> None:
    bodies: list[tuple[str, dict[str, Any]]] = [
        ("distributed", request("with-master", 2)),
        ("distributed", request("without", 2) | {"masterSpecSameAsWorker": None}),
        ("trainings", single("alone")),
    ]
    names = []
    for kind, body in bodies:
        identity = client.submit(body, kind)
        site.skip(40)
        names.append([pod["name"] for pod in client.get(f"/workloads/{identity}/pods")["pods"]])
    assert names == [
        ["with-master-master-0", "with-master-worker-0", "with-master-worker-1"],
        ["without-worker-0", "without-worker-1"],
        ["alone-0-0"],
    ]


@pytest.mark.parametrize(
    ("spec", "reason", "text"),
    [
        ({"nodePools": ["b200"]}, "Unschedulable", "Limit is 64 GPUs, currently 0 GPUs allocated"),
        ({"nodePools": ["a100"]}, "Unschedulable", "No node in the a100 node-pool has GPU resources."),
        ({"compute": {"gpuDevicesRequest": 9}}, "Unschedulable", "64 node(s) didn't have enough resources: GPUs."),
        (
            {"storage": {"pvc": [{"path": "/x", "existingPvc": True, "claimName": "none"}]}},
            "FailedScheduling",
            'persistentvolumeclaim "none" not found',
        ),
    ],
)
def test_workloads_that_stay_in_the_queue(
    site: FaultySite, client: Client, spec: dict[str, Any], reason: str, text: str
) -> None:
    identity = client.submit(request(**spec))
    site.skip(3000)
    workload = client.get(f"/workloads/{identity}")
    assert workload["phase"] == "Pending"
    assert text in workload["phaseMessage"]
    assert reasons(client, identity) == [reason]
    assert workload["conditions"][0]["message"] == workload["phaseMessage"]


@pytest.mark.parametrize(
    ("spec", "reason", "text"),
    [
        ({"image": "nvcr.io/nvidia/nemo:99.x"}, "BackOff", "Back-off pulling image"),
        ({"environmentVariables": [{**SECRET, "secret": {"name": "none", "key": "k"}}]}, "Failed", 'secret "none" not'),
    ],
)
def test_scheduled_workloads_that_do_not_start(
    site: FaultySite, client: Client, spec: dict[str, Any], reason: str, text: str
) -> None:
    identity = client.submit(request(**spec))
    site.skip(400)
    workload = client.get(f"/workloads/{identity}")
    assert (workload["phase"], workload["allocatedResources"]["gpu"]) == ("Initializing", 256)
    assert text in workload["phaseMessage"]
    assert reasons(client, identity)[-1] == reason
    answer = client.start_log("run-1-master-0")
    assert (answer.status, json.loads(answer.read())["reason"]) == (400, "BadRequest")


def test_the_second_workload_waits_for_the_quota(site: FaultySite, client: Client) -> None:
    first, second = client.submit(request("first")), client.submit(request("second", 33))
    site.skip(60)
    assert [client.phase(identity) for identity in (first, second)] == ["Running", "Pending"]
    assert client.get(f"/workloads/{second}")["phaseReason"] == "OverLimit"
    (project,) = client.get("/org-unit/projects")["projects"]
    assert project["status"]["nodePoolQuotaStatuses"][0]["allocated"]["gpu"] == 256
    site.skip(600)
    assert client.phase(second) == "Initializing"


def test_a_resumed_workload_starts_from_the_beginning(site: FaultySite, client: Client) -> None:
    identity = client.submit(request())
    site.skip(150)
    whole = client.log("run-1-master-0")
    assert "iteration 2/49" in whole
    client.call("POST", f"/workloads/distributed/{identity}/suspend")
    assert client.phase(identity) == "Stopping"
    site.skip(20)
    assert client.phase(identity) == "Stopped"
    assert client.start_log("run-1-master-0").read()
    client.call("POST", f"/workloads/distributed/{identity}/resume")
    assert client.phase(identity) == "Resuming"
    site.skip(60)
    assert client.phase(identity) == "Running"
    assert "iteration" not in client.log("run-1-master-0")


def test_a_preempted_workload_waits_again_and_reports_it(site: FaultySite, client: Client) -> None:
    identity = client.submit(request())
    site.skip(150)
    site.preempt(identity)
    site.workloads.limits["default"] = 0
    site.skip(30)
    assert client.phase(identity) == "Pending"
    assert reasons(client, identity) == ["Evict", "Unschedulable"]
    site.workloads.limits["default"] = 512
    assert client.phase(identity) == "Initializing"


def test_a_name_is_taken_until_its_workload_is_gone(site: FaultySite, client: Client) -> None:
    identity = client.submit(request())
    assert client.call("POST", "/workloads/distributed", request())[0] == 409
    assert client.call("POST", "/workloads/trainings", single())[0] == 409
    assert [workload["id"] for workload in client.get("/workloads?filterBy=name==run-1")["workloads"]] == [identity]
    assert client.call("DELETE", f"/workloads/trainings/{identity}")[0] == 404
    assert client.call("DELETE", f"/workloads/distributed/{identity}")[0] == 202
    assert client.phase(identity) == "Deleting"
    assert client.call("POST", "/workloads/distributed", request())[0] == 409
    site.skip(20)
    assert client.get("/workloads")["workloads"] == []
    (gone,) = client.get("/workloads?deleted=true&filterBy=name==run-1")["workloads"]
    assert gone["deletedAt"]
    assert client.call("DELETE", f"/workloads/distributed/{identity}")[0] == 404
    assert client.submit(request()) != identity


def test_only_valid_tokens_are_accepted(site: FaultySite, client: Client) -> None:
    wrong = {"grantType": "app_token", "AppId": site.app_id, "AppSecret": "guess"}
    assert client.call("POST", "/token", wrong)[0] == 401
    assert client.call("POST", "/token", {"grantType": "app_token", "AppId": site.app_id})[0] == 400
    assert client.call("POST", "/token", b"{")[0] == 400
    head, payload, _ = client.token.split(".")
    claims = json.loads(base64.urlsafe_b64decode(payload + "=="))
    assert claims["exp"] - claims["iat"] in (3600, 3601)
    good = client.token
    for token in ("", "x", f"{head}.{payload}.x"):
        client.token = token
        assert client.call("GET", "/workloads")[0] == 401
    client.token = good
    site.clock.added += 3601
    assert client.call("GET", "/workloads")[0] == 401
    assert client.login() == 200
    assert client.call("GET", "/workloads")[0] == 200
    assert client.call("POST", "/workloads/distributed", request() | {"projectId": "1"})[0] == 403
    assert site.app_secret not in "".join(path.read_text() for path in site.root.rglob("*") if path.is_file()), (
        "the secret is nowhere below the root"
    )


def test_workloads_continue_while_the_site_is_stopped(tmp_path: Path) -> None:
    with runai_site(tmp_path) as site:
        client = Client(site)
        client.login()
        identity = client.submit(request())
        client.close()
    with runai_site(tmp_path) as site:
        site.skip(100)
        client = Client(site)
        client.login()
        assert client.phase(identity) == "Running"
        client.close()
        with pytest.raises(LlmbError, match="is already running"), runai_site(tmp_path):
            pass
    with pytest.raises(ValueError, match="speed"):
        FaultySite(tmp_path, [], speed=0)


@pytest.mark.parametrize("content", ["", '{"id": "x", "colour": "blue"}', "[]"])
def test_a_workload_that_is_not_understood_is_put_aside(tmp_path: Path, content: str) -> None:
    with runai_site(tmp_path) as site:
        client = Client(site)
        client.login()
        identity = client.submit(request())
        client.close()
    (tmp_path / "workloads" / "other.json").write_text(content)
    with runai_site(tmp_path) as site:
        assert [workload.id for workload in site.workloads.all()] == [identity]
    assert (tmp_path / "workloads" / "other.put-aside").read_text() == content


def test_two_kinds_of_cluster_share_no_folder(tmp_path: Path) -> None:
    with runai_site(tmp_path), pytest.raises(LlmbError, match="is already running"):
        DemoCluster(tmp_path).start()


def test_the_site_states_that_it_is_simulated(site: FaultySite, client: Client) -> None:
    assert site.notice == "simulated, clock x1"
    assert client.get(f"/clusters/{facts.CLUSTER}")["name"] == "simulated"
