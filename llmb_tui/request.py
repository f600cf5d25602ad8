"""`RunRequest`: the recipe, plan, cluster and procedure of a run that the user wants."""

from __future__ import annotations

from dataclasses import dataclass

from llmb_tui.catalog.recipe import Recipe
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.errors import LlmbError
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.selection import DEFAULT_PROCEDURE, ProcedureId


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A run that the user wants, made once from a selection and passed to checks, install, rendering and submission."""

    recipe: Recipe
    plan: Plan
    profile: ClusterProfile
    procedure: ProcedureId = DEFAULT_PROCEDURE
    dependency: str = ""
    """Jobs that its job waits for, in the syntax of `sbatch --dependency`; only our script supports it."""

    @property
    def slurm(self) -> SlurmProfile:
        """The profile, for the procedures that submit to Slurm. Raises LlmbError (exit code 1) for another kind."""
        if isinstance(self.profile, SlurmProfile):
            return self.profile
        raise LlmbError(
            f"{self.profile.name} is not a Slurm cluster.",
            "This procedure submits batch scripts from a login node.",
            "Choose another cluster, or a procedure for this one.",
            exit_code=1,
        )
