from __future__ import annotations

import contextlib
import email.utils
import threading
import time
import traceback
from collections.abc import Iterator
from typing import Any

import pytest

from llmb_tui.cluster.failures import AuthenticationError, DisconnectedError, LoginNeededError, UnreachableError
from llmb_tui.cluster.runai.api import RunaiApi
from llmb_tui.cluster.runai.failures import ApiError
from llmb_tui.cluster.runai.profile import RunaiProfile
from llmb_tui.errors import LlmbError
from tests.cluster.runai.https_site import SECRET, ControlPlane, Request, Say

NAME = "llmb-nemotron4-340b-x7f3"
BODY = {"name": NAME, "projectId": "7", "clusterId": "c", "spec": {}}


@pytest.fixture
def profile(plane: ControlPlane) -> RunaiProfile:
    site = plane.site
    return RunaiProfile("runai", site.url, "llmb-app", "bench", ca_file=str(site.ca_file))


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def api(profile: RunaiProfile, waits: list[float]) -> Iterator[RunaiApi]:
    """A client that does not wait between repetitions, and records the pauses that it would have made."""
    api = RunaiApi(profile, lambda: SECRET)

    class Hurried(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout or 0.0)
            return self.is_set()

    api.closed = Hurried()
    with contextlib.closing(api):
        yield api


def workload(**changes: Any) -> dict[str, Any]:
    return {
        "id": "w-1",
        "name": NAME,
        "type": "Distributed",
        "phase": "Running",
        "namespace": "runai-bench",
        "createdAt": "2026-01-01T03:49:52.531Z",
        "phaseUpdatedAt": "2026-01-01T03:50:52Z",
        "deletedAt": None,
        "conditions": [],
        "requestedPods": {"number": 16},
        **changes,
    }


def listed(*found: dict[str, Any], **more: Any) -> Say:
    return Say(body={"workloads": list(found), **more})


class Workloads:
    """Created workloads by name, as the control plane stores them."""

    def __init__(self, plane: ControlPlane) -> None:
        self.made: dict[str, str] = {}
        plane.on("GET", "/workloads", self._list)

    def create(self, request: Request) -> Say:
        name = request.json["name"]
        if name in self.made:
            return Say(409, {"code": 409, "message": f"{name} already exists"})
        self.made[name] = f"w-{len(self.made) + 1}"
        return Say(202, {"name": name, "workloadId": self.made[name]})

    def _list(self, request: Request) -> Say:
        if "deleted" in request.query:
            return listed()
        name = request.query["filterBy"].partition(",")[0].removeprefix("name==")
        return listed(*(workload(id=self.made[each], name=each) for each in self.made if each == name))


def test_the_project_with_its_quota(plane: ControlPlane, api: RunaiApi) -> None:
    project = {
        "id": "7",
        "name": "bench",
        "clusterId": "c-1",
        "status": {
            "namespace": "runai-bench",
            "phase": "Ready",
            "nodePoolQuotaStatuses": [{"nodePoolName": "h100", "nodePoolId": "1", "allocated": {"gpu": 16}}],
        },
        "effective": {},
        "defaultNodePools": ["h100"],
        "resources": [
            {"nodePool": {"id": "1", "name": "h100"}, "gpu": {"deserved": 256, "limit": -1}},
            {"nodePool": {"id": "2", "name": "b200"}, "gpu": {"deserved": 0, "limit": 64}},
        ],
    }
    plane.on("GET", "/org-unit/projects", Say(body={"projects": [project, {**project, "name": "bench-2"}]}))
    result = api.project()
    assert result is not None
    assert (result.id, result.phase, result.default_node_pools) == ("7", "Ready", ("h100",))
    assert [quota.node_pool for quota in result.quotas] == ["h100", "b200"]
    assert [(q.deserved, q.limit, q.allocated) for q in result.quotas] == [(256, None, 16), (0, 64, 0)]
    assert plane.site.requests_to("/projects")[0].query["filterBy"] == "name==bench"
    plane.on("GET", "/org-unit/projects", Say(body={"projects": []}))
    assert api.project() is None


def test_the_requests_of_a_preflight(plane: ControlPlane, api: RunaiApi) -> None:
    plane.on("GET", "/clusters/c-1", Say(body={"uuid": "c-1", "name": "east", "status": {"state": "Connected"}}))
    assert (api.cluster("c-1").name, api.cluster("c-1").state) == ("east", "Connected")
    node = {"name": "n1", "status": "Ready", "nodePool": "h100", "gpuInfo": {"gpuType": "NVIDIA H100", "gpuCount": 8}}
    plane.on("GET", "/clusters/c-1/nodes", Say(body={"nodes": [node, {"name": "n2", "status": "NotReady"}]}))
    assert [(n.name, n.status, n.gpu_type, n.gpus) for n in api.nodes("c-1")] == [
        ("n1", "Ready", "NVIDIA H100", 8),
        ("n2", "NotReady", "", 0),
    ]
    plane.answers["GET", "/v1/k8s/clusters/c-1/node-pools"] = lambda _: Say(body=[{"name": "h100", "isDefault": True}])
    assert [pool.name for pool in api.node_pools("c-1")] == ["h100"]
    claim = {
        "meta": {"name": "data"},
        "spec": {"claimName": "data-pvc", "path": "/data"},
        "status": {"status": "Failed"},
    }
    plane.on("GET", "/asset/datasource/pvc", Say(body={"entries": [claim]}))
    assert [(c.name, c.claim, c.is_usable) for c in api.claims("7")] == [("data", "data-pvc", False)]
    secret = {
        "meta": {"name": "hub", "kind": "genericSecret"},
        "spec": {"genericSecret": {"keyValuePairs": [{"key": "HF_TOKEN", "value": SECRET}]}},
        "clusterInfo": {"resources": [{"name": "genericsecret-hub"}]},
    }
    plane.on("GET", "/asset/credentials", Say(body={"entries": [secret]}))
    (credential,) = api.credentials("7")
    assert (credential.name, credential.secret, credential.keys) == ("hub", "genericsecret-hub", ("HF_TOKEN",))
    assert SECRET not in repr(credential)


def test_null_is_the_same_as_a_missing_key(plane: ControlPlane, api: RunaiApi) -> None:
    status = {"namespace": None, "phase": "Ready", "nodePoolQuotaStatuses": None}
    pools = [{"nodePool": {"id": "1", "name": "h100"}, "gpu": {"deserved": 8, "limit": None}}, None]
    project = {"id": "7", "name": "bench", "clusterId": "c-1", "status": status, "resources": pools}
    plane.on("GET", "/org-unit/projects", Say(body={"projects": [{**project, "defaultNodePools": None}]}))
    result = api.project()
    assert result is not None
    assert [(quota.node_pool, quota.limit, quota.allocated) for quota in result.quotas] == [("h100", None, 0)]
    plane.answers["GET", "/v1/k8s/clusters/c-1/node-pools"] = lambda _: Say(body=[{"name": "h100", "isDefault": None}])
    assert [pool.name for pool in api.node_pools("c-1")] == ["h100"]
    claim = {"meta": {"name": "data"}, "spec": {"claimName": "data", "readOnly": None}, "status": None}
    plane.on("GET", "/asset/datasource/pvc", Say(body={"entries": [claim]}))
    assert [claim.is_usable for claim in api.claims("7")] == [True]
    secret = {"meta": {"name": "hub"}, "spec": {"genericSecret": {"keyValuePairs": None}}, "clusterInfo": None}
    plane.on("GET", "/asset/credentials", Say(body={"entries": [secret]}))
    assert [credential.keys for credential in api.credentials("7")] == [()]
    plane.on("GET", "/workloads/w-1", Say(body=workload(conditions=None, requestedPods=None)))
    assert api.read_workloads(["w-1"])["w-1"].conditions == ()


def test_the_record_of_an_ended_workload(plane: ControlPlane, api: RunaiApi) -> None:
    """Some resources are texts, and missing values are null."""
    states = {
        "requestedPods": {"number": 16, "parallelism": None},
        "allocatedResources": {"gpu": 0, "gpuMemory": "640Gi\x1b[2J", "extendedResources": [{"resource": "rdma"}]},
        "phaseMessage": "",
        "environmentVariables": [{"name": "TOKEN", "value": SECRET}],
    }
    plane.on("GET", "/workloads/w-1", Say(body=workload(phase="Running", **states)))
    assert api.record("w-1") is None, "the workload is active"
    plane.on("GET", "/workloads/w-1", Say(body=workload(phase="Completed", **states)))
    pod = {"name": f"{NAME}-master-0", "nodeName": "n1", "k8sPhase": "Succeeded"}
    plane.on("GET", "/workloads/w-1/pods", Say(body={"pods": [{**pod, "deletedAt": None, "containers": []}]}))
    document = api.record("w-1")
    assert document is not None
    assert (document["id"], document["requestedPods"], document["phase"]) == ("w-1", {"number": 16}, "Completed")
    assert document["allocatedResources"] == {"gpu": 0, "gpuMemory": "640Gi"}
    assert document["pods"] == [pod]
    assert SECRET not in str(document)
    assert "phaseMessage" not in document


def test_a_query_for_no_workloads_sends_no_request(plane: ControlPlane, api: RunaiApi) -> None:
    assert api.read_workloads([]) == {}
    assert plane.site.requests == []


def test_a_running_workload_is_read(plane: ControlPlane, api: RunaiApi) -> None:
    event = {
        "createdAt": "2026-01-01T00:00:00Z",
        "type": "Warning",
        "reason": "Evicted",
        "message": "node \x1b[31mdrained",
    }
    plane.on("GET", "/workloads/w-1/events", Say(body={"events": [None, event]}))
    assert [(e.reason, e.message) for e in api.events("w-1")] == [("Evicted", "node drained")]
    pod = {
        "name": f"{NAME}-master-0",
        "k8sPhase": "Running",
        "containers": [{"name": "pytorch", "image": "i", "startedAt": "2026-01-01T00:00:00Z"}],
    }
    plane.on("GET", "/workloads/w-1/pods", Say(body={"pods": [pod]}))
    assert [(p.name, p.container) for p in api.pods("w-1")] == [(f"{NAME}-master-0", "pytorch")]
    plane.on("POST", "/workloads/distributed/w-1/suspend", Say(202, {"code": 202, "message": "ok"}))
    plane.on("POST", "/workloads/distributed/w-1/resume", Say(202))
    plane.on("DELETE", "/workloads/distributed/w-1", Say(202, {"code": 202, "message": "ok"}), Say(404))
    api.suspend("distributed", "w-1")
    api.resume("distributed", "w-1")
    assert api.delete("distributed", "w-1")
    assert not api.delete("distributed", "w-1")


def test_one_workload_needs_one_request_and_many_need_one_list(plane: ControlPlane, api: RunaiApi) -> None:
    def respond(request: Request) -> Say:
        if "deleted" in request.query:
            return listed(workload(id="w-gone", deletedAt="2026-01-02T00:00:00Z"))
        if request.query["offset"] == "0":
            return listed(workload(id="w-1"), workload(id="other"), next=100)
        return listed(workload(id="w-2"), next=200) if request.query["offset"] == "100" else listed()

    plane.on("GET", "/workloads", respond)
    plane.on("GET", "/workloads/w-1", Say(body=workload()))
    assert api.read_workloads(["w-1"]).keys() == {"w-1"}
    assert api.read_workloads(["w-1", "other"]).keys() == {"w-1", "other"}
    assert len(plane.site.requests_to("/workloads")) == 1
    assert api.read_workloads(["w-1", "w-2", "w-gone", "w-never"]).keys() == {"w-1", "w-2", "w-gone"}
    assert api.read_workloads(["w-gone"])["w-gone"].state == "CANCELLED"


def test_a_workload_in_a_former_project_of_the_profile_is_found(plane: ControlPlane, api: RunaiApi) -> None:
    filters = []

    def respond(request: Request) -> Say:
        filters.append(request.query["filterBy"])
        if "projectName" in request.query["filterBy"]:
            return listed(workload(id="w-1"))
        return listed(workload(id="w-2", name=NAME))

    plane.on("GET", "/workloads", respond)
    plane.on("GET", "/workloads/w-2", Say(body=workload(id="w-2")))
    plane.on("GET", "/workloads/w-3", Say(403, body={"message": "of another project"}))
    assert api.read_workloads(["w-1", "w-2", "w-3"]).keys() == {"w-1", "w-2"}
    result = api.find(NAME)
    assert result is not None
    assert result.id == "w-2"
    assert filters[-1] == f"name=={NAME}"


@pytest.mark.parametrize("odd", [workload(id="other", phaseUpdatedAt=None), workload(id=["other"]), "other"])
def test_an_odd_neighbour_hides_no_workload(plane: ControlPlane, api: RunaiApi, odd: Any) -> None:
    plane.on("GET", "/workloads", Say(body={"workloads": [odd, workload(id="w-1"), workload(id="w-2")]}))
    assert api.read_workloads(["w-1", "w-2"]).keys() == {"w-1", "w-2"}
    plane.on("GET", "/workloads", Say(body={"workloads": [workload(id="w-1", phaseUpdatedAt=None)]}))
    with pytest.raises(ApiError, match="did not answer as Run:ai does"):
        api.read_workloads(["w-1", "w-2"])


def test_a_name_is_found_among_the_living_first(plane: ControlPlane, api: RunaiApi) -> None:
    old = workload(id="old", deletedAt="2025-12-02T00:00:00Z", createdAt="2025-12-01T00:00:00Z")
    older = workload(id="older", deletedAt="2025-11-02T00:00:00Z", createdAt="2025-11-01T00:00:00Z")
    living: list[dict[str, Any]] = [workload(name=f"{NAME}-2")]
    plane.on("GET", "/workloads", lambda request: listed(*([older, old] if "deleted" in request.query else living)))
    result = api.find(NAME)
    assert result is not None
    assert result.id == "old"
    living.append(workload(id="new"))
    result = api.find(NAME)
    assert result is not None
    assert result.id == "new"
    assert api.find("another") is None


class TestLogin:
    def test_a_token_is_requested_once_and_by_one_thread(self, plane: ControlPlane, api: RunaiApi) -> None:
        plane.on("GET", "/workloads/w-1", Say(body=workload()))
        threads = [threading.Thread(target=api.read_workloads, args=(["w-1"],)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(plane.granted) == 1
        assert plane.site.requests_to("/token")[0].json == {
            "grantType": "app_token",
            "appID": "llmb-app",
            "appSecret": SECRET,
        }

    def test_a_token_is_renewed_before_it_expires(
        self, plane: ControlPlane, api: RunaiApi, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        plane.on("GET", "/workloads/w-1", Say(body=workload()))
        api.read_workloads(["w-1"])
        now = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: now + 3550)
        api.read_workloads(["w-1"])
        api.read_workloads(["w-1"])
        assert len(plane.granted) == 2
        monkeypatch.setattr(time, "monotonic", lambda: now + 7100)
        plane.grant = lambda _: Say(503)
        assert api.read_workloads(["w-1"]).keys() == {"w-1"}, "the old one is still valid"

    def test_a_token_that_is_refused_is_renewed_at_once(self, plane: ControlPlane, api: RunaiApi) -> None:
        plane.on("GET", "/workloads/w-1", Say(body=workload()))
        api.read_workloads(["w-1"])
        plane.granted.append("expired on the server's side")
        assert api.read_workloads(["w-1"]).keys() == {"w-1"}

    def test_a_wrong_secret_is_sent_once(self, plane: ControlPlane, profile: RunaiProfile) -> None:
        secrets = ["not-this-one"]
        api = RunaiApi(profile, lambda: secrets[-1])
        for _ in range(3):
            with pytest.raises(AuthenticationError, match="does not accept llmb-app with this secret") as caught:
                api.log_in()
            assert "invalid client credentials (HTTP 401)" in caught.value.why
        assert len(plane.site.requests_to("/token")) == 1
        secrets.append(SECRET)
        api.log_in()

    @pytest.mark.parametrize(
        "say", [Say(403, b"<html>not from here</html>"), Say(400, b""), Say(403, {"message": "no"})]
    )
    def test_a_refusal_of_a_proxy_does_not_concern_the_secret(
        self, plane: ControlPlane, api: RunaiApi, say: Say
    ) -> None:
        grant, plane.grant = plane.grant, lambda _: say
        with pytest.raises(ApiError, match="refused to log in") as caught:
            api.log_in()
        assert "VPN" in caught.value.fix
        plane.grant = grant
        api.log_in()

    def test_a_secret_that_runai_forbids_is_sent_once(self, plane: ControlPlane, api: RunaiApi) -> None:
        plane.grant = lambda _: Say(403, {"code": 403, "message": "application is disabled"})
        for _ in range(2):
            with pytest.raises(AuthenticationError):
                api.log_in()
        assert len(plane.site.requests_to("/token")) == 1

    def test_newer_service_accounts_have_another_grant(self, plane: ControlPlane, api: RunaiApi) -> None:
        grants = []

        def grant(request: Request) -> Say:
            grants.append(request.json)
            return Say(400, {"code": 400}) if "appID" in request.json else plane._grant(_with_secret(request))

        plane.grant = grant
        api.log_in()
        assert grants[1] == {"grantType": "client_credentials", "clientID": "llmb-app", "clientSecret": SECRET}

    def test_an_unknown_secret_needs_a_login(self, plane: ControlPlane, profile: RunaiProfile) -> None:
        with pytest.raises(LoginNeededError, match="secret of llmb-app is needed"):
            RunaiApi(profile, lambda: None).log_in()
        assert plane.site.requests == []

    def test_no_message_contains_the_secret(
        self, plane: ControlPlane, profile: RunaiProfile, caplog: pytest.LogCaptureFixture
    ) -> None:
        api = RunaiApi(profile, lambda: SECRET)
        grants: list[Say] = [
            Say(401, {"message": f"wrong secret {SECRET}"}),
            Say(200, b"<html>"),
            Say(200, {"accessToken": 5}),
            Say(500, cut_after=20),
        ]
        for say in grants:
            plane.grant = lambda _, say=say: say  # type: ignore[misc]
            api = RunaiApi(profile, lambda: SECRET)
            api.closed.set()
            with pytest.raises(LlmbError) as caught:
                api.log_in()
            assert SECRET not in "".join(traceback.format_exception(caught.value)) + repr(vars(api)) + caplog.text
            assert caught.value.what
            assert caught.value.fix


def _with_secret(request: Request) -> Request:
    """The other grant, with the same behaviour."""
    body = request.body.replace(b"clientSecret", b"appSecret")
    return Request(request.method, request.path, request.query, request.headers, body)


class TestRepeating:
    @pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
    def test_a_read_request_is_repeated(
        self, plane: ControlPlane, api: RunaiApi, waits: list[float], status: int
    ) -> None:
        plane.on("GET", "/workloads/w-1", Say(status), Say(200, cut_after=9), Say(body=workload()))
        assert api.read_workloads(["w-1"]).keys() == {"w-1"}
        assert waits == [0.5, 1.0]

    def test_not_for_ever(self, plane: ControlPlane, api: RunaiApi, waits: list[float]) -> None:
        plane.on("GET", "/workloads/w-1", Say(503, {"code": 503, "message": "maintenance"}))
        with pytest.raises(ApiError, match="failed to look at workloads") as caught:
            api.read_workloads(["w-1"])
        assert caught.value.why == "It answered: maintenance (HTTP 503)"
        assert waits == [0.5, 1.0, 2.0]

    def test_it_waits_as_long_as_the_server_requests(
        self, plane: ControlPlane, api: RunaiApi, waits: list[float]
    ) -> None:
        date = email.utils.formatdate(time.time() + 9, usegmt=True)
        now = email.utils.formatdate(time.time(), usegmt=True)
        plane.on(
            "GET",
            "/workloads/w-1",
            Say(429, headers={"Retry-After": "3"}),
            Say(503, headers={"Retry-After": date, "Date": now}),
            Say(body=workload()),
        )
        api.read_workloads(["w-1"])
        assert waits[0] == 3.0
        assert 7 < waits[1] < 11

    def test_but_not_past_the_deadline(self, plane: ControlPlane, api: RunaiApi, waits: list[float]) -> None:
        plane.on("GET", "/workloads/w-1", Say(429, headers={"Retry-After": "3600"}))
        with pytest.raises(ApiError, match="received too many requests"):
            api.read_workloads(["w-1"])
        assert waits == []

    @pytest.mark.parametrize("say", [Say(503), Say(202, cut_after=9)])
    def test_a_change_is_not_repeated(self, plane: ControlPlane, api: RunaiApi, say: Say) -> None:
        plane.on("POST", "/workloads/trainings/w-1/suspend", say)
        with pytest.raises((ApiError, DisconnectedError)):
            api.suspend("trainings", "w-1")
        assert len(plane.site.requests_to("/suspend")) == 1

    def test_a_change_that_certainly_did_nothing_is_repeated(self, plane: ControlPlane, api: RunaiApi) -> None:
        plane.on("POST", "/workloads/trainings/w-1/suspend", Say(429), Say(202))
        api.suspend("trainings", "w-1")

    @pytest.mark.parametrize(
        ("first", "is_deleted"), [(Say(502), True), (Say(504), True), (Say(202, cut_after=9), True), (Say(429), False)]
    )
    def test_a_workload_missing_at_a_repeated_delete_was_deleted(
        self, plane: ControlPlane, api: RunaiApi, first: Say, is_deleted: bool
    ) -> None:
        plane.on("DELETE", "/workloads/distributed/w-1", first, Say(404))
        assert api.delete("distributed", "w-1") == is_deleted

    def test_closing_ends_the_waiting(self, plane: ControlPlane, profile: RunaiProfile) -> None:
        plane.grant = lambda _: Say(503)
        api = RunaiApi(profile, lambda: SECRET)
        api.close()
        with pytest.raises(ApiError):
            api.log_in()
        assert len(plane.site.requests_to("/token")) == 1


class TestCreating:
    def test_a_workload(self, plane: ControlPlane, api: RunaiApi) -> None:
        workloads = Workloads(plane)
        plane.on("POST", "/workloads/distributed", workloads.create)
        assert api.create("distributed", BODY) == "w-1"
        assert plane.site.requests_to("/distributed")[0].json == BODY
        assert api.create("distributed", BODY) == "w-1"

    @pytest.mark.parametrize("say", [Say(202, cut_after=30), Say(502), Say(202, b"<html>"), Say(202, {})])
    def test_an_answer_is_lost_after_it_was_made(self, plane: ControlPlane, api: RunaiApi, say: Say) -> None:
        workloads = Workloads(plane)

        def make(request: Request) -> Say:
            workloads.create(request)
            return say

        plane.on("POST", "/workloads/distributed", make)
        assert api.create("distributed", BODY) == "w-1"
        assert len(plane.site.requests_to("/distributed")) == 1

    @pytest.mark.parametrize("say", [Say(202, cut_after=0), Say(502), Say(503)])
    def test_a_workload_that_may_still_be_created_is_not_requested_again(
        self, plane: ControlPlane, api: RunaiApi, say: Say
    ) -> None:
        """The request may still arrive, and no document promises that a second one of the same name is refused."""
        workloads = Workloads(plane)
        plane.on("POST", "/workloads/distributed", say, workloads.create)
        with pytest.raises(DisconnectedError, match="It is unknown whether the workload"):
            api.create("distributed", BODY)
        assert len(plane.site.requests_to("/distributed")) == 1

    def test_a_name_that_is_taken_is_400_in_the_contract(self, plane: ControlPlane, api: RunaiApi) -> None:
        workloads = Workloads(plane)

        def taken(request: Request) -> Say:
            workloads.create(request)
            return Say(400, {"code": 400, "message": "name is taken"})

        plane.on("POST", "/workloads/distributed", taken)
        assert api.create("distributed", BODY) == "w-1"

    @pytest.mark.parametrize("status", [400, 403, 422])
    def test_it_is_refused(self, plane: ControlPlane, api: RunaiApi, status: int) -> None:
        Workloads(plane)
        issue = {
            "code": status,
            "message": "not compliant",
            "complianceIssues": [{"details": "image \x1b[2Jis locked"}],
        }
        plane.on("POST", "/workloads/trainings", Say(status, issue))
        with pytest.raises(ApiError, match="refused to create the workload") as caught:
            api.create("trainings", BODY)
        assert caught.value.why == f"It answered: not compliant · image is locked (HTTP {status})"
        assert len(plane.site.requests_to("/trainings")) == 1

    def test_an_unknown_outcome_of_a_creation_is_reported(self, plane: ControlPlane, api: RunaiApi) -> None:
        plane.on("POST", "/workloads/distributed", Say(202, cut_after=0))
        plane.on("GET", "/workloads", Say(500))
        with pytest.raises(DisconnectedError, match="It is unknown whether the workload") as caught:
            api.create("distributed", BODY)
        assert caught.value.may_have_run

    def test_nothing_is_sent_without_a_login(self, plane: ControlPlane, api: RunaiApi) -> None:
        plane.grant = lambda _: Say(200, cut_after=0)
        with pytest.raises(UnreachableError):
            api.create("distributed", BODY)
        assert plane.site.requests_to("/distributed") == []


@pytest.mark.parametrize(
    ("say", "what", "mend"),
    [
        (Say(401), "does not accept the login", "secret"),
        (Say(403, {"message": "no access"}), "refused to look at workloads", "Fix what this message names"),
        (Say(422, {"message": "bad filter"}), "refused to look at workloads", "Fix what this message names"),
        (Say(301, headers={"Location": "https://elsewhere/"}), "redirects to another address", "base URL"),
        (Say(200, b"<html>login</html>"), "did not answer as Run:ai does", "base URL"),
        (Say(200, {"id": "w-1"}), "did not answer as Run:ai does", "base URL"),
        (Say(200, workload(createdAt="soon")), "did not answer as Run:ai does", "base URL"),
        (Say(200, workload(id=["w"])), "did not answer as Run:ai does", "base URL"),
    ],
)
def test_each_refusal_has_a_remedy(plane: ControlPlane, api: RunaiApi, say: Say, what: str, mend: str) -> None:
    plane.on("GET", "/workloads/w-1", say)
    with pytest.raises(ApiError, match=what) as caught:
        api.read_workloads(["w-1"])
    assert caught.value.why
    assert mend in caught.value.fix


def test_a_token_goes_to_no_other_host(plane: ControlPlane, api: RunaiApi) -> None:
    plane.on("GET", "/workloads/w-1", Say(307, headers={"Location": f"{plane.site.url}/elsewhere"}))
    with pytest.raises(ApiError):
        api.read_workloads(["w-1"])
    assert plane.site.requests_to("/elsewhere") == []


def test_a_base_url_that_leads_to_something_else(plane: ControlPlane, api: RunaiApi) -> None:
    plane.grant = lambda _: Say(404, b"<html>")
    with pytest.raises(ApiError, match="Could not log in: it does not exist") as caught:
        api.log_in()
    assert "/api/v1" in caught.value.fix


@pytest.mark.parametrize("ahead_s", [0, 3600, -500])
def test_how_far_the_servers_clock_is_ahead(plane: ControlPlane, api: RunaiApi, ahead_s: int) -> None:
    date = email.utils.formatdate(time.time() + ahead_s, usegmt=True)
    assert api.skew_s is None
    plane.on("GET", "/workloads/w-1", Say(body=workload(), headers={"Date": date}))
    api.read_workloads(["w-1"])
    assert api.skew_s == pytest.approx(ahead_s, abs=60)
    assert api.server_time == pytest.approx(time.time() + ahead_s, abs=60)
