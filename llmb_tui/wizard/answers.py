"""`Answers`: what a person has said so far, and the `Selection` that it makes.

An answer is None until a person gives it; `settled` fills the rest with defaults that fit, so there is always something
to preview. An answer that later became impossible stays as it was given.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.recipe import Recipe
from llmb_tui.catalog.rows import rows
from llmb_tui.plan.plan import Problem
from llmb_tui.plan.selection import Selection

Field = Literal["workload", "gpu", "dtype", "scaling", "scale", "steps", "time_limit"]
_T = TypeVar("_T")
_TIME_LIMIT = re.compile(r"(\d+-)?\d{1,3}:[0-5]\d:[0-5]\d", re.ASCII)


@dataclass(frozen=True, slots=True)
class Answers:
    """What a person has said so far; None where they have not."""

    recipe: str | None = None
    """`workload@release`."""
    size: str | None = None
    gpu: str | None = None
    dtype: str | None = None
    strong: bool | None = None
    """True: strong scaling."""
    scale: int | None = None
    steps: int | None = None
    time_limit: str | None = None
    """As typed."""
    cluster: str | None = None


def answers_of(selection: Selection, cluster: str | None = None) -> Answers:
    """The answers that lead to a selection: who comes back starts where they were."""
    return Answers(
        recipe=f"{selection.workload}@{selection.release}",
        size=selection.size,
        gpu=selection.gpu,
        dtype=selection.dtype,
        strong=selection.strong_scaling,
        scale=selection.scale,
        steps=selection.steps,
        time_limit=selection.time_limit,
        cluster=cluster,
    )


def answer(answers: Answers, field: Field, value: str) -> Answers:
    """The answers with one more given: a choice's value, or a text as it was typed. Empty takes the answer back."""
    if field == "workload":
        recipe, _, size = value.rpartition("/")
        return replace(answers, recipe=recipe, size=size)
    if field == "scaling":
        return replace(answers, strong=value == "strong")
    if field == "gpu":
        return replace(answers, gpu=value)
    if field == "dtype":
        return replace(answers, dtype=value)
    if field == "time_limit":
        return replace(answers, time_limit=value or None)
    number = int(value) if value.isdecimal() else None
    return replace(answers, scale=number) if field == "scale" else replace(answers, steps=number)


def settled(catalog: Catalog, answers: Answers) -> Answers:
    """The answers, with a default that fits for each one not given: first size, smallest listed scale, and so on."""
    recipe = recipe_of(catalog, answers)
    size = answers.size or next(iter(recipe.models))
    here = [row for row in rows(recipe) if row.size == size]
    gpu = answers.gpu or _first((row.gpu for row in here), next(iter(recipe.gpus)))
    here = [row for row in here if row.gpu == gpu]
    dtype = answers.dtype or _first((d for d in recipe.dtypes if any(r.dtype == d for r in here)), recipe.dtypes[0])
    here = [row for row in here if row.dtype == dtype]
    strong = answers.strong
    if strong is None:
        strong = bool(here) and all(row.scaling == "strong" for row in here)
    listed = sorted(row.gpus for row in here if (row.scaling == "strong") == strong)
    scale = answers.scale if answers.scale is not None else _first(listed, node_size(recipe, gpu))
    return replace(answers, recipe=recipe.id, size=size, gpu=gpu, dtype=dtype, strong=strong, scale=scale)


def selection(catalog: Catalog, answers: Answers) -> Selection | None:
    """What the answers choose. None while a number is none that a run can have: `input_problems` says which."""
    full = settled(catalog, answers)
    if input_problems(full) or full.size is None or full.gpu is None or full.dtype is None or full.scale is None:
        return None
    recipe = recipe_of(catalog, full)
    return Selection(
        workload=recipe.workload,
        release=recipe.release,
        size=full.size,
        gpu=full.gpu,
        dtype=full.dtype,
        scale=full.scale,
        strong_scaling=bool(full.strong),
        steps=full.steps,
        time_limit=full.time_limit,
    )


def input_problems(answers: Answers) -> tuple[Problem, ...]:
    """What was typed and cannot be read as a selection."""
    found = []
    if answers.scale is not None and answers.scale < 1:
        found.append(Problem("scale", "error", "A run needs at least 1 GPU.", "Type a number of GPUs."))
    if answers.steps is not None and answers.steps < 1:
        found.append(Problem("steps", "error", "A run needs at least 1 step.", "Type a number of steps."))
    if answers.time_limit is not None and not _TIME_LIMIT.fullmatch(answers.time_limit):
        found.append(
            Problem(
                "time_limit", "error", "This is not a time limit.", "Type HH:MM:SS, such as 00:30:00, or D-HH:MM:SS."
            )
        )
    return tuple(found)


def value_of(answers: Answers, field: Field) -> str:
    """The chosen value of a field, as its choices name it; the text of a typed one."""
    if field == "workload":
        return f"{answers.recipe}/{answers.size}"
    if field == "scaling":
        return "strong" if answers.strong else "weak"
    value = getattr(answers, field)
    return "" if value is None else str(value)


def command(chosen: Selection, cluster: str | None) -> str:
    """The same choice as a command line: `submit` where a cluster is chosen, else `plan`."""
    words = ["llmb-tui", "submit" if cluster else "plan", "-w", f"{chosen.workload}@{chosen.release}"]
    words += ["-s", chosen.size, "--gpu", chosen.gpu, "-d", chosen.dtype, "--scale", str(chosen.scale)]
    if chosen.strong_scaling:
        words.append("--strong-scaling")
    if chosen.steps is not None:
        words += ["--steps", str(chosen.steps)]
    if chosen.time_limit is not None:
        words += ["--time-limit", chosen.time_limit]
    if cluster:
        words += ["--cluster", cluster]
    return shlex.join(words)


def recipe_of(catalog: Catalog, answers: Answers) -> Recipe:
    """The chosen recipe; the first one while none is chosen."""
    return next((recipe for recipe in catalog.recipes if recipe.id == answers.recipe), catalog.recipes[0])


def node_size(recipe: Recipe, gpu: str) -> int:
    """GPUs in one node; 8 for a GPU type that the recipe does not have."""
    facts = recipe.gpus.get(gpu)
    return facts.gpus_per_node if facts else 8


def _first(values: Iterable[_T], otherwise: _T) -> _T:
    return next(iter(values), otherwise)
