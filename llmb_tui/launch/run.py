"""`Run`: one intent to train, from the moment it is journalled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from llmb_tui.catalog.recipe import LogFormat, ResultRule
from llmb_tui.cluster.slurm.job import TERMINAL_STATES
from llmb_tui.launch.spec import LaunchSpec
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.selection import Procedure

Submission = Literal["intended", "submitted", "refused", "withdrawn", "unknown"]


@dataclass(frozen=True, slots=True)
class Run:
    """What is remembered of a run; its plan is the one that was shown before it was submitted."""

    id: str
    plan: Plan
    spec: LaunchSpec
    rule: ResultRule
    log_format: LogFormat
    procedure: Procedure
    cluster: str
    """Name of the cluster profile."""
    created_at: float
    """Unix time of the intent."""
    submission: Submission = "intended"
    """`unknown`: the answer was lost; only a look at the cluster may settle it. `withdrawn`: it has no job, and it
    is certain that it never will."""
    job_ids: tuple[str, ...] = ()
    submitted_at: float | None = None
    job_state: str | None = None
    """Slurm's last known state of the job."""
    note: str = ""
    """Why it was refused or withdrawn, or what is unknown."""

    @property
    def going(self) -> bool:
        """True when the run may have a job that has not ended."""
        return self.submission in ("submitted", "unknown") and self.job_state not in TERMINAL_STATES
