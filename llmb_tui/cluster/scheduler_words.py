"""`JobWords`: the words for the jobs of one scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llmb_tui.language.text import plural


@dataclass(frozen=True, slots=True)
class JobWords:
    """Words for the jobs of one scheduler."""

    scheduler: str
    job: str
    cancelling: str
    """Sentence that says what remains of a cancelled job."""

    def named(self, job_ids: Sequence[str]) -> str:
        """Text that names jobs, such as `job 42` or `jobs 41, 42`."""
        return f"{self.job}{'s' * (len(job_ids) != 1)} {', '.join(job_ids)}"

    def count(self, number: int) -> str:
        """Text for a number of jobs, such as `1 job` or `2 jobs`."""
        return plural(number, self.job)
