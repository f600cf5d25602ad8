"""`applied`: the settings of a recipe that apply to one plan. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from llmb_tui.catalog.recipe import Recipe
from llmb_tui.catalog.settings import Settings, Value, Values, filled, holds
from llmb_tui.plan.plan import Plan

T = TypeVar("T")

RESULTS_DIR = "/nemo_run/results"
"""Where a Hydra recipe writes in the container."""


@dataclass(frozen=True, slots=True)
class Applied:
    """Every setting of a run, with the plan's values in it, in the preset's order."""

    recipe: dict[str, Any]
    """nemo2: fields of NeMo's recipe."""
    base: dict[str, Any]
    """hydra: dotted fields of the base configuration."""
    overrides: tuple[str, ...]
    """hydra: overrides on the command line."""
    env: dict[str, str]
    srun: dict[str, str | bool]
    prefix: tuple[str, ...] = ()
    tasks_per_numa_node: int | None = None
    segment: int | None = None
    differs: tuple[str, ...] = ()
    """What is otherwise than in the published procedure, a few words each."""


def applied(recipe: Recipe, plan: Plan) -> Applied:
    """What the preset sets for this plan. Of two groups that set the same, the later one wins."""
    values = plan_values(recipe, plan)
    groups = list(_groups(recipe, plan, values))
    return Applied(
        recipe=_merged([group.recipe for group in groups], values),
        base=_merged([group.base for group in groups], values),
        overrides=tuple(str(filled(f" {text}", values))[1:] for group in groups for text in group.overrides),
        env={name: str(value) for group in groups for name, value in filled(group.env, values).items()},
        srun=_merged([group.srun for group in groups], values),
        prefix=tuple(str(filled(f" {word}", values))[1:] for word in _last(group.prefix for group in groups) or ()),
        tasks_per_numa_node=_last(group.tasks_per_numa_node for group in groups),
        segment=_last(group.segment for group in groups),
        differs=tuple(str(filled(f" {group.differs}", values))[1:] for group in groups if group.differs),
    )


def _groups(recipe: Recipe, plan: Plan, values: Values) -> Iterator[Settings]:
    asked = plan.selection
    for group in recipe.settings:
        mine = (
            (group.containers, plan.container),
            (group.sizes, asked.size),
            (group.gpus, asked.gpu),
            (group.dtypes, asked.dtype),
        )
        if all(not names or name in names for names, name in mine) and all(holds(text, values) for text in group.when):
            yield group


def _last(values: Iterable[T | None]) -> T | None:
    """The last value that is set."""
    found = [value for value in values if value]
    return found[-1] if found else None


def _merged(tables: list[dict[str, Any]], values: Values) -> dict[str, Any]:
    """One table; what a later one sets again moves to the end, where its order counts."""
    merged: dict[str, Any] = {}
    for table in tables:
        for name, value in table.items():
            merged.pop(name, None)
            merged[name] = filled(value, values)
    return merged


def plan_values(recipe: Recipe, plan: Plan) -> Values:
    """What the placeholders of `catalog.settings` stand for."""
    asked, options = plan.selection, plan.options
    model = recipe.models[asked.size]
    values: dict[str, Value] = {name: getattr(plan.parallelism, name) for name in plan.parallelism.__slots__}
    values |= {name: getattr(options, name) for name in options.__slots__}
    return values | {
        "nodes": plan.nodes,
        "gpus_per_node": plan.gpus_per_node,
        "gpus": asked.scale,
        "all_ranks": list(range(asked.scale)),
        "steps": plan.steps,
        "dtype": asked.dtype,
        "fp8": asked.dtype == "fp8",
        "pipelined": plan.parallelism.pp > 1,
        "hidden": model.hidden,
        "vocab": model.vocab,
        "tokenizer": model.hub_tokenizer,
        "strong": asked.strong_scaling,
        "results_dir": RESULTS_DIR,
        "none": None,
    }
