"""`draft_run`: a plan becomes a run that could be submitted, by either procedure."""

from __future__ import annotations

import time

from llmb_tui.catalog.recipe import Recipe
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.session import Session
from llmb_tui.cluster.slurm.params import sbatch_options
from llmb_tui.cluster.slurm.version import slurm_version
from llmb_tui.launch.placement import wants_segment
from llmb_tui.launch.published.paths import procedure_of
from llmb_tui.launch.published.spec import PublishedSpec
from llmb_tui.launch.published.spec_of import published_spec
from llmb_tui.launch.render import render
from llmb_tui.launch.run import Run
from llmb_tui.launch.settings import applied
from llmb_tui.launch.spec import LaunchSpec
from llmb_tui.launch.spec_of import launch_spec, new_run_id
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.selection import Procedure


def draft_run(
    session: Session, profile: ClusterProfile, recipe: Recipe, plan: Plan, procedure: Procedure
) -> tuple[Run, str]:
    """The run, and what is submitted: the batch script, or the command of the published procedure.

    The cluster is asked for its Slurm's version where that matters. Raises Trouble (exit code 1) when the plan cannot
    be launched there in this way.
    """
    now = time.time()
    run_id = new_run_id(now)
    if procedure == "recipe":
        by_sbatch = procedure_of(recipe).launch.how == "sbatch"
        published = published_spec(recipe, plan, profile, run_id, slurm_version(session) if by_sbatch else None)
        return _run(recipe, plan, published, profile.name, now), published.command
    segment = wants_segment(sbatch_options(profile), applied(recipe, plan))
    spec = launch_spec(recipe, plan, profile, run_id, slurm_version(session) if segment else None)
    return _run(recipe, plan, spec, profile.name, now), render(spec)


def _run(recipe: Recipe, plan: Plan, spec: LaunchSpec | PublishedSpec, cluster: str, now: float) -> Run:
    procedure: Procedure = "recipe" if isinstance(spec, PublishedSpec) else "direct"
    return Run(spec.run_id, plan, spec, recipe.rule, recipe.launch.kind, procedure, cluster, created_at=now)
