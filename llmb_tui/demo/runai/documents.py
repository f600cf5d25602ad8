"""The control plane's answers, as documents of the API. Pure."""

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


def stamp(moment: float) -> str:
    """A time in the format of the API."""
    text = datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def stamp_or_none(moment: float, now: float) -> str | None:
    """A time in the format of the API, or null if it is in the future."""
    return stamp(moment) if moment <= now else None


_AGE = {"createdAt": stamp(facts.CREATED), "updatedAt": stamp(facts.CREATED)}


def derived_id(text: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"simulated:{text}"))


def cluster() -> Document:
    """DisplayedCluster document."""
    return {
        "uuid": facts.CLUSTER,
        "tenantId": facts.TENANT,
        "name": facts.CLUSTER_NAME,
        "createdAt": stamp(facts.CREATED),
        "version": facts.VERSION,
        "status": {"state": "Connected"},
    }


def project(allocated: Mapping[str, int], limits: Mapping[str, int]) -> Document:
    """Project document, with the allocation of its workloads in each node pool."""
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
    return [{"name": name, "status": "Ready", "isDefault": name == "default"} for name in facts.POOLS]


def nodes() -> list[Document]:
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
    """PVCAsset documents."""
    return [
        {**_asset(name, "pvc"), "spec": {"path": f"/{name}", "claimName": name, "readOnly": False}}
        for name in facts.CLAIMS
    ]


def credentials() -> list[Document]:
    """CredentialsListResponseEntry documents, without the secrets."""
    registries = [_credential(name, "dockerRegistry", facts.REGISTRY_PREFIX, {"keyId": 1}) for name in facts.REGISTRIES]
    secrets = [
        _credential(name, "genericSecret", facts.SECRET_PREFIX, {"keyId": 2, "keyValuePairs": [{"key": key}]})
        for name, key in facts.SECRETS.items()
    ]
    return registries + secrets


def _credential(name: str, kind: str, prefix: str, spec: Document) -> Document:
    return {**_asset(name, kind), "spec": {kind: spec}, "clusterInfo": {"resources": [{"name": f"{prefix}{name}"}]}}


def _asset(name: str, kind: str) -> Document:
    meta = {"id": derived_id(f"{kind}/{name}"), "name": name, "kind": kind, "scope": "project"}
    history = {**_AGE, "createdBy": USER, "updatedBy": USER, "projectId": int(facts.PROJECT_ID)}
    return {"meta": meta | history, "status": {"status": "No issues found"}}


def submitted(record: Workload) -> Document:
    """DistributedWorkload or Training1 document, with the required fields of a new workload."""
    return {
        "name": record.name,
        "requestedName": record.name,
        "workloadId": record.id,
        "projectId": facts.PROJECT_ID,
        "clusterId": facts.CLUSTER,
        "createdBy": USER,
        "createdAt": stamp(record.created),
        "desiredPhase": "Running",
    }


def workload(record: Workload, now: float) -> Document:
    phase, since = record.phase(now)
    waits = record.obstacle if phase == "Pending" and record.obstacle else {}
    document: Document = {
        "id": record.id,
        "tenantId": facts.TENANT,
        "name": record.name,
        "type": TYPES[record.kind],
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
        "createdAt": stamp(record.created),
        "updatedAt": stamp(since),
        "deletedAt": stamp_or_none(record.deleted, now),
        "completedAt": stamp_or_none(record.ends, now),
        "phase": phase,
        "phaseMessage": record.why(now),
        "phaseReason": waits.get("phaseReason"),
        "phaseUpdatedAt": stamp(since),
        "k8sPhase": record.kubernetes_phase(now),
        "k8sPhaseUpdatedAt": stamp(since),
        "conditions": [],
        "runningPods": len(record.pods) if phase == "Running" else 0,
        "requestedPods": {"number": len(record.pods), "parallelism": None},
        "allocatedResources": {"gpu": record.gpus, "gpuMemory": f"{80 * record.gpus}G"}
        if record.holds(now)
        else {"gpu": 0},
        "totalRunningTimeSeconds": int(max(0.0, min(now, record.ends) - record.running_from)),
    }
    if waits:
        entry = {name: waits[name] for name in ("reason", "message")}
        document["conditions"] = [{"type": "Unschedulable", "status": "True", **entry}]
    return document


def event(entry: Event, record: Workload) -> Document:
    pod = record.pods[0]
    return {
        "id": derived_id(f"{record.id}/{entry.time}/{entry.reason}/{entry.message}"),
        "createdAt": stamp(entry.time),
        "type": entry.kind,
        "reason": entry.reason,
        "message": entry.message,
        "source": entry.source,
        "clusterId": facts.CLUSTER,
        "involvedObject": {
            "uid": derived_id(f"{record.id}/{pod}"),
            "kind": "Pod",
            "name": pod,
            "namespace": facts.NAMESPACE,
        },
    }


def pods(record: Workload, now: float) -> list[Document]:
    names = facts.POOLS[record.pool].node_names if record.started is not None else []
    since = stamp(record.phase(now)[1])
    container = {
        "name": record.container,
        "image": record.spec.image,
        "startedAt": stamp_or_none(record.running_from, now),
    }
    return [
        {
            "id": derived_id(f"{record.id}/{name}"),
            "name": name,
            "tenantId": facts.TENANT,
            "workloadId": record.id,
            "clusterId": facts.CLUSTER,
            "priorityClassName": PRIORITY,
            "nodeName": names[number] if number < len(names) else "",
            "createdAt": stamp(record.queued),
            "updatedAt": since,
            "completedAt": stamp_or_none(record.ends, now),
            "deletedAt": stamp_or_none(record.deleted, now),
            "containers": [container],
            "k8sPhase": record.kubernetes_phase(now),
            "k8sPhaseUpdatedAt": since,
        }
        for number, name in enumerate(record.pods)
    ]
