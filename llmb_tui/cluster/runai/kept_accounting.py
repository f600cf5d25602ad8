"""`accounted_workloads`: parser of the stored accounting of a run's workloads (`RunaiCluster.accounting`)."""

from __future__ import annotations

from typing import Any

from llmb_tui.cluster.job import Job
from llmb_tui.language.json_text import parse_json

_ENDS = {"Completed": "COMPLETED", "Failed": "FAILED"}


def accounted_workloads(text: str) -> list[Job]:
    """Parse stored workloads to jobs. Raises ValueError, TypeError and AttributeError for a text of another form."""
    return list(map(_job, parse_json(text)))


def _job(record: dict[str, Any]) -> Job:
    phase = str(record.get("phase"))
    ended = _ENDS.get(phase, "CANCELLED" if record.get("deletedAt") else phase)
    pods, elapsed = record.get("requestedPods", {}).get("number"), record.get("totalRunningTimeSeconds")
    nodes, elapsed_s = int(pods) if pods else None, float(elapsed) if elapsed else None
    return Job(str(record.get("id")), str(record.get("name")), ended, nodes=nodes, elapsed_s=elapsed_s)
