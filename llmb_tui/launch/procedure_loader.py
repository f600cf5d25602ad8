"""`procedure`: the implementation of a procedure by its id, loaded at the first call; helpers that use it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib import import_module

from llmb_tui.catalog.recipe import Recipe
from llmb_tui.errors import LlmbError
from llmb_tui.launch.prepared import LaunchPreview
from llmb_tui.launch.procedure import Procedure
from llmb_tui.launch.procedures import PROCEDURES
from llmb_tui.plan.plan import Problem
from llmb_tui.plan.selection import ProcedureId
from llmb_tui.preflight.secret import SecretNeed
from llmb_tui.request import RunRequest


@cache
def procedure(name: ProcedureId) -> Procedure:
    """The procedure with an id. Loading on demand spares a run the modules for other kinds of cluster."""
    module, _, class_name = PROCEDURES[name].implementation.partition(":")
    instance: Procedure = getattr(import_module(module), class_name)()
    return instance


def preview(request: RunRequest) -> LaunchPreview:
    """`Procedure.preview`, with the reason among its problems if the request cannot be launched this way."""
    implementation = procedure(request.procedure)
    try:
        launch = implementation.preview(request)
    except LlmbError as error:
        launch = LaunchPreview(problems=(_problem(error),))
    return replace(launch, detail=implementation.detail(request.recipe))


def recipe_preview(name: ProcedureId, recipe: Recipe) -> LaunchPreview:
    """Describe the launch of a recipe, without a plan or a cluster."""
    return LaunchPreview(problems=unavailable(name, recipe), detail=procedure(name).detail(recipe))


def unavailable(name: ProcedureId, recipe: Recipe) -> tuple[Problem, ...]:
    """Why the procedure can launch no run of a recipe on any cluster; empty if it can."""
    try:
        procedure(name).refuse(recipe)
    except LlmbError as error:
        return (_problem(error),)
    return ()


def secrets_of(request: RunRequest) -> tuple[SecretNeed, ...]:
    """API keys that the request needs or may use."""
    return procedure(request.procedure).secrets(request)


def _problem(error: LlmbError) -> Problem:
    return Problem("procedure", "error", f"{error.what} {error.why}".rstrip(), error.fix)
