"""Models of Run:ai's JSON for projects, hardware and workloads: the used fields, validated and clean."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import AliasPath, BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter
from pydantic.alias_generators import to_camel

from llmb_tui.cluster.job import Job
from llmb_tui.diagnosis.rules import rules
from llmb_tui.language.text import clean_line

WorkloadKind = Literal["distributed", "trainings"]
"""Kind of a workload in the paths of the API."""

HUB_KEYS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "token")
"""Possible names of a credential's entry with a Hugging Face token, the most likely first."""
_DATE_TIME = TypeAdapter(datetime)


def _clean(value: object) -> object:
    return clean_line(value) if isinstance(value, str) else value


def given(part: Any) -> Any:
    """Remove nulls from a JSON document: for the API they are the same as missing keys."""
    if isinstance(part, list):
        return [given(item) for item in part if item is not None]
    return {name: given(value) for name, value in part.items() if value is not None} if isinstance(part, dict) else part


def _unix(value: object) -> float:
    moment = _DATE_TIME.validate_python(value)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


Text = Annotated[str, BeforeValidator(_clean)]
Moment = Annotated[float, BeforeValidator(_unix)]
"""Unix time."""


def _nested(first: str, *path: str | int) -> Any:
    return Field("", validation_alias=AliasPath(first, *path))


class _ApiModel(BaseModel):
    """Base of the models, by the API's names in camel case. Unused fields are ignored."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True)


class _PoolShare(_ApiModel):
    """Quota and use of a project in one node pool."""

    pool: Text = _nested("nodePool", "name")
    deserved: float | None = Field(None, validation_alias=AliasPath("gpu", "deserved"))
    limit: float | None = Field(None, validation_alias=AliasPath("gpu", "limit"))
    used_pool: Text = _nested("nodePoolName")
    allocated: float | None = Field(None, validation_alias=AliasPath("allocated", "gpu"))


class Quota(_ApiModel):
    """GPUs of a project in one node pool."""

    node_pool: str
    deserved: float
    limit: float | None
    """Most GPUs; None: no limit."""
    allocated: float


class Project(_ApiModel):
    id: Text
    name: Text
    cluster_id: Text
    phase: Text = _nested("status", "phase")
    """`Ready` if workloads can run."""
    message: Text = _nested("status", "phaseMessage")
    default_node_pools: tuple[Text, ...] = ()
    """Node pools, in order, of a workload that names none."""
    resources: tuple[_PoolShare, ...] = ()
    usage: tuple[_PoolShare, ...] = Field((), validation_alias=AliasPath("status", "nodePoolQuotaStatuses"))

    @property
    def quotas(self) -> tuple[Quota, ...]:
        """Quotas of the node pools."""
        used = {share.used_pool: share.allocated or 0.0 for share in self.usage}
        return tuple(
            Quota(
                node_pool=share.pool,
                deserved=share.deserved or 0.0,
                limit=None if share.limit is None or share.limit < 0 else share.limit,  # -1: no limit
                allocated=used.get(share.pool, 0.0),
            )
            for share in self.resources
        )


class ClusterFacts(_ApiModel):
    """One cluster of the control plane."""

    name: Text
    state: Text = _nested("status", "state")
    """`Connected` for a working cluster."""


class NodePool(_ApiModel):
    name: Text


class Node(_ApiModel):
    name: Text
    node_pool: Text = ""
    status: Text = ""
    """`Ready` for a working node."""
    gpu_type: Text = _nested("gpuInfo", "gpuType")
    """GPU name of the driver, such as `NVIDIA H100 80GB HBM3`; empty without a GPU."""
    gpus: int = Field(0, validation_alias=AliasPath("gpuInfo", "gpuCount"))


class Claim(_ApiModel):
    """One persistent volume claim that the project may mount."""

    name: Text = _nested("meta", "name")
    """Name in Run:ai."""
    claim: Text = _nested("spec", "claimName")
    """Name in Kubernetes."""
    path: Text = _nested("spec", "path")
    status: Text = _nested("status", "status")
    message: Text = _nested("status", "message")

    @property
    def is_usable(self) -> bool:
        """False if Run:ai reports a problem with it."""
        return self.status not in ("Failed", "Issues found", "Deleting", "Deletion failed")


class Credential(_ApiModel):
    """One credential that the project may use. Its values are not read, even if the API sends them."""

    name: Text = _nested("meta", "name")
    kind: Text = _nested("meta", "kind")
    """`genericSecret`, `dockerRegistry`, `accessKey`, `password` or `ngcApiKey`."""
    in_cluster: Text = _nested("clusterInfo", "resources", 0, "name")
    existing: Text = _nested("spec", "genericSecret", "existingSecretName")
    pairs: tuple[_Key, ...] = Field((), validation_alias=AliasPath("spec", "genericSecret", "keyValuePairs"))

    @property
    def secret(self) -> str:
        """Kubernetes secret with its values; empty if Run:ai does not name it."""
        return self.in_cluster or self.existing

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the entries of a generic secret."""
        return tuple(pair.key for pair in self.pairs)

    @property
    def hub_token(self) -> tuple[str, str] | None:
        """(Kubernetes secret, key in it) of a Hugging Face token; None if there is none."""
        key = next((key for key in HUB_KEYS if key in self.keys), "")
        return (self.secret, key) if self.secret and key else None


class _Key(_ApiModel):
    key: Text = ""


class Condition(_ApiModel):
    """One condition of a workload."""

    type: Text
    status: Text
    message: Text = ""


class Workload(_ApiModel):
    """One workload at one moment."""

    id: Text
    name: Text
    type: Text
    phase: Text
    phase_reason: Text = ""
    phase_message: Text = ""
    conditions: tuple[Condition, ...] = ()
    namespace: Text = ""
    nodes: int | None = Field(None, validation_alias=AliasPath("requestedPods", "number"))
    created_at: Moment
    phase_updated_at: Moment
    deleted_at: Moment | None = None
    total_running_time_seconds: float | None = None

    @property
    def kind(self) -> WorkloadKind:
        """Part of the API that suspends, resumes and deletes it."""
        return "distributed" if "distributed" in self.type.lower() else "trainings"

    @property
    def state(self) -> str:
        """State of the workload, as a state of a `Job`."""
        if self.deleted_at is not None and self.phase not in ("Completed", "Failed"):
            return "CANCELLED"
        return _STATES.get(self.phase, "UNKNOWN")

    @property
    def has_reason(self) -> bool:
        """False for states that need no reason."""
        return self.state not in ("COMPLETED", "CANCELLED", "COMPLETING")

    @property
    def message(self) -> str:
        """The cluster's message about its phase; may be empty."""
        failing = (
            condition for condition in self.conditions if condition.type in _FAILING and condition.status == "True"
        )
        messages = [self.phase_reason, self.phase_message] if self.phase_reason or self.phase_message else []
        return " · ".join(filter(None, messages or [condition.message for condition in failing][:1]))


_FAILING = ("Failed", "Unschedulable")
_STATES = {
    **dict.fromkeys(("Creating", "Initializing", "Pending", "Resuming"), "PENDING"),
    **dict.fromkeys(("Running", "Updating", "Degraded"), "RUNNING"),
    **dict.fromkeys(("Stopping", "Deleting", "Terminating"), "COMPLETING"),
    "Stopped": "SUSPENDED",
    "Failed": "FAILED",
    "Completed": "COMPLETED",
}


WORKLOAD_FIELDS = (
    *("id", "name", "type", "priorityClassName", "preemptible", "submittedBy", "clusterId", "projectName"),
    *("departmentName", "namespace", "createdAt", "completedAt", "deletedAt", "phase", "phaseReason", "phaseMessage"),
    *("phaseUpdatedAt", "requestedPods", "allocatedResources", "totalRunningTimeSeconds"),
)
"""Stored fields of an ended workload; no variables and no command, which may contain secrets."""
POD_FIELDS = ("name", "nodeName", "createdAt", "completedAt", "deletedAt", "k8sPhase")


def selected(document: Any, names: Iterable[str]) -> dict[str, Any]:
    """Select fields of an answer: clean texts and numbers; null and empty values are left out."""
    values = {name: document.get(name) for name in names} if isinstance(document, dict) else {}
    plain = {clean_line(name): selected(v, v) if isinstance(v, dict) else _clean(v) for name, v in values.items()}
    is_number = (bool, int, float)
    return {
        name: value
        for name, value in plain.items()
        if isinstance(value, is_number) or (value and isinstance(value, (str, dict)))
    }


class Event(_ApiModel):
    """One event of a workload."""

    created_at: Moment
    type: Text
    """`Normal` or `Warning`."""
    reason: Text = ""
    message: Text = ""


class Pod(_ApiModel):
    """One pod of a workload."""

    name: Text
    container: Text = _nested("containers", 0, "name")
    """Name of its first container, which trains."""
    started_at: Moment | None = Field(None, validation_alias=AliasPath("containers", 0, "startedAt"))
    deleted_at: Moment | None = None


_TIMED_OUT = re.compile(r"(?i)exit(?:ed)?[ -]?(?:with )?(?:exit )?(?:code|status)\W{1,3}124\b")
"""Message about the exit code of `timeout`, which enforces a workload's time limit."""


def job_from_workload(workload: Workload, events: Sequence[Event] = (), *, now: float) -> Job:
    """Convert a workload to a job. `now`: Unix time by the server's clock."""
    elapsed_s = workload.total_running_time_seconds
    if elapsed_s is None and workload.state == "RUNNING":
        elapsed_s = max(0.0, now - workload.phase_updated_at)
    return Job(
        id=workload.id,
        name=workload.name,
        state="TIMEOUT" if _ran_out_of_time(workload, events) else workload.state,
        reason=reason_of(workload, events),
        nodes=workload.nodes,
        elapsed_s=elapsed_s,
    )


def _ran_out_of_time(workload: Workload, events: Iterable[Event]) -> bool:
    """True if the workload failed with the exit code of its time limit."""
    if workload.state != "FAILED":
        return False
    conditions = (condition.message for condition in workload.conditions if condition.status == "True")
    messages = (workload.message, *conditions, *(event.message for event in events))
    return any(_TIMED_OUT.search(words) for words in messages)


def reason_of(workload: Workload, events: Iterable[Event] = ()) -> str:
    """Reason why it waits, is stopped or failed: plain words, then the cluster's message; may be empty."""
    if not workload.has_reason:
        return ""
    texts = [(workload.message, workload.message)] if workload.message else []
    if workload.phase != "Running":
        recent = sorted((e for e in events if e.type != "Normal"), key=lambda e: e.created_at, reverse=True)
        texts += [(f"{event.reason} {event.message}", event.message or event.reason) for event in recent]
    for text, words in texts:
        if match := rules("workload").match(text):
            return f"{match.diagnosis().reason.removesuffix('.')}: {words}"
    return texts[0][1] if texts else ""


def first_pod(pods: Iterable[Pod]) -> Pod | None:
    """Pod of global rank 0: the master, else the first worker, else the only pod; the newest of several."""
    newest = sorted(pods, key=lambda pod: (pod.deleted_at is None, pod.started_at or 0.0), reverse=True)
    first = (pod for mark in ("-master-0", "-worker-0", "") for pod in newest if pod.name.endswith(mark))
    return next(first, None)
