"""`accounted_workloads`: what was kept of what Run:ai said of a run's workloads (`RunaiCluster.accounting`)."""

from __future__ import annotations

import json
from typing import Any

from llmb_tui.cluster.job import Job

_ENDS = {"Completed": "COMPLETED", "Failed": "FAILED"}


def accounted_workloads(text: str) -> list[Job]:
    """The workloads as jobs. Raises ValueError, TypeError and AttributeError for a text of another form."""
    return list(map(_job, json.loads(text)))


def _job(one: dict[str, Any]) -> Job:
    phase = str(one.get("phase"))
    ended = _ENDS.get(phase, "CANCELLED" if one.get("deletedAt") else phase)
    pods, elapsed = one.get("requestedPods", {}).get("number"), one.get("totalRunningTimeSeconds")
    nodes, elapsed_s = int(pods) if pods else None, float(elapsed) if elapsed else None
    return Job(str(one.get("id")), str(one.get("name")), ended, nodes=nodes, elapsed_s=elapsed_s)
