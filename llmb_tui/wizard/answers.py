"""`Answers`: the user's answers so far, and the `Selection` that they make.

An answer is None until the user gives it. `with_defaults` fills the others with defaults that fit, so that there is
always a plan to preview. An answer that a later answer makes impossible is kept.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import TypeVar, get_args

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.recipe import Recipe
from llmb_tui.catalog.rows import rows
from llmb_tui.plan.options import seconds_of
from llmb_tui.plan.plan import Problem
from llmb_tui.plan.selection import (
    DEFAULT_PROCEDURE,
    FIELDS,
    LAYOUT,
    NOTHING_MORE,
    OPTIONS,
    Overrides,
    ProcedureId,
    RunOptions,
    Selection,
    Value,
    text_of,
)

_AS_PUBLISHED = Overrides()


@dataclass(frozen=True, slots=True)
class Answers:
    """The user's answers so far; None for a question without an answer."""

    recipe: str | None = None
    """`workload@release`."""
    size: str | None = None
    gpu: str | None = None
    dtype: str | None = None
    strong: bool | None = None
    """True for strong scaling."""
    scale: int | None = None
    overrides: Overrides = _AS_PUBLISHED
    """Manual overrides of the recipe's layout."""
    steps: int | None = None
    time_limit: str | None = None
    """The text that was typed."""
    options: RunOptions = NOTHING_MORE
    cluster: str | None = None
    procedure: ProcedureId = DEFAULT_PROCEDURE


def answers_from_selection(
    selection: Selection, cluster: str | None = None, procedure: ProcedureId = DEFAULT_PROCEDURE
) -> Answers:
    """Convert a selection to the answers that lead to it, so that the user can continue."""
    return Answers(
        recipe=f"{selection.workload}@{selection.release}",
        size=selection.size,
        gpu=selection.gpu,
        dtype=selection.dtype,
        strong=selection.strong_scaling,
        scale=selection.scale,
        overrides=selection.overrides,
        steps=selection.steps,
        time_limit=selection.time_limit,
        options=selection.options,
        cluster=cluster,
        procedure=procedure,
    )


def missing_from_catalog(catalog: Catalog, answers: Answers) -> str:
    """The recipe and size, or the GPU type, that no preset has any more; empty if the answers can be planned."""
    recipe = next((known for known in catalog.recipes if known.id == answers.recipe), None)
    if recipe is None or answers.size not in recipe.models:
        return f"{answers.recipe} {answers.size}"
    return "" if answers.gpu in catalog.gpu_types() else f"{answers.gpu}".upper()


_Holder = TypeVar("_Holder", Answers, Overrides, RunOptions)


def answer(answers: Answers, field: str, value: str) -> Answers:  # noqa: PLR0911 - one for each kind of field
    """Set one answer: the value of a choice, or the text that was typed. An empty value removes the answer.

    `field` is a name in `FIELDS`, `scaling`, `procedure`, `cluster` or `layout`. The value of `workload` is
    `recipe/size`, and the answer `layout` is the whole layout as `layout_text` writes it.
    """
    match field:
        case "workload":
            recipe, _, size = value.rpartition("/")
            return replace(answers, recipe=recipe, size=size)
        case "scaling":
            return replace(answers, strong=value == "strong")
        case "cluster":
            return replace(answers, cluster=value)
        case "layout":
            return replace(answers, overrides=_layout(value))
        case "procedure":
            return replace(answers, procedure=next((n for n in get_args(ProcedureId) if n == value), DEFAULT_PROCEDURE))
    row = FIELDS[field]
    if row in LAYOUT:
        return replace(answers, overrides=_with(answers.overrides, field, row.value(value)))
    if row in OPTIONS:
        return replace(answers, options=_with(answers.options, field, row.value(value)))
    return _with(answers, field, row.value(value))


def _with(holder: _Holder, field: str, value: Value) -> _Holder:
    return replace(holder, **{field: value})  # type: ignore[arg-type]  # a field's values have the type of its attribute


def layout_text(overrides: Overrides) -> str:
    """Write a layout as one value, `tp=4 mbs=1`; empty for the recipe's layout."""
    return " ".join(f"{name}={value}" for name, value in overrides.set_fields().items())


def _layout(text: str) -> Overrides:
    pairs = (word.partition("=") for word in text.split())
    names = {field.name for field in LAYOUT}
    return Overrides(**{name: int(value) for name, _, value in pairs if name in names and value.isdecimal()})


def with_defaults(catalog: Catalog, answers: Answers) -> Answers:
    """Add a default that fits for each missing answer: the first size, the smallest published scale, and so on."""
    recipe = recipe_of(catalog, answers)
    size = answers.size or next(iter(recipe.models))
    matching = [row for row in rows(recipe) if row.size == size]
    gpu = answers.gpu or next((row.gpu for row in matching), next(iter(recipe.gpus)))
    matching = [row for row in matching if row.gpu == gpu]
    dtypes = {row.dtype for row in matching}
    dtype = answers.dtype or next((name for name in recipe.dtypes if name in dtypes), recipe.dtypes[0])
    matching = [row for row in matching if row.dtype == dtype]
    strong = answers.strong
    if strong is None:
        strong = bool(matching) and all(row.scaling == "strong" for row in matching)
    scales = (row.gpus for row in matching if (row.scaling == "strong") == strong)
    scale = answers.scale if answers.scale is not None else min(scales, default=node_size(recipe, gpu))
    return replace(answers, recipe=recipe.id, size=size, gpu=gpu, dtype=dtype, strong=strong, scale=scale)


def selection(catalog: Catalog, full: Answers) -> Selection | None:
    """The selection of complete answers (`with_defaults`); None if a typed value is invalid (`input_problems`)."""
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
        overrides=full.overrides,
        steps=full.steps,
        time_limit=full.time_limit,
        options=_without_inactive(full.options),
    )


def _without_inactive(options: RunOptions) -> RunOptions:
    """Drop options of a switch that is off, such as a profile's steps. Their answers are kept, but have no effect."""
    for option in OPTIONS:
        if option.of and not getattr(options, option.of):
            options = _with(options, option.name, None)
    return options


def input_problems(answers: Answers) -> tuple[Problem, ...]:
    """Typed values that cannot be part of a selection."""
    problems = [
        Problem(name, "error", f"A run needs at least {FIELDS[name].least} {unit}.", f"Type a number of {unit}s.")
        for name, unit in (("scale", "GPU"), ("steps", "step"))
        if (number := getattr(answers, name)) is not None and number < FIELDS[name].least
    ]
    if answers.time_limit is not None and not seconds_of(answers.time_limit):
        fix = "Type HH:MM:SS, such as 00:30:00, or D-HH:MM:SS."
        problems.append(Problem("time_limit", "error", "The time limit cannot be read.", fix))
    return tuple(problems)


def value_of(answers: Answers, field: str) -> str:
    """The chosen value of a field, as its choices name it, or its typed text. Field names as in `answer`."""
    if field == "workload":
        return f"{answers.recipe}/{answers.size}"
    if field == "scaling":
        return "strong" if answers.strong else "weak"
    if field == "layout":
        return layout_text(answers.overrides)
    return text_of(getattr(_holder(answers, field), field))


def command(chosen: Selection, cluster: str | None, procedure: ProcedureId | None = None) -> str:
    """Write the selection as a command line: `submit` if a cluster is chosen, else `plan`.

    `procedure`: None for the default one of the cluster.
    """
    words = ["llmb-tui", "submit" if cluster else "plan"]
    for name, field in FIELDS.items():
        if name == "workload":
            words += field.words(f"{chosen.workload}@{chosen.release}")
        elif field.has_flag:
            words += field.words(getattr(_holder(chosen, name), name))
    if cluster:
        words += ["--cluster", cluster]
    if cluster and procedure:
        words += ["--procedure", procedure]
    return shlex.join(words)


def _holder(source: Answers | Selection, field: str) -> Answers | Selection | Overrides | RunOptions:
    """The object that has the field as an attribute."""
    row = FIELDS.get(field)
    return source.overrides if row in LAYOUT else source.options if row in OPTIONS else source


def recipe_of(catalog: Catalog, answers: Answers) -> Recipe:
    """The chosen recipe, or the first one if none is chosen."""
    return next((recipe for recipe in catalog.recipes if recipe.id == answers.recipe), catalog.recipes[0])


def node_size(recipe: Recipe, gpu: str) -> int:
    """GPUs per node; 8 for a GPU type that the recipe does not have."""
    facts = recipe.gpus.get(gpu)
    return facts.gpus_per_node if facts else 8
