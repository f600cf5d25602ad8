"""`RunRequest`: what somebody wants to run, where, and in which way."""

from __future__ import annotations

from dataclasses import dataclass

from llmb_tui.catalog.recipe import Recipe
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.errors import Trouble
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.selection import DEFAULT_PROCEDURE, ProcedureId


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Made once from a selection; what checks, installs, renders and submits is given this and nothing else."""

    recipe: Recipe
    plan: Plan
    profile: ClusterProfile
    procedure: ProcedureId = DEFAULT_PROCEDURE
    dependency: str = ""
    """On which jobs Slurm lets its job wait, as `sbatch --dependency` takes it; only the direct procedure writes it."""

    @property
    def slurm(self) -> SlurmProfile:
        """The profile, for the procedures that submit to Slurm. Raises Trouble (exit code 1) for another kind."""
        if isinstance(self.profile, SlurmProfile):
            return self.profile
        raise Trouble(
            f"{self.profile.name} has no Slurm.",
            "This procedure submits batch scripts from a login node.",
            "Choose another cluster, or the procedure of this one.",
            exit_code=1,
        )
