"""`Run`: one intent to train, from the moment it is journalled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from llmb_tui.catalog.recipe import LogFormat, ResultRule
from llmb_tui.cluster.slurm.job import TERMINAL_STATES
from llmb_tui.launch.job_log import JobLog
from llmb_tui.launch.spec import LaunchSpec
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.selection import Procedure

RunProcedure = Literal[Procedure, "llmb-run"]
"""How a run was started: by us in one of the two ways, or by NVIDIA's own launcher."""
Submission = Literal["intended", "submitted", "refused", "withdrawn", "unknown"]


@dataclass(frozen=True, slots=True)
class Run:
    """What is remembered of a run; its plan is the one that was shown before it was submitted."""

    id: str
    plan: Plan
    spec: LaunchSpec | None
    """What it was submitted from; None for a run that somebody else submitted."""
    rule: ResultRule
    log_format: LogFormat
    procedure: RunProcedure
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
    log: JobLog | None = None
    """Where the job writes; None for the direct procedure, whose spec says it, and while that is not known."""

    @property
    def direct(self) -> LaunchSpec:
        """The spec of a run by the direct procedure, for what only that has. Raises TypeError for another run."""
        if not isinstance(self.spec, LaunchSpec):
            raise TypeError(f"run {self.id} is not by the direct procedure")
        return self.spec

    @property
    def job_log(self) -> JobLog | None:
        """Where the job writes; None while that is not known."""
        return self.spec.log if isinstance(self.spec, LaunchSpec) else self.log

    @property
    def job_name(self) -> str:
        """The job's name in Slurm; empty where it is not known."""
        return self.spec.job_name if self.spec else ""

    @property
    def going(self) -> bool:
        """True when the run may have a job that has not ended."""
        return self.submission in ("submitted", "unknown") and self.job_state not in TERMINAL_STATES
