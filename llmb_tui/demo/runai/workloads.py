"""`Workloads`: all workloads of the site, stored as one file each, and the scheduler that assigns nodes."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from llmb_tui.demo import faults
from llmb_tui.demo.runai import facts
from llmb_tui.demo.runai.facts import Pool
from llmb_tui.demo.runai.workload import Workload

KNOBS = ("fail-at-step", "hang-at-step", "slow", "queue-wait")


class NameTakenError(Exception):
    """The project already has a workload of that name."""


class Workloads:
    """Submitted workloads below `root`. `clock` returns the real time.

    A workload that is truncated, or that another version of llmb-tui stored in an unknown form, is put aside.
    """

    def __init__(self, root: Path, speed: float, clock: Callable[[], float] = time.time) -> None:
        self._root = root
        self._speed = speed
        self.clock = clock
        self.limits = {name: pool.limit for name, pool in facts.POOLS.items()}
        """Largest number of GPUs of each node pool that the project may use."""
        self._guard = threading.RLock()
        self._all: dict[str, Workload] = {}
        (root / "workloads").mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in (root / "workloads").glob("*.json"):
            try:
                workload = Workload(**json.loads(path.read_text(encoding="utf-8")))
            except (TypeError, ValueError):
                path.rename(path.with_suffix(".put-aside"))
            else:
                self._all[workload.id] = workload

    def create(self, kind: str, body: dict[str, Any]) -> Workload:
        """Accept a workload. Raises NameTakenError."""
        identity, now = str(uuid.uuid4()), self.clock()
        name = str(body["name"])
        with self._guard:
            if self.is_taken(name):
                raise NameTakenError(name)
            workload = Workload(identity, kind, name, body, self._speed, created=now, queued=now, knobs=self._knobs())
            self._all[identity] = workload
            self._write(workload)
        return workload

    def is_taken(self, name: str) -> bool:
        """True if a workload of that name exists."""
        return any(workload.name == name for workload in self.all())

    def all(self, *, deleted: bool = False) -> list[Workload]:
        """Existing workloads, or deleted ones; the newest first."""
        with self._guard:
            self._schedule()
            workloads = [
                workload
                for workload in self._all.values()
                if (workload.now(self.clock()) >= workload.deleted) is deleted
            ]
        return sorted(workloads, key=lambda workload: workload.created, reverse=True)

    def find(self, identity: str) -> Workload | None:
        """Workload with an id, even if it was deleted."""
        with self._guard:
            self._schedule()
            return self._all.get(identity)

    @contextmanager
    def change(self, identity: str) -> Iterator[Workload]:
        """Workload to change; it is written if the block succeeds."""
        with self._guard:
            workload = self._all[identity]
            yield workload
            self._write(workload)

    def suspend(self, identity: str) -> None:
        """Stop a workload, unless it has ended."""
        with self.change(identity) as workload:
            now = workload.now(self.clock())
            if workload.stop_asked is None and now < workload.ends:
                workload.stop_asked = now

    def resume(self, identity: str) -> None:
        """Queue a stopped workload again, from its beginning."""
        with self.change(identity) as workload:
            if workload.stop_asked is not None:
                self.requeue(workload)

    def delete(self, identity: str) -> None:
        with self.change(identity) as workload:
            workload.delete_asked = workload.delete_asked or workload.now(self.clock())

    def allocated(self) -> dict[str, int]:
        """Number of GPUs of each node pool that workloads hold."""
        used = dict.fromkeys(facts.POOLS, 0)
        with self._guard:
            now = self.clock()
            for workload in self._all.values():
                if workload.holds(workload.now(now)):
                    used[workload.pool] += workload.gpus
        return used

    def requeue(self, workload: Workload) -> None:
        """Release the nodes of a workload that is being changed, and queue it again."""
        workload.queued, workload.started, workload.stop_asked, workload.obstacle = (
            workload.now(self.clock()),
            None,
            None,
            None,
        )
        workload.attempts += 1
        workload.knobs = self._knobs()

    def _knobs(self) -> dict[str, float]:
        knobs = {name: faults.number(self._root, name) for name in KNOBS}
        return {name: number for name, number in knobs.items() if number is not None}

    def _schedule(self) -> None:
        """Assign nodes to queued workloads, oldest first, as long as there are enough."""
        real = self.clock()
        waiting = [
            workload for workload in self._all.values() if workload.waits and workload.now(real) >= workload.in_queue
        ]
        used = self.allocated() if waiting else {}
        for workload in sorted(waiting, key=lambda workload: workload.created):
            now = workload.now(real)
            obstacle = next(self._obstacles(workload, used.get(workload.pool, 0)), None)
            if obstacle is None:
                workload.started = now if workload.obstacle else workload.in_queue
                workload.obstacle = None
                used[workload.pool] += workload.gpus
            elif workload.obstacle is None or workload.obstacle["message"] != obstacle["message"]:
                workload.obstacle = obstacle | {"at": now}
            else:
                continue
            self._write(workload)

    def _obstacles(self, workload: Workload, used: int) -> Iterator[dict[str, Any]]:
        """Reasons that keep a workload in the queue, in the scheduler's words."""
        for claim in workload.spec.storage.pvc:
            if claim.existing_pvc and claim.claim_name not in facts.CLAIMS:
                message = f'persistentvolumeclaim "{claim.claim_name}" not found'
                yield {"reason": "FailedScheduling", "message": message}
        pool = facts.POOLS.get(workload.pool)
        if pool is None:
            yield _unschedulable(f"No node in the {workload.pool} node-pool has GPU resources.")
        elif workload.gpus_per_pod > pool.gpus_per_node:
            yield _unschedulable(_too_few(pool))
        elif workload.gpus:
            yield from self._shortages(workload, pool, used)

    def _shortages(self, workload: Workload, pool: Pool, used: int) -> Iterator[dict[str, Any]]:
        limit = self.limits[pool.name]
        if used + workload.gpus > limit:
            yield _unschedulable(
                f"{facts.PROJECT} quota has reached the allowable limit of GPUs. Limit is {limit} GPUs, currently "
                f"{used} GPUs allocated and workload requested {workload.gpus} GPUs",
                "OverLimit",
            )
        free = pool.nodes * pool.gpus_per_node - used
        if workload.gpus > free:
            yield _unschedulable(
                f"Resources were found for {free // workload.gpus_per_pod} pods while {len(workload.pods)} are "
                f"required for gang scheduling. Additional pods cannot be scheduled due to: {_too_few(pool)}"
            )

    def _write(self, workload: Workload) -> None:
        path = self._root / "workloads" / f"{workload.id}.json"
        fresh = path.with_suffix(".new")
        fresh.touch(mode=0o600)
        fresh.write_text(json.dumps(asdict(workload)), encoding="utf-8")
        fresh.replace(path)


def _unschedulable(message: str, word: str = "") -> dict[str, Any]:
    return {"reason": "Unschedulable", "message": message} | ({"phaseReason": word} if word else {})


def _too_few(pool: Pool) -> str:
    return f"no nodes with enough resources were found: {pool.nodes} node(s) didn't have enough resources: GPUs."
