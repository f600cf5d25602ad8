"""Requests and answers of the simulated control plane, compared with models that are generated from NVIDIA's API."""

from __future__ import annotations

import importlib
import json
from typing import Any

import pytest
from pydantic import BaseModel

from llmb_tui.cluster.runai.api import RunaiApi
from llmb_tui.cluster.runai.profile import RunaiProfile
from llmb_tui.demo.runai import creation, facts
from llmb_tui.demo.runai.creation import DISTRIBUTED, problems
from tests.demo.runai.runai_client import Client, request, single
from tests.kit.runai import FaultySite
from tests.kit.runai_models import model

NODES = f"/clusters/{facts.CLUSTER}/nodes"
# `Project` is missing here: the package has another schema under that name.
PROJECT = {
    "resources": "Resources",
    "status": "ProjectStatus",
    "effective": "ProjectEffective",
    "totalResources": "TotalResources",
}
PROJECT_NEEDS = """id name parentId createdAt updatedAt totalResources effective status description
    enforceRunaiScheduler clusterId resources"""


def check(name: str, document: Any) -> None:
    """Check that the document is valid by the model, without additional fields."""
    known = model(name).from_dict(document).model_dump(by_alias=True)

    def compare(part: Any, whole: Any, at: str) -> None:
        if isinstance(part, dict):
            for key, value in part.items():
                if value is not None:
                    assert key in whole, f"{at}.{key}"
                    compare(value, whole[key], f"{at}.{key}")
        elif isinstance(part, list):
            for index, value in enumerate(part):
                compare(value, whole[index], f"{at}[{index}]")

    compare(document, known, name)


PARTS = [part for part in vars(creation).values() if isinstance(part, type) and issubclass(part, BaseModel)]


@pytest.mark.parametrize("part", [part for part in PARTS if part not in (BaseModel, creation._Part)])
def test_a_request_has_fields_of_the_contract(part: type[BaseModel]) -> None:
    ours, theirs = part.model_json_schema(by_alias=True), model(part.__name__).model_json_schema(by_alias=True)
    assert set(theirs.get("required", [])) <= set(ours.get("required", [])), "all that must be there must be here"
    for name, field in ours["properties"].items():
        assert types(field) <= types(theirs["properties"][name]) or "object" in types(theirs["properties"][name]), name


def types(field: dict[str, Any]) -> set[str]:
    """The JSON types that a field may have."""
    return {one.get("type", "object") for one in field.get("anyOf", [field])}


def test_requests_of_these_tests_follow_the_contract() -> None:
    check("DistributedCreationRequest", request())
    check("TrainingCreationRequest", single())


def test_a_login_of_the_program_follows_the_contract(site: FaultySite) -> None:
    profile = RunaiProfile("demo", site.base_url, site.app_id, site.project, ca_file=str(site.ca_file))
    RunaiApi(profile, lambda: site.app_secret).log_in()
    (asked,) = site.requests
    check("TokenRequest", json.loads(asked.body))


@pytest.mark.parametrize(
    ("path", "name", "part"),
    [
        (f"/clusters/{facts.CLUSTER}", "DisplayedCluster", None),
        (NODES, "Nodes", None),
        (f"/v1/k8s/clusters/{facts.CLUSTER}/node-pools", "NodePool1", ""),
        ("/asset/datasource/pvc", "PVCListResponse", None),
        ("/asset/credentials", "CredentialsListResponse", None),
    ],
)
def test_the_sites_contents(client: Client, path: str, name: str, part: str | None) -> None:
    answer = client.get(path)
    for document in answer if part == "" else [answer]:
        check(name, document)


def test_the_project(client: Client) -> None:
    (project,) = client.get(f"/org-unit/projects?filterBy=name=={facts.PROJECT}")["projects"]
    assert set(PROJECT_NEEDS.split()) <= set(project)
    for key, name in PROJECT.items():
        for document in project[key] if isinstance(project[key], list) else [project[key]]:
            check(name, document)
    assert isinstance(project["id"], str)
    assert client.get("/org-unit/projects?filterBy=name==other")["projects"] == []


def test_a_token(site: FaultySite, client: Client) -> None:
    old = {"grantType": "app_token", "appID": site.app_id, "appSecret": site.app_secret}
    check("TokenRequest", old)
    status, document = client.call("POST", "/token", old)
    assert status == 200
    check("TokenResponse", document)


@pytest.mark.parametrize(
    ("kind", "body", "name"),
    [
        ("distributed", request(), "DistributedWorkload"),
        ("trainings", single(), "Training1"),
    ],
)
def test_a_workload_at_each_time_of_its_life(
    site: FaultySite, client: Client, kind: str, body: dict[str, Any], name: str
) -> None:
    _, document = client.call("POST", f"/workloads/{kind}", body)
    check(name, document)
    identity = document["workloadId"]
    for seconds in (0, 10, 12, 40, 600):
        site.skip(seconds)
        check("WorkloadDetailed", client.get(f"/workloads/{identity}"))
        check("GetWorkloads200Response", client.get("/workloads"))
        check("GetWorkloadEvents200Response", client.get(f"/workloads/{identity}/events"))
        check("ListPods200Response", client.get(f"/workloads/{identity}/pods"))
    for verb in ("suspend", "resume"):
        status, document = client.call("POST", f"/workloads/{kind}/{identity}/{verb}")
        assert status == 202
        check("HttpResponse", document)
    status, document = client.call("DELETE", f"/workloads/{kind}/{identity}")
    assert status == 202
    check("HttpResponse", document)
    site.skip(60)
    check("GetWorkloads200Response", client.get("/workloads?deleted=true"))


def test_the_client_that_nvidia_publishes_works_with_it(site: FaultySite) -> None:
    runai = importlib.import_module("runai.runai_client")
    settings = {"client_id": site.app_id, "client_secret": site.app_secret, "ssl_ca_cert": str(site.ca_file)}
    url = site.base_url.removesuffix("/api/v1")
    configuration = importlib.import_module("runai.configuration").Configuration(
        runai_base_url=url, retry_enabled=False, **settings
    )
    theirs = runai.RunaiClient(importlib.import_module("runai.api_client").ApiClient(configuration))
    projects = theirs.organizations.projects.get_projects(filter_by=f"name=={facts.PROJECT}").data["projects"]
    assert [project["id"] for project in projects] == [facts.PROJECT_ID]
    asked = model("DistributedCreationRequest").from_dict(request())
    asked.spec.slots_per_worker = asked.spec.ssh_auth_mount_path = None  # fields of MPI, which its model sets
    made = theirs.workloads.distributed.create_distributed(asked)
    identity = made.data["workloadId"]
    assert theirs.workloads.workloads.get_workload(identity).data["phase"] == "Creating"
    assert theirs.workloads.distributed.delete_distributed(identity).data["code"] == 202


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": None}, "name"),
        ({"name": "Not_A_Name"}, "name"),
        ({"name": "x" * 55}, "name"),
        ({"projectId": 4500105}, "projectId"),
        ({"clusterId": "here"}, "clusterId"),
        ({"spec": []}, "spec"),
        ({"useGivenNameAsPrefix": True}, "useGivenNameAsPrefix"),
        ({"gpus": 8}, "gpus"),
        ({"spec": {"compute": {"gpuDevicesRequest": "8"}}}, "spec.compute.gpuDevicesRequest"),
        ({"spec": {"numWorkers": 0}}, "spec.numWorkers"),
        ({"spec": {"environmentVariables": [{"name": "A", "value": 1}]}}, "spec.environmentVariables[0].value"),
        ({"spec": {"restartPolicy": "Sometimes"}}, "spec.restartPolicy"),
        ({"spec": {"storage": {"pvc": {}}}}, "spec.storage.pvc"),
    ],
)
def test_a_body_that_is_wrong_is_refused_with_its_field(client: Client, change: dict[str, Any], field: str) -> None:
    spec = change.get("spec", {})
    body = request() | change | {"spec": request()["spec"] | spec if isinstance(spec, dict) else spec}
    status, document = client.call("POST", "/workloads/distributed", body)
    assert status == 400
    check("SubmissionErrorV2", document)
    assert [issue["field"] for issue in document["complianceIssues"]] == [field]
    assert client.get("/workloads")["workloads"] == []


def test_null_fields_are_valid() -> None:
    assert list(problems(DISTRIBUTED, request(args=None, compute=None))) == []


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("PUT", "/workloads", 404),
        ("GET", "/workloads/5b1f6c0e-2f4d-4b52-9a53-6d0c7c1f0d99", 404),
        ("GET", "/workloads/7", 400),
        ("GET", "/clusters/5b1f6c0e-2f4d-4b52-9a53-6d0c7c1f0d99", 404),
        ("GET", f"{NODES}?limit=501", 400),
        ("GET", f"{NODES}?offset=x", 400),
        ("GET", "/workloads?filterBy=name", 400),
        ("GET", f"{NODES}?filterBy=nodePool==default", 400),
        ("GET", "/asset/credentials?name=huggingface", 400),
    ],
)
def test_other_refusals(client: Client, method: str, path: str, status: int) -> None:
    answered, document = client.call(method, path)
    assert answered == document["code"] == status
    check("Error", document)


def test_lists_are_given_in_parts(client: Client) -> None:
    for number in range(3):
        client.submit(single(f"run-{number}"), "trainings")
    first = client.get("/workloads?limit=2")
    rest = client.get(f"/workloads?limit=2&offset={first['next']}")
    assert [workload["name"] for part in (first, rest) for workload in part["workloads"]] == ["run-2", "run-1", "run-0"]
    assert "next" not in rest
    nodes = [client.get(f"{NODES}?limit=50&offset={offset}")["nodes"] for offset in (0, 50)]
    assert [len(part) for part in nodes] == [50, 46]
