"""`JobWords`: what the jobs of one scheduler are called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llmb_tui.language.text import plural


@dataclass(frozen=True, slots=True)
class JobWords:
    """What the jobs of one scheduler are called."""

    scheduler: str
    job: str
    cancelling: str
    """What a cancel leaves."""

    def named(self, job_ids: Sequence[str]) -> str:
        """`job 42`, `jobs 41, 42`."""
        return f"{self.job}{'s' * (len(job_ids) != 1)} {', '.join(job_ids)}"

    def count(self, number: int) -> str:
        """`1 job`, `2 jobs`."""
        return plural(number, self.job)
