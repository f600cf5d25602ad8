"""`DistributedRequest`, `TrainingRequest`: the part of the creation requests of the API that the program sends.

Fields have the API's names, in camel case. Other fields are not simulated, and rejected.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeInt,
    PositiveInt,
    ValidationError,
)
from pydantic.alias_generators import to_camel

from llmb_tui.cluster.runai.values import given

DISTRIBUTED, TRAINING = "distributed", "trainings"
"""Kinds of workload, as in the API's paths."""
LONGEST_NAME = 54
"""Longest workload name: with `-master-0` it is the name of a pod, which is also a host name."""


def is_uuid(text: str) -> bool:
    """True if the text has the form of the control plane's ids."""
    try:
        return bool(uuid.UUID(text))
    except ValueError:
        return False


def _uuid(text: str) -> str:
    if not is_uuid(text):
        raise ValueError("must be a UUID")
    return text


Text = Annotated[str, Field(min_length=1)]
Label = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
Name = Annotated[str, Field(pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$", max_length=LONGEST_NAME)]


class _Part(BaseModel):
    """One object of a request."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel)


class EnvironmentVariableSecret(_Part):
    """An entry of a Kubernetes secret."""

    name: Label
    key: Text


class EnvironmentVariable(_Part):
    """A variable of every container, by its value or from a secret."""

    name: Text
    value: str | None = None
    secret: EnvironmentVariableSecret | None = None


class PvcInstance(_Part):
    """A volume claim that the pods mount."""

    name: Text | None = None
    path: Text | None = None
    existing_pvc: bool = False
    claim_name: Text | None = None


class SupersetSpecAllOfStorage(_Part):
    """Everything that the pods mount."""

    pvc: list[PvcInstance] = []


class SupersetSpecAllOfCompute(_Part):
    """Resources of each pod."""

    gpu_devices_request: NonNegativeInt = 0
    large_shm_request: bool = False


class ImagePullSecret(_Part):
    """Secret with which an image is pulled."""

    name: Label
    user_credential: bool = False


class TrainingSpecSpec(_Part):
    """Specification of each pod."""

    command: str = ""
    args: str = ""
    image: Text
    image_pull_secrets: list[ImagePullSecret] = []
    compute: SupersetSpecAllOfCompute = SupersetSpecAllOfCompute()
    environment_variables: list[EnvironmentVariable] = []
    storage: SupersetSpecAllOfStorage = SupersetSpecAllOfStorage()
    node_pools: Annotated[list[str], Field(min_length=1)] = ["default"]
    backoff_limit: int | None = None
    restart_policy: Literal["Never"] | None = None


class DistributedSpecSpec(TrainingSpecSpec):
    """Specification of each pod, and the number of workers."""

    distributed_framework: Literal["PyTorch"] | None = None
    num_workers: PositiveInt = 1


class TrainingCreationRequest(_Part):
    """A workload of one pod."""

    name: Name
    use_given_name_as_prefix: Literal[False] = False
    project_id: Text
    cluster_id: Annotated[str, AfterValidator(_uuid)]
    spec: TrainingSpecSpec


class DistributedCreationRequest(TrainingCreationRequest):
    """A workload of several pods. NVIDIA's tutorial requests a master, and one worker less."""

    master_spec_same_as_worker: bool = False
    spec: DistributedSpecSpec


REQUESTS: dict[str, type[TrainingCreationRequest]] = {
    DISTRIBUTED: DistributedCreationRequest,
    TRAINING: TrainingCreationRequest,
}
"""Type of the request for each kind of workload."""


def creation_request(kind: str, body: Any) -> TrainingCreationRequest:
    """Parse the body of a request, in which null means absent. Raises ValidationError."""
    return REQUESTS[kind].model_validate(given(body))


def problems(kind: str, body: Any) -> Iterator[tuple[str, str]]:
    """Faults of a request body, as (field, reason)."""
    try:
        creation_request(kind, body)
    except ValidationError as wrong:
        for error in wrong.errors(include_url=False, include_input=False):
            place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error["loc"])
            is_unknown = error["type"] == "extra_forbidden"
            yield place[1:] or "body", "is not simulated" if is_unknown else error["msg"]
