"""`Switch`: what a run can do beside the benchmark, and why it cannot."""

from __future__ import annotations

from dataclasses import dataclass

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.recipe import Model, Recipe
from llmb_tui.plan.options import TITLES, option_row, profile_steps, why_not
from llmb_tui.wizard.answers import ON, Answers, Field, recipe_of, settled, value_of


@dataclass(frozen=True, slots=True)
class Switch:
    """One thing that can be switched on, or the reason why it cannot."""

    field: Field
    label: str
    detail: str
    on: bool
    disabled_reason: str = ""

    @property
    def movable(self) -> bool:
        """False where it is off and has to stay so. What became impossible while it was on can be switched off."""
        return self.on or not self.disabled_reason


def switches(catalog: Catalog, answers: Answers) -> tuple[Switch, ...]:
    """Everything that is simply on or off."""
    full = settled(catalog, answers)
    recipe = recipe_of(catalog, full)
    model = recipe.models[full.size or ""]
    details: dict[Field, str] = {
        "profile": _profile(recipe, full),
        "nccl_trace": _trace(recipe),
        "save_checkpoint": _save(model),
        "hub_tokenizer": (model.hub_tokenizer or "").rpartition("/")[2],
    }
    return tuple(
        Switch(field, TITLES[field], detail, value_of(full, field) == ON, why_not(recipe, full.size or "", field))
        for field, detail in details.items()
    )


def no_loading(catalog: Catalog, answers: Answers) -> str:
    """Why no checkpoint can be loaded; empty where one can."""
    full = settled(catalog, answers)
    return why_not(recipe_of(catalog, full), full.size or "", "load_checkpoint")


def _profile(recipe: Recipe, full: Answers) -> str:
    start, stop = profile_steps(recipe)
    chosen = full.options
    start = start if chosen.profile_start is None else chosen.profile_start
    stop = stop if chosen.profile_stop is None else chosen.profile_stop
    return f"steps {start}–{stop}"


def _trace(recipe: Recipe) -> str:
    row = option_row(recipe, TITLES["nccl_trace"])
    return f"{row.steps} steps" if row is not None and row.steps else ""


def _save(model: Model) -> str:
    return f"about {model.checkpoint_gb:,g} GB" if model.checkpoint_gb else ""
