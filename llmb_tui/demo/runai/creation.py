"""`DistributedRequest`, `TrainingRequest`: of what the contract lets a workload be made of, what the program sends.

Fields have the contract's names, in camel case. What is not here is not simulated, and refused.
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
"""Kinds of workload, by their word in the API's paths."""
LONGEST_NAME = 54
"""`-master-0` behind it makes the name of a pod, which is a host's name too."""


def is_uuid(text: str) -> bool:
    """Whether it is an id as the control plane gives them."""
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
    """What each pod is given."""

    gpu_devices_request: NonNegativeInt = 0
    large_shm_request: bool = False


class ImagePullSecret(_Part):
    """What an image is pulled with."""

    name: Label
    user_credential: bool = False


class TrainingSpecSpec(_Part):
    """What each pod is made of."""

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
    """The same, and how many of them there are."""

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
    """A workload of several pods. NVIDIA's tutorial asks for a master, and for one worker less."""

    master_spec_same_as_worker: bool = False
    spec: DistributedSpecSpec


REQUESTS: dict[str, type[TrainingCreationRequest]] = {
    DISTRIBUTED: DistributedCreationRequest,
    TRAINING: TrainingCreationRequest,
}
"""What a request is, by the kind of workload."""


def creation_request(kind: str, body: Any) -> TrainingCreationRequest:
    """The request of a body, in which null is as good as nothing. Raises ValidationError."""
    return REQUESTS[kind].model_validate(given(body))


def problems(kind: str, body: Any) -> Iterator[tuple[str, str]]:
    """(field, what is wrong with it) of a request body."""
    try:
        creation_request(kind, body)
    except ValidationError as wrong:
        for error in wrong.errors(include_url=False, include_input=False):
            place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error["loc"])
            is_unknown = error["type"] == "extra_forbidden"
            yield place[1:] or "body", "is not simulated" if is_unknown else error["msg"]
