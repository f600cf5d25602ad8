"""`Workloads`: all workloads of the site, kept as one file each, and the scheduler that gives them their nodes."""

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
    """The project has a workload of that name."""


class Workloads:
    """What was submitted below `root`. `clock` says the real time.

    A workload that another version of llmb-tui left in a form that is not understood, or that was cut, is put aside.
    """

    def __init__(self, root: Path, speed: float, clock: Callable[[], float] = time.time) -> None:
        self._root = root
        self._speed = speed
        self.clock = clock
        self.limits = {name: pool.limit for name, pool in facts.POOLS.items()}
        """GPUs of each node pool that the project may have at most."""
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
        """Take a workload. Raises NameTakenError."""
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
        """Whether a workload of that name is there."""
        return any(one.name == name for one in self.all())

    def all(self, *, deleted: bool = False) -> list[Workload]:
        """Those that are there, or those that were deleted; the newest first."""
        with self._guard:
            self._schedule()
            found = [one for one in self._all.values() if (one.now(self.clock()) >= one.deleted) is deleted]
        return sorted(found, key=lambda one: one.created, reverse=True)

    def find(self, identity: str) -> Workload | None:
        """A workload by its id, also one that was deleted."""
        with self._guard:
            self._schedule()
            return self._all.get(identity)

    @contextmanager
    def change(self, identity: str) -> Iterator[Workload]:
        """A workload to be changed; it is written when the block ends well."""
        with self._guard:
            workload = self._all[identity]
            yield workload
            self._write(workload)

    def suspend(self, identity: str) -> None:
        """Stop it, unless it has ended."""
        with self.change(identity) as one:
            now = one.now(self.clock())
            if one.stop_asked is None and now < one.ends:
                one.stop_asked = now

    def resume(self, identity: str) -> None:
        """Put it into the queue again, if it was stopped; it begins anew."""
        with self.change(identity) as one:
            if one.stop_asked is not None:
                self.requeue(one)

    def delete(self, identity: str) -> None:
        """Delete it."""
        with self.change(identity) as one:
            one.delete_asked = one.delete_asked or one.now(self.clock())

    def allocated(self) -> dict[str, int]:
        """GPUs of each node pool that workloads have."""
        used = dict.fromkeys(facts.POOLS, 0)
        with self._guard:
            now = self.clock()
            for one in self._all.values():
                if one.holds(one.now(now)):
                    used[one.pool] += one.gpus
        return used

    def requeue(self, one: Workload) -> None:
        """Take its nodes away from a workload that is being changed: it waits in the queue again."""
        one.queued, one.started, one.stop_asked, one.obstacle = one.now(self.clock()), None, None, None
        one.attempts += 1
        one.knobs = self._knobs()

    def _knobs(self) -> dict[str, float]:
        found = {name: faults.number(self._root, name) for name in KNOBS}
        return {name: number for name, number in found.items() if number is not None}

    def _schedule(self) -> None:
        """Give their nodes to those in the queue, oldest first, as far as there are enough."""
        real = self.clock()
        waiting = [one for one in self._all.values() if one.waits and one.now(real) >= one.in_queue]
        used = self.allocated() if waiting else {}
        for one in sorted(waiting, key=lambda one: one.created):
            now = one.now(real)
            found = next(self._obstacles(one, used.get(one.pool, 0)), None)
            if found is None:
                one.started = now if one.obstacle else one.in_queue
                one.obstacle = None
                used[one.pool] += one.gpus
            elif one.obstacle is None or one.obstacle["message"] != found["message"]:
                one.obstacle = found | {"at": now}
            else:
                continue
            self._write(one)

    def _obstacles(self, one: Workload, used: int) -> Iterator[dict[str, Any]]:
        """What keeps a workload in the queue, in the scheduler's words."""
        for claim in one.spec.storage.pvc:
            if claim.existing_pvc and claim.claim_name not in facts.CLAIMS:
                message = f'persistentvolumeclaim "{claim.claim_name}" not found'
                yield {"reason": "FailedScheduling", "message": message}
        pool = facts.POOLS.get(one.pool)
        if pool is None:
            yield _unschedulable(f"No node in the {one.pool} node-pool has GPU resources.")
        elif one.gpus_per_pod > pool.gpus_per_node:
            yield _unschedulable(_too_few(pool))
        elif one.gpus:
            yield from self._shortages(one, pool, used)

    def _shortages(self, one: Workload, pool: Pool, used: int) -> Iterator[dict[str, Any]]:
        limit = self.limits[pool.name]
        if used + one.gpus > limit:
            yield _unschedulable(
                f"{facts.PROJECT} quota has reached the allowable limit of GPUs. Limit is {limit} GPUs, currently "
                f"{used} GPUs allocated and workload requested {one.gpus} GPUs",
                "OverLimit",
            )
        free = pool.nodes * pool.gpus_per_node - used
        if one.gpus > free:
            yield _unschedulable(
                f"Resources were found for {free // one.gpus_per_pod} pods while {len(one.pods)} are required for gang "
                f"scheduling. Additional pods cannot be scheduled due to: {_too_few(pool)}"
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
