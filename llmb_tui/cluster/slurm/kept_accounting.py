"""`kept_rows`: parser of the stored accounting of a run's jobs (`accounting.complete_records`)."""

from __future__ import annotations

from collections.abc import Mapping

from llmb_tui.cluster.job import Job

_LONGEST = 15
"""Most digits of a number."""
_GPU = "gres/gpu:"


def kept_rows(text: str) -> list[dict[str, str]]:
    """Parse stored accounting to rows by column name. The job's name is last, because it may contain anything."""
    heading, *lines = text.splitlines() or [""]
    names = heading.split("|")
    return [dict(zip(names, line.split("|", len(names) - 1), strict=False)) for line in lines]


def accounted_jobs(text: str) -> list[Job]:
    """Starts of jobs in stored accounting. Raises ValueError for a number that is too long."""
    return list(map(_job, kept_rows(text)))


def accounted_gpus(text: str) -> list[tuple[str, str]]:
    """GPU types in stored accounting, each with its line."""
    lines = zip(kept_rows(text), text.splitlines()[1:], strict=False)
    parts = [(part.partition("=")[0], line) for row, line in lines for part in row.get("AllocTRES", "").split(",")]
    return [(name.removeprefix(_GPU), line) for name, line in parts if name.startswith(_GPU)]


def _job(row: Mapping[str, str]) -> Job:
    state = row.get("State", "").partition(" ")[0]
    nodes, elapsed = (_number(row.get(key, "")) for key in ("NNodes", "ElapsedRaw"))
    return Job(row.get("JobID", ""), row.get("JobName", ""), state, nodes=nodes, elapsed_s=elapsed)


def _number(cell: str) -> int | None:
    if cell.isdecimal() and len(cell) > _LONGEST:
        raise ValueError("the number has too many digits")
    return int(cell) if cell.isdecimal() else None
