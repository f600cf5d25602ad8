"""`procedure`: the implementation of a procedure by its id, loaded at the first call; what it answers to a request."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib import import_module

from llmb_tui.catalog.recipe import Recipe
from llmb_tui.errors import Trouble
from llmb_tui.launch.prepared import LaunchPreview
from llmb_tui.launch.procedure import Procedure
from llmb_tui.launch.procedures import PROCEDURES
from llmb_tui.plan.plan import Problem
from llmb_tui.plan.selection import ProcedureId
from llmb_tui.preflight.secret import SecretNeed
from llmb_tui.request import RunRequest


@cache
def procedure(name: ProcedureId) -> Procedure:
    """The procedure of that id. A run of another kind of cluster needs not load what this one needs."""
    module, _, class_name = PROCEDURES[name].implementation.partition(":")
    made: Procedure = getattr(import_module(module), class_name)()
    return made


def preview(request: RunRequest) -> LaunchPreview:
    """`Procedure.preview`, with the reason among its problems if the request cannot be started so."""
    chosen = procedure(request.procedure)
    try:
        made = chosen.preview(request)
    except Trouble as trouble:
        made = LaunchPreview(problems=(_problem(trouble),))
    return replace(made, detail=chosen.detail(request.recipe))


def recipe_preview(name: ProcedureId, recipe: Recipe) -> LaunchPreview:
    """How a recipe would be started, without a plan or a cluster."""
    return LaunchPreview(problems=unavailable(name, recipe), detail=procedure(name).detail(recipe))


def unavailable(name: ProcedureId, recipe: Recipe) -> tuple[Problem, ...]:
    """Why no run of a recipe can be started so on any cluster; empty if one can."""
    try:
        procedure(name).refuse(recipe)
    except Trouble as trouble:
        return (_problem(trouble),)
    return ()


def secrets_of(request: RunRequest) -> tuple[SecretNeed, ...]:
    """The keys that matter for a request."""
    return procedure(request.procedure).secrets(request)


def _problem(trouble: Trouble) -> Problem:
    return Problem("procedure", "error", f"{trouble.what} {trouble.why}".rstrip(), trouble.fix)
