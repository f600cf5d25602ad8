"""`RunRequest`: what somebody wants to run, where, and in which way."""

from __future__ import annotations

from dataclasses import dataclass

from llmb_tui.catalog.recipe import Recipe
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.selection import DEFAULT_PROCEDURE, ProcedureId


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Made once from a selection; what checks, installs, renders and submits is given this and nothing else."""

    recipe: Recipe
    plan: Plan
    profile: ClusterProfile
    procedure: ProcedureId = DEFAULT_PROCEDURE
