"""`Workload`: one workload and its life. Its phase, pods, events and log follow from its record and the time.

Its clock runs `speed` times faster than real time from its submission, like that of the simulated Slurm's jobs; all its
times are Unix times on that clock.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from llmb_tui.demo.runai import facts
from llmb_tui.demo.runai.container import Container, Output, output
from llmb_tui.demo.runai.creation import (
    DISTRIBUTED,
    DistributedCreationRequest,
    DistributedSpecSpec,
    TrainingCreationRequest,
    TrainingSpecSpec,
    creation_request,
)

CREATING_S, QUEUED_S, PULLING_S, ENDING_S = 5.0, 15.0, 30.0, 10.0
"""Simulated seconds: before the queue, minimum in it, until its containers run, and to stop or delete it."""


@dataclass(frozen=True)
class Event:
    """Event of a pod in Kubernetes."""

    time: float
    kind: str
    reason: str
    message: str
    source: str


@dataclass
class Workload:
    """One workload; `body` is its creation request."""

    id: str
    kind: str
    name: str
    body: dict[str, Any]
    speed: float
    created: float
    queued: float
    """Time at which it was submitted, resumed or evicted."""
    attempts: int = 1
    started: float | None = None
    """Time at which it got its nodes."""
    stop_asked: float | None = None
    delete_asked: float | None = None
    obstacle: dict[str, Any] | None = None
    """Why the scheduler leaves it in the queue: at, reason, message, and the control plane's word for it."""
    evictions: list[float] = field(default_factory=list)
    knobs: dict[str, float] = field(default_factory=dict)
    """Faults of the training that were active when it was queued."""

    def now(self, real: float) -> float:
        """Convert a real time to its clock."""
        return self.created + (real - self.created) * self.speed

    @cached_property
    def request(self) -> TrainingCreationRequest:
        return creation_request(self.kind, self.body)

    @property
    def spec(self) -> TrainingSpecSpec:
        """Specification of each of its pods."""
        return self.request.spec

    @property
    def has_master(self) -> bool:
        """True if a pod in addition to its workers has rank 0."""
        request = self.request
        return isinstance(request, DistributedCreationRequest) and request.master_spec_same_as_worker

    @property
    def pods(self) -> list[str]:
        """Names of its pods, rank 0's first."""
        if not isinstance(self.spec, DistributedSpecSpec):
            return [f"{self.name}-0-0"]
        workers = [f"{self.name}-worker-{number}" for number in range(self.spec.num_workers)]
        return [f"{self.name}-master-0"] * self.has_master + workers

    @property
    def container(self) -> str:
        """Name of the container in each pod."""
        return "pytorch" if self.kind == DISTRIBUTED else self.name

    @property
    def gpus(self) -> int:
        """Number of GPUs that all its pods request."""
        return len(self.pods) * self.gpus_per_pod

    @property
    def gpus_per_pod(self) -> int:
        """Number of GPUs that each of its pods requests."""
        return self.spec.compute.gpu_devices_request

    @property
    def pool(self) -> str:
        """Node pool that it requests."""
        return self.spec.node_pools[0]

    @property
    def waits(self) -> bool:
        """True if it needs nodes and has none."""
        return self.started is None and self.stop_asked is None and self.delete_asked is None

    @property
    def in_queue(self) -> float:
        """Time from which it may be scheduled."""
        return self.queued + CREATING_S + QUEUED_S + self.knobs.get("queue-wait", 0.0)

    @property
    def container_error(self) -> tuple[str, str] | None:
        """Reason and message if its containers cannot be started, as in an event."""
        if not facts.IMAGES.fullmatch(self.spec.image):
            return "BackOff", f'Back-off pulling image "{self.spec.image}"'
        known = {(f"{facts.SECRET_PREFIX}{name}", key) for name, key in facts.SECRETS.items()}
        for variable in self.spec.environment_variables:
            if variable.secret and (variable.secret.name, variable.secret.key) not in known:
                return "Failed", f'Error: secret "{variable.secret.name}" not found'
        return None

    @property
    def running_from(self) -> float:
        """Time at which its containers start to run; infinite if they do not."""
        return math.inf if self.started is None or self.container_error else self.started + PULLING_S

    @property
    def output(self) -> Output:
        """Output of rank 0's container from `running_from` on."""
        variables = self.spec.environment_variables
        return output(
            Container(
                command=f"{self.spec.command} {self.spec.args}",
                environment=tuple((entry.name, entry.value) for entry in variables if entry.value is not None),
                host=self.pods[0],
                pods=len(self.pods),
                gpus=self.gpus,
                has_master=self.has_master,
                seed=f"{self.id}/{self.attempts}",
                began=self.running_from,
                speed=self.speed,
                knobs=tuple(sorted(self.knobs.items())),
            )
        )

    @property
    def ends(self) -> float:
        """Time at which its containers end by themselves."""
        return self.running_from + self.output.seconds if math.isfinite(self.running_from) else math.inf

    @property
    def deleted(self) -> float:
        """Time at which it no longer exists."""
        return math.inf if self.delete_asked is None else self.delete_asked + ENDING_S

    def phase(self, now: float) -> tuple[str, float]:
        """Its phase in the control plane, and the phase's beginning."""
        if self.delete_asked is not None and self.delete_asked <= self.ends:
            return "Deleting", self.delete_asked
        if self.stop_asked is not None:
            stopped = self.stop_asked + ENDING_S
            return ("Stopping", self.stop_asked) if now < stopped else ("Stopped", stopped)
        if self.started is None:
            pending = self.queued + CREATING_S
            first = "Resuming" if self.attempts > 1 else "Creating"
            return (first, self.queued) if now < pending else ("Pending", pending)
        if now < self.running_from:
            return "Initializing", self.started
        if now < self.ends:
            return "Running", self.running_from
        return ("Failed" if self.output.code else "Completed"), self.ends

    def kubernetes_phase(self, now: float) -> str:
        words = {"Running": "Running", "Completed": "Succeeded", "Failed": "Failed", "Stopping": "Running"}
        return words.get(self.phase(now)[0], "Pending")

    def has_pods(self, now: float) -> bool:
        """True if its pods exist."""
        return now < self.deleted and self.phase(now)[0] not in ("Creating", "Resuming", "Stopped")

    def holds(self, now: float) -> bool:
        """True if it has GPUs."""
        gone = self.deleted if self.stop_asked is None else self.stop_asked + ENDING_S
        return self.started is not None and now < min(self.ends, gone)

    def log(self, now: float) -> list[str]:
        """Output of rank 0's container so far."""
        if not math.isfinite(self.running_from):
            return []
        until = min([now, *(asked for asked in (self.stop_asked, self.delete_asked) if asked is not None)])
        return [text for seconds, text in self.output.lines if self.running_from + seconds <= until]

    def why(self, now: float) -> str:
        """Explanation of its phase for the operator; empty if there is none."""
        phase, _ = self.phase(now)
        if phase == "Pending" and self.obstacle:
            return str(self.obstacle["message"])
        if phase == "Initializing" and self.container_error:
            return self.container_error[1]
        return f"Container {self.container} exited with code {self.output.code}" if phase == "Failed" else ""

    def events(self, now: float) -> list[Event]:
        """Events of its first pod so far, the newest first."""
        return sorted(
            (entry for entry in self._events() if entry.time <= now), key=lambda entry: entry.time, reverse=True
        )

    def _events(self) -> Iterator[Event]:
        pod, image = self.pods[0], self.spec.image
        for moment in self.evictions:
            message = f"Pod {facts.NAMESPACE}/{pod} was preempted by higher priority workload high-priority"
            yield Event(moment, "Warning", "Evict", message, "runai-scheduler")
        if self.obstacle:
            reason, message = self.obstacle["reason"], self.obstacle["message"]
            yield Event(self.obstacle["at"], "Warning", reason, message, "runai-scheduler")
        if self.started is not None:
            node = facts.POOLS[self.pool].node_names[0]
            where = f"Successfully assigned pod {facts.NAMESPACE}/{pod} to node {node} at node-pool {self.pool}"
            yield Event(self.started, "Normal", "Scheduled", where, "runai-scheduler")
            yield Event(self.started + 1, "Normal", "Pulling", f'Pulling image "{image}"', "kubelet")
            if self.container_error:
                reason, message = self.container_error
                if reason == "BackOff":
                    why = f'Failed to pull image "{image}": rpc error: code = NotFound desc = {image}: not found'
                    yield Event(self.started + 2, "Warning", "Failed", why, "kubelet")
                yield Event(self.started + 3, "Warning", reason, message, "kubelet")
        if math.isfinite(self.running_from):
            pulled = f'Successfully pulled image "{image}" in {PULLING_S:g}s'
            yield Event(self.running_from - 1, "Normal", "Pulled", pulled, "kubelet")
            yield Event(self.running_from, "Normal", "Started", f"Started container {self.container}", "kubelet")
        if math.isfinite(self.ends):
            code = self.output.code
            text = f"Workload {'failed' if code else 'completed'} with exit code {code}"
            yield Event(self.ends, "Warning" if code else "Normal", "Failed" if code else "Completed", text, "runai")
        for asked, word in ((self.stop_asked, "Suspended"), (self.delete_asked, "Killing")):
            if asked is not None:
                yield Event(asked, "Normal", word, f"Stopping container {self.container}", "kubelet")
