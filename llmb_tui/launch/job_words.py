"""`JobWords`: what runs of a procedure are called, and by whom they are scheduled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llmb_tui.plan.selection import ProcedureId
from llmb_tui.text import plural


@dataclass(frozen=True, slots=True)
class JobWords:
    """Of one scheduler."""

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


_SLURM = JobWords("Slurm", "job", "Its log and its steps so far are kept.")
_RUNAI = JobWords(
    "Run:ai", "workload", "The workload is deleted, which ends it. What was copied of its log, and its steps, are kept."
)
JOB_WORDS: dict[ProcedureId, JobWords] = {"direct": _SLURM, "upstream": _SLURM, "llmb": _SLURM, "runai": _RUNAI}
