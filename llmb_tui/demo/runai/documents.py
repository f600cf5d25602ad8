"""What the control plane answers, as documents of the contract. Pure."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from llmb_tui.demo.runai import facts
from llmb_tui.demo.runai.creation import DISTRIBUTED, TRAINING
from llmb_tui.demo.runai.workload import Event, Workload

Document = dict[str, Any]
TYPES = {DISTRIBUTED: "Distributed", TRAINING: "Training"}
USER, PRIORITY = "llmb-tui-demo", "low"


def stamp(at: float) -> str:
    """A moment as the API writes it."""
    text = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def stamp_or_none(at: float, now: float) -> str | None:
    """The same, or null for what has not come yet."""
    return stamp(at) if at <= now else None


_AGE = {"createdAt": stamp(facts.CREATED), "updatedAt": stamp(facts.CREATED)}


def made(text: str) -> str:
    """An id that follows from a text."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"simulated:{text}"))


def cluster() -> Document:
    """DisplayedCluster."""
    return {
        "uuid": facts.CLUSTER,
        "tenantId": facts.TENANT,
        "name": facts.CLUSTER_NAME,
        "createdAt": stamp(facts.CREATED),
        "version": facts.VERSION,
        "status": {"state": "Connected"},
    }


def project(allocated: Mapping[str, int], limits: Mapping[str, int]) -> Document:
    """Project, with what its workloads have of each node pool."""
    pools = facts.POOLS.values()
    return {
        "id": facts.PROJECT_ID,
        "name": facts.PROJECT,
        "description": "simulated",
        "clusterId": facts.CLUSTER,
        "parentId": facts.DEPARTMENT[1],
        "enforceRunaiScheduler": True,
        **_AGE,
        "defaultNodePools": ["default"],
        "effective": {"defaultNodePools": ["default"]},
        "totalResources": {"gpuQuota": sum(pool.deserved for pool in pools)},
        "status": {
            "namespace": facts.NAMESPACE,
            "phase": "Ready",
            "nodePoolQuotaStatuses": [
                {"nodePoolName": pool.name, "nodePoolId": pool.id, "allocated": {"gpu": allocated[pool.name]}}
                for pool in pools
            ],
        },
        "resources": [
            {
                "nodePool": {"id": pool.id, "name": pool.name},
                "gpu": {"deserved": pool.deserved, "limit": limits[pool.name]},
            }
            for pool in pools
        ],
    }


def node_pools() -> list[Document]:
    """NodePool1, of all of them."""
    return [{"name": name, "status": "Ready", "isDefault": name == "default"} for name in facts.POOLS]


def nodes() -> list[Document]:
    """Node, of all of them."""
    return [
        {
            "name": name,
            "clusterUuid": facts.CLUSTER,
            "status": "Ready",
            "nodePool": pool.name,
            **_AGE,
            "gpuInfo": {"gpuType": pool.gpu_type, "gpuCount": pool.gpus_per_node},
        }
        for pool in facts.POOLS.values()
        for name in pool.node_names
    ]


def claims() -> list[Document]:
    """PVCAsset."""
    return [
        {**_asset(name, "pvc"), "spec": {"path": f"/{name}", "claimName": name, "readOnly": False}}
        for name in facts.CLAIMS
    ]


def credentials() -> list[Document]:
    """CredentialsListResponseEntry; what is in them stays with the control plane."""
    registries = [_credential(name, "dockerRegistry", facts.REGISTRY_PREFIX, {"keyId": 1}) for name in facts.REGISTRIES]
    secrets = [
        _credential(name, "genericSecret", facts.SECRET_PREFIX, {"keyId": 2, "keyValuePairs": [{"key": key}]})
        for name, key in facts.SECRETS.items()
    ]
    return registries + secrets


def _credential(name: str, kind: str, prefix: str, spec: Document) -> Document:
    return {**_asset(name, kind), "spec": {kind: spec}, "clusterInfo": {"resources": [{"name": f"{prefix}{name}"}]}}


def _asset(name: str, kind: str) -> Document:
    meta = {"id": made(f"{kind}/{name}"), "name": name, "kind": kind, "scope": "project"}
    history = {**_AGE, "createdBy": USER, "updatedBy": USER, "projectId": int(facts.PROJECT_ID)}
    return {"meta": meta | history, "status": {"status": "No issues found"}}


def submitted(one: Workload) -> Document:
    """DistributedWorkload or Training1, as far as that must be said of a new one."""
    return {
        "name": one.name,
        "requestedName": one.name,
        "workloadId": one.id,
        "projectId": facts.PROJECT_ID,
        "clusterId": facts.CLUSTER,
        "createdBy": USER,
        "createdAt": stamp(one.created),
        "desiredPhase": "Running",
    }


def workload(one: Workload, now: float) -> Document:
    """Workload."""
    phase, since = one.phase(now)
    waits = one.obstacle if phase == "Pending" and one.obstacle else {}
    document: Document = {
        "id": one.id,
        "tenantId": facts.TENANT,
        "name": one.name,
        "type": TYPES[one.kind],
        "source": "Control-plane",
        "category": "Train",
        "priority": None,
        "priorityClassName": PRIORITY,
        "preemptible": True,
        "submittedBy": USER,
        "clusterId": facts.CLUSTER,
        "projectName": facts.PROJECT,
        "projectId": facts.PROJECT_ID,
        "departmentName": facts.DEPARTMENT[0],
        "departmentId": facts.DEPARTMENT[1],
        "namespace": facts.NAMESPACE,
        "createdAt": stamp(one.created),
        "updatedAt": stamp(since),
        "deletedAt": stamp_or_none(one.deleted, now),
        "completedAt": stamp_or_none(one.ends, now),
        "phase": phase,
        "phaseMessage": one.why(now),
        "phaseReason": waits.get("phaseReason"),
        "phaseUpdatedAt": stamp(since),
        "k8sPhase": one.kubernetes_phase(now),
        "k8sPhaseUpdatedAt": stamp(since),
        "conditions": [],
        "runningPods": len(one.pods) if phase == "Running" else 0,
        "requestedPods": {"number": len(one.pods), "parallelism": None},
        "allocatedResources": {"gpu": one.gpus, "gpuMemory": f"{80 * one.gpus}G"} if one.holds(now) else {"gpu": 0},
        "totalRunningTimeSeconds": int(max(0.0, min(now, one.ends) - one.running_from)),
    }
    if waits:
        said = {name: waits[name] for name in ("reason", "message")}
        document["conditions"] = [{"type": "Unschedulable", "status": "True", **said}]
    return document


def event(said: Event, one: Workload) -> Document:
    """Event."""
    pod = one.pods[0]
    return {
        "id": made(f"{one.id}/{said.at}/{said.reason}/{said.message}"),
        "createdAt": stamp(said.at),
        "type": said.kind,
        "reason": said.reason,
        "message": said.message,
        "source": said.source,
        "clusterId": facts.CLUSTER,
        "involvedObject": {"uid": made(f"{one.id}/{pod}"), "kind": "Pod", "name": pod, "namespace": facts.NAMESPACE},
    }


def pods(one: Workload, now: float) -> list[Document]:
    """Pod, of each of them."""
    names = facts.POOLS[one.pool].node_names if one.started is not None else []
    since = stamp(one.phase(now)[1])
    container = {"name": one.container, "image": one.spec.image, "startedAt": stamp_or_none(one.running_from, now)}
    return [
        {
            "id": made(f"{one.id}/{name}"),
            "name": name,
            "tenantId": facts.TENANT,
            "workloadId": one.id,
            "clusterId": facts.CLUSTER,
            "priorityClassName": PRIORITY,
            "nodeName": names[number] if number < len(names) else "",
            "createdAt": stamp(one.queued),
            "updatedAt": since,
            "completedAt": stamp_or_none(one.ends, now),
            "deletedAt": stamp_or_none(one.deleted, now),
            "containers": [container],
            "k8sPhase": one.kubernetes_phase(now),
            "k8sPhaseUpdatedAt": since,
        }
        for number, name in enumerate(one.pods)
    ]
