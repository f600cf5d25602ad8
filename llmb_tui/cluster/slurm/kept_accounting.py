"""`kept_rows`: what was kept of Slurm's accounting of a run's jobs (`accounting.kept_text`)."""

from __future__ import annotations


def kept_rows(text: str) -> list[dict[str, str]]:
    """The lines of a `kept_text` by the names of their columns; the job's name comes last, and may hold anything."""
    heading, *lines = text.splitlines() or [""]
    names = heading.split("|")
    return [dict(zip(names, line.split("|", len(names) - 1), strict=False)) for line in lines]
