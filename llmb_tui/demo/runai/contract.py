"""What a request may hold: the fields of the contract, by name and type, and what is wrong with a body.

A table line is `field:type`, with `!` behind a field that must be there; `[type]` is a list, `a|b` one of these words,
`any` what the program never sends and nobody looks into. A field may be null unless it must be there.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from typing import Any

_WORKLOAD = "name!:name useGivenNameAsPrefix:boolean projectId!:text clusterId!:uuid templateId:uuid"
_POD = """annotations:[any] args:text autoDeletionTimeAfterCompletionSeconds:integer category:string command:text
    compute:Compute createHomeDir:boolean environmentVariables:[EnvironmentVariable] exposedUrls:[any] image:text
    imagePullPolicy:Always|Never|IfNotPresent imagePullSecrets:[ImagePullSecret] labels:[any] nodeAffinityRequired:any
    nodePools:[string] nodeType:text podAffinity:any ports:[any] preemptibility:preemptible|non-preemptible
    priorityClass:string probes:any relatedUrls:[any] restartPolicy:Always|Never|OnFailure security:any stdin:boolean
    storage:Storage terminateAfterPreemption:boolean terminationGracePeriodSeconds:count tolerations:[any] tty:boolean
    workingDir:text"""
OBJECTS = {
    "TrainingCreationRequest": f"{_WORKLOAD} spec:TrainingSpecSpec",
    "DistributedCreationRequest": f"{_WORKLOAD} spec:DistributedSpecSpec masterSpecSameAsWorker:boolean"
    " masterSpec:MasterSpec",
    "TrainingSpecSpec": f"{_POD} backoffLimit:integer completions:integer parallelism:integer",
    "DistributedSpecSpec": f"""{_POD} backoffLimit:integer cleanPodPolicy:None|All|Running
    distributedFramework:MPI|PyTorch|TF|XGBoost|JAX maxReplicas:integer minReplicas:integer
    mpiLauncherCreationPolicy:any numWorkers:positive slotsPerWorker:positive sshAuthMountPath:string""",
    "MasterSpec": f"{_POD} backoffLimit:integer",
    "SupersetSpecAllOfCompute": """cpuCoreLimit:number cpuCoreRequest:number cpuMemoryLimit:string
    cpuMemoryRequest:string extendedResources:[any] gpuDevicesRequest:count gpuMemoryLimit:string
    gpuMemoryRequest:string gpuPortionLimit:number gpuPortionRequest:number gpuRequestType:portion|memory
    largeShmRequest:boolean""",
    "SupersetSpecAllOfStorage": """configMapVolume:[any] dataVolume:[any] emptyDirVolume:[any] git:[any] hostPath:[any]
    nfs:[any] pvc:[PvcInstance] s3:[any] secretVolume:[any]""",
    "PvcInstance": """name:text path:text existingPvc:boolean claimName:text readOnly:boolean ephemeral:boolean
    claimInfo:any dataSharing:boolean exclude:boolean""",
    "EnvironmentVariable": """name:text value:string secret:EnvironmentVariableSecret configMap:any podFieldRef:any
    userCredential:any exclude:boolean description:string""",
    "EnvironmentVariableSecret": "name:label key:text",
    "ImagePullSecret": "name:label userCredential:boolean exclude:boolean",
}
"""The request bodies and their parts, by the names that the contract gives them."""
_ALIASES = {"Compute": "SupersetSpecAllOfCompute", "Storage": "SupersetSpecAllOfStorage"}
_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
LONGEST_NAME = 54
"""`-master-0` behind it makes the name of a pod, which is a host's name too."""


def fields(name: str) -> dict[str, tuple[str, bool]]:
    """The fields of an object: its type, and whether it must be there."""
    entries = (entry.split(":", 1) for entry in OBJECTS[name].split())
    return {key.rstrip("!"): (kind, key.endswith("!")) for key, kind in entries}


def problems(body: Any, name: str, at: str = "") -> Iterator[tuple[str, str]]:
    """(field, what is wrong with it) of a request body."""
    if not isinstance(body, dict):
        yield at or "body", "must be an object"
        return
    known = fields(name)
    for key in body.keys() - known.keys():
        yield f"{at}{key}", "is not a known field"
    for key, (kind, needed) in known.items():
        value = body.get(key)
        if value is not None:
            yield from _value_problems(value, kind, f"{at}{key}")
        elif needed:
            yield f"{at}{key}", "is required"


def _value_problems(value: Any, kind: str, at: str) -> Iterator[tuple[str, str]]:
    kind = _ALIASES.get(kind, kind)
    if kind.startswith("["):
        if not isinstance(value, list):
            yield at, "must be an array"
            return
        for index, part in enumerate(value):
            yield from _value_problems(part, kind[1:-1], f"{at}[{index}]")
    elif kind in OBJECTS:
        yield from problems(value, kind, f"{at}.")
    elif "|" in kind:
        if value not in kind.split("|"):
            yield at, f"must be one of {kind.replace('|', ', ')}"
    elif kind not in _CHECKS:
        raise ValueError(f"the table has no type {kind}")
    elif not _CHECKS[kind][0](value):
        yield at, _CHECKS[kind][1]


def is_uuid(text: object) -> bool:
    """Whether it is an id as the control plane gives them."""
    try:
        return isinstance(text, str) and bool(uuid.UUID(text))
    except ValueError:
        return False


def _integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_CHECKS: dict[str, tuple[Any, str]] = {
    "any": (lambda _: True, ""),
    "string": (lambda value: isinstance(value, str), "must be a string"),
    "text": (lambda value: isinstance(value, str) and bool(value), "must be a string that is not empty"),
    "name": (
        lambda value: isinstance(value, str) and bool(_NAME.fullmatch(value)) and len(value) <= LONGEST_NAME,
        f"must be at most {LONGEST_NAME} lower-case letters, digits and hyphens, and begin with a letter",
    ),
    "label": (lambda value: isinstance(value, str) and bool(_LABEL.fullmatch(value)), "must be a Kubernetes name"),
    "uuid": (is_uuid, "must be a UUID"),
    "boolean": (lambda value: isinstance(value, bool), "must be a boolean"),
    "integer": (_integer, "must be an integer"),
    "count": (lambda value: _integer(value) and value >= 0, "must be an integer of 0 or more"),
    "positive": (lambda value: _integer(value) and value >= 1, "must be an integer of 1 or more"),
    "number": (
        lambda value: (_integer(value) or isinstance(value, float)) and value >= 0,
        "must be a number of 0 or more",
    ),
}
