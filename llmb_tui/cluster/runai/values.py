"""What Run:ai says of a project, its hardware and its workloads: of its JSON what is used here, checked and clean."""

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
"""A workload's, as it stands in the paths of the API."""

HUB_KEYS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "token")
"""What a credential's entry with a Hugging Face token may be called, the likeliest first."""
_DATE_TIME = TypeAdapter(datetime)


def _clean(value: object) -> object:
    return clean_line(value) if isinstance(value, str) else value


def given(part: Any) -> Any:
    """A part of a JSON document without what is null: for the API that is as good as not being there."""
    if isinstance(part, list):
        return [given(one) for one in part if one is not None]
    return {name: given(one) for name, one in part.items() if one is not None} if isinstance(part, dict) else part


def _unix(value: object) -> float:
    moment = _DATE_TIME.validate_python(value)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


Text = Annotated[str, BeforeValidator(_clean)]
Moment = Annotated[float, BeforeValidator(_unix)]
"""Unix time."""


def _at(first: str, *path: str | int) -> Any:
    return Field("", validation_alias=AliasPath(first, *path))


class _Said(BaseModel):
    """By the API's names in camel case, `given`; what is not used here may be there or not."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True)


class _InPool(_Said):
    """What a project has in one node pool, and what it uses there."""

    pool: Text = _at("nodePool", "name")
    deserved: float | None = Field(None, validation_alias=AliasPath("gpu", "deserved"))
    limit: float | None = Field(None, validation_alias=AliasPath("gpu", "limit"))
    used_pool: Text = _at("nodePoolName")
    allocated: float | None = Field(None, validation_alias=AliasPath("allocated", "gpu"))


class Quota(_Said):
    """GPUs of a project in one node pool."""

    node_pool: str
    deserved: float
    limit: float | None
    """None: there is none."""
    allocated: float


class Project(_Said):
    """One project."""

    id: Text
    name: Text
    cluster_id: Text
    phase: Text = _at("status", "phase")
    """`Ready` where workloads can run."""
    message: Text = _at("status", "phaseMessage")
    default_node_pools: tuple[Text, ...] = ()
    """Those that a workload uses which names none, in this order."""
    resources: tuple[_InPool, ...] = ()
    usage: tuple[_InPool, ...] = Field((), validation_alias=AliasPath("status", "nodePoolQuotaStatuses"))

    @property
    def quotas(self) -> tuple[Quota, ...]:
        """Of each node pool."""
        used = {each.used_pool: each.allocated or 0.0 for each in self.usage}
        return tuple(
            Quota(
                node_pool=each.pool,
                deserved=each.deserved or 0.0,
                limit=None if each.limit is None or each.limit < 0 else each.limit,  # -1: there is none
                allocated=used.get(each.pool, 0.0),
            )
            for each in self.resources
        )


class ClusterFacts(_Said):
    """One cluster of the control plane."""

    name: Text
    state: Text = _at("status", "state")
    """`Connected` where it is."""


class NodePool(_Said):
    """One node pool."""

    name: Text


class Node(_Said):
    """One node."""

    name: Text
    node_pool: Text = ""
    status: Text = ""
    """`Ready` where it is."""
    gpu_type: Text = _at("gpuInfo", "gpuType")
    """As its driver names it, such as `NVIDIA H100 80GB HBM3`; empty without a GPU."""
    gpus: int = Field(0, validation_alias=AliasPath("gpuInfo", "gpuCount"))


class Claim(_Said):
    """One persistent volume claim that the project may mount."""

    name: Text = _at("meta", "name")
    """In Run:ai."""
    claim: Text = _at("spec", "claimName")
    """In Kubernetes."""
    path: Text = _at("spec", "path")
    status: Text = _at("status", "status")
    message: Text = _at("status", "message")

    @property
    def is_usable(self) -> bool:
        """False where Run:ai knows of something that is wrong with it."""
        return self.status not in ("Failed", "Issues found", "Deleting", "Deletion failed")


class Credential(_Said):
    """One credential that the project may use. Its values are not kept, not even where the API gives them."""

    name: Text = _at("meta", "name")
    kind: Text = _at("meta", "kind")
    """`genericSecret`, `dockerRegistry`, `accessKey`, `password` or `ngcApiKey`."""
    in_cluster: Text = _at("clusterInfo", "resources", 0, "name")
    existing: Text = _at("spec", "genericSecret", "existingSecretName")
    pairs: tuple[_Key, ...] = Field((), validation_alias=AliasPath("spec", "genericSecret", "keyValuePairs"))

    @property
    def secret(self) -> str:
        """The Kubernetes secret that holds it; empty where Run:ai does not say."""
        return self.in_cluster or self.existing

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of what a generic secret holds."""
        return tuple(pair.key for pair in self.pairs)

    @property
    def hub_token(self) -> tuple[str, str] | None:
        """(Kubernetes secret, key in it) with a Hugging Face token; None where it holds none."""
        key = next((key for key in HUB_KEYS if key in self.keys), "")
        return (self.secret, key) if self.secret and key else None


class _Key(_Said):
    key: Text = ""


class Condition(_Said):
    """One condition of a workload."""

    type: Text
    status: Text
    message: Text = ""


class Workload(_Said):
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
        """By which part of the API it is suspended, resumed and deleted."""
        return "distributed" if "distributed" in self.type.lower() else "trainings"

    @property
    def state(self) -> str:
        """As one of the words that the program has for a job's state."""
        if self.deleted_at is not None and self.phase not in ("Completed", "Failed"):
            return "CANCELLED"
        return _STATES.get(self.phase, "UNKNOWN")

    @property
    def has_reason(self) -> bool:
        """False where its state says all."""
        return self.state not in ("COMPLETED", "CANCELLED", "COMPLETING")

    @property
    def message(self) -> str:
        """Why it is in its phase, in the cluster's words; may be empty."""
        failing = (each for each in self.conditions if each.type in _FAILING and each.status == "True")
        said = [self.phase_reason, self.phase_message] if self.phase_reason or self.phase_message else []
        return " · ".join(filter(None, said or [each.message for each in failing][:1]))


_FAILING = ("Failed", "Unschedulable")
_STATES = {
    **dict.fromkeys(("Creating", "Initializing", "Pending", "Resuming"), "PENDING"),
    **dict.fromkeys(("Running", "Updating", "Degraded"), "RUNNING"),
    **dict.fromkeys(("Stopping", "Deleting", "Terminating"), "COMPLETING"),
    "Stopped": "SUSPENDED",
    "Failed": "FAILED",
    "Completed": "COMPLETED",
}


KEPT = (
    *("id", "name", "type", "priorityClassName", "preemptible", "submittedBy", "clusterId", "projectName"),
    *("departmentName", "namespace", "createdAt", "completedAt", "deletedAt", "phase", "phaseReason", "phaseMessage"),
    *("phaseUpdatedAt", "requestedPods", "allocatedResources", "totalRunningTimeSeconds"),
)
"""What is kept of a workload that is over: no variable of it, and no command."""
KEPT_OF_POD = ("name", "nodeName", "createdAt", "completedAt", "deletedAt", "k8sPhase")


def kept(said: Any, names: Iterable[str]) -> dict[str, Any]:
    """Of an answer what it says of these, in the API's own words: texts, which are made clean, and numbers."""
    values = {name: said.get(name) for name in names} if isinstance(said, dict) else {}
    plain = {clean_line(name): kept(one, one) if isinstance(one, dict) else _clean(one) for name, one in values.items()}
    is_number = (bool, int, float)
    return {
        name: one for name, one in plain.items() if isinstance(one, is_number) or (one and isinstance(one, (str, dict)))
    }


class Event(_Said):
    """One event of a workload."""

    created_at: Moment
    type: Text
    """`Normal` or `Warning`."""
    reason: Text = ""
    message: Text = ""


class Pod(_Said):
    """One pod of a workload."""

    name: Text
    container: Text = _at("containers", 0, "name")
    """The one that trains: its first."""
    started_at: Moment | None = Field(None, validation_alias=AliasPath("containers", 0, "startedAt"))
    deleted_at: Moment | None = None


_TIMED_OUT = re.compile(r"(?i)exit(?:ed)?[ -]?(?:with )?(?:exit )?(?:code|status)\W{1,3}124\b")
"""How the exit code is told of `timeout`, by which a workload keeps its time limit."""


def job_of(workload: Workload, events: Sequence[Event] = (), *, now: float) -> Job:
    """The workload as a job. `now`: Unix time by the server's clock."""
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
    """It failed, and its exit code, as far as anybody tells it, says that its time limit ended it."""
    if workload.state != "FAILED":
        return False
    conditions = (each.message for each in workload.conditions if each.status == "True")
    told = (workload.message, *conditions, *(event.message for event in events))
    return any(_TIMED_OUT.search(words) for words in told)


def reason_of(workload: Workload, events: Iterable[Event] = ()) -> str:
    """Why it waits, stands or failed: in plain words with the cluster's own after them; may be empty."""
    if not workload.has_reason:
        return ""
    said = [(workload.message, workload.message)] if workload.message else []
    if workload.phase != "Running":
        recent = sorted((e for e in events if e.type != "Normal"), key=lambda e: e.created_at, reverse=True)
        said += [(f"{event.reason} {event.message}", event.message or event.reason) for event in recent]
    for whole, words in said:
        if match := rules("workload").match(whole):
            return f"{match.diagnosis().reason.removesuffix('.')}: {words}"
    return said[0][1] if said else ""


def first_pod(pods: Iterable[Pod]) -> Pod | None:
    """The pod of global rank 0: the master, else the first worker, else the only one; of several the newest."""
    newest = sorted(pods, key=lambda pod: (pod.deleted_at is None, pod.started_at or 0.0), reverse=True)
    first = (pod for mark in ("-master-0", "-worker-0", "") for pod in newest if pod.name.endswith(mark))
    return next(first, None)
