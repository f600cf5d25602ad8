"""`propose`: derive plan, request and previews from the answers, without I/O, fast enough for every key press."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from llmb_tui.catalog.recipe import Recipe
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.launch.prepared import LaunchPreview
from llmb_tui.plan.make import plan as make_plan
from llmb_tui.plan.plan import Problem
from llmb_tui.plan.selection import DEFAULT_PROCEDURE, Overrides, ProcedureId
from llmb_tui.request import RunRequest
from llmb_tui.wizard.answers import Answers, recipe_of, selection, with_defaults
from llmb_tui.wizard.state import ObjectionKey, Proposal, Rules
from llmb_tui.wizard.steps import StepId

# While a layout is typed, each key needs the plan of the recipe's layout again.
_usual_plan = lru_cache(maxsize=8)(make_plan)


def propose(
    rules: Rules,
    answers: Answers,
    profiles: tuple[ClusterProfile, ...],
    objections: Mapping[ObjectionKey, Problem],
    step: StepId,
) -> Proposal:
    """Derive what would run, on which cluster, how fast, and the problems of that."""
    full = with_defaults(rules.catalog, answers)
    recipe, chosen = recipe_of(rules.catalog, full), selection(rules.catalog, full)
    profile = next((saved for saved in profiles if saved.name == answers.cluster), None)
    offered = rules.offered(profile)
    full = replace(full, procedure=full.procedure if full.procedure in offered else offered[0])
    plan = usual = make_plan(rules.catalog, chosen) if chosen is not None else None
    if chosen is not None and chosen.overrides.set_fields():
        usual = _usual_plan(rules.catalog, replace(chosen, overrides=Overrides()))
    request = RunRequest(recipe, plan, profile, full.procedure) if plan is not None and profile is not None else None
    names = _listed_procedures(rules, offered) if step is StepId.SCALE else (full.procedure,)
    previews = {name: _preview(rules, name, recipe, request, objections) for name in names}
    if plan is not None:
        plan = replace(plan, problems=plan.problems + previews[full.procedure].problems)
        request = replace(request, plan=plan) if request is not None else None
    return Proposal(full, recipe, profile, chosen, plan, usual, request, previews)


def _listed_procedures(rules: Rules, offered: tuple[ProcedureId, ...]) -> tuple[ProcedureId, ...]:
    """The launch methods of the cluster, then the default alternatives that it lacks; a preview holds the reason."""
    return (*offered, *(name for name in rules.offered(None) if name not in (DEFAULT_PROCEDURE, *offered)))


def objection_key(request: RunRequest, procedure: ProcedureId) -> ObjectionKey:
    """The key under which an objection of a cluster to a launch method is stored."""
    return request.profile, request.recipe.id, request.plan.selection.gpu, procedure


def _preview(
    rules: Rules,
    procedure: ProcedureId,
    recipe: Recipe,
    request: RunRequest | None,
    objections: Mapping[ObjectionKey, Problem],
) -> LaunchPreview:
    """Preview a launch method. An objection of the cluster comes first, because screens show the first problem."""
    preview = rules.preview(procedure, recipe, request)
    objection = objections.get(objection_key(request, procedure)) if request is not None else None
    return replace(preview, problems=(objection, *preview.problems)) if objection is not None else preview
