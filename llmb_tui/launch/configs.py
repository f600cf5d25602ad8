"""`config_files`: the files that a run takes along into its folder. Pure."""

from __future__ import annotations

import json

from llmb_tui.catalog.recipe import Recipe
from llmb_tui.catalog.settings import filled
from llmb_tui.launch.hydra import base_configuration
from llmb_tui.launch.settings import Applied, plan_values
from llmb_tui.plan.document import document
from llmb_tui.plan.plan import Plan

_NAME = "--config-name="


def config_files(recipe: Recipe, plan: Plan, settings: Applied) -> tuple[tuple[str, str], ...]:
    """(path in the run's folder, text): the plan, and what the program in the container reads.

    Raises Trouble (exit code 1) when a Hydra recipe's settings contradict each other.
    """
    plan_json = ("configs/plan.json", _json(document(plan) | {"steps": plan.steps}))
    if recipe.launch.kind == "hydra":
        names = [word.removeprefix(_NAME) for word in recipe.launch.command if word.startswith(_NAME)]
        base = base_configuration(settings.base, settings.overrides)
        return (plan_json, *((f"configs/{name}", base) for name in names))
    launch = {
        "factory": recipe.launch.factories[plan.selection.size],
        "arguments": filled(recipe.launch.arguments, plan_values(recipe, plan)),
        "settings": settings.recipe,
    }
    return (plan_json, ("configs/launch.json", _json(launch)))


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
