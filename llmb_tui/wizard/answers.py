"""`Answers`: what a person has said so far, and the `Selection` that it makes.

An answer is None until a person gives it; `settled` fills the rest with defaults that fit, so there is always something
to preview. An answer that later became impossible stays as it was given.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.recipe import Recipe
from llmb_tui.catalog.rows import rows
from llmb_tui.plan.plan import Problem
from llmb_tui.plan.selection import NOTHING_MORE, Overrides, Procedure, RunOptions, Selection

OptionField = Literal[
    "profile", "profile_start", "profile_stop", "nccl_trace", "save_checkpoint", "load_checkpoint", "hub_tokenizer"
]
LayoutField = Literal["tp", "pp", "cp", "ep", "vp", "mbs", "gbs", "seq_len", "layers"]
Field = (
    Literal["workload", "gpu", "dtype", "scaling", "scale", "layout", "steps", "time_limit", "procedure"]
    | LayoutField
    | OptionField
)
_AS_PUBLISHED = Overrides()
ON = "on"
"""Value of a switch that is on; of one that is off it is empty."""

_OPTION_FLAGS: dict[OptionField, str] = {
    "profile": "--profile",
    "profile_start": "--profile-start",
    "profile_stop": "--profile-stop",
    "nccl_trace": "--nccl-trace",
    "save_checkpoint": "--save-checkpoint",
    "load_checkpoint": "--load-checkpoint",
    "hub_tokenizer": "--hub-tokenizer",
}
LAYOUT_FIELDS: tuple[LayoutField, ...] = ("tp", "pp", "cp", "ep", "vp", "mbs", "gbs", "seq_len", "layers")
"""Set by hand one by one; the field `layout` is all of them at once, as `layout_text` writes it."""
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
    overrides: Overrides = _AS_PUBLISHED
    """What is set by hand of the layout; the rest is the recipe's."""
    steps: int | None = None
    time_limit: str | None = None
    """As typed."""
    options: RunOptions = NOTHING_MORE
    cluster: str | None = None
    procedure: Procedure = "direct"
    """`recipe`: the published one, with the recipe's own scripts."""


def answers_of(selection: Selection, cluster: str | None = None, procedure: Procedure = "direct") -> Answers:
    """The answers that lead to a selection: who comes back starts where they were."""
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


def answer(answers: Answers, field: Field, value: str) -> Answers:
    """The answers with one more given: a choice's value, or a text as it was typed. Empty takes the answer back."""
    if field == "workload":
        recipe, _, size = value.rpartition("/")
        return replace(answers, recipe=recipe, size=size)
    option = next((name for name in _OPTION_FLAGS if name == field), None)
    if option is not None:
        return replace(answers, options=_option(answers.options, option, value))
    number = int(value) if value.isdecimal() else None
    if field in LAYOUT_FIELDS:
        return replace(answers, overrides=replace(answers.overrides, **{field: number}))
    given: dict[str, dict[str, Any]] = {
        "gpu": {"gpu": value},
        "dtype": {"dtype": value},
        "scaling": {"strong": value == "strong"},
        "scale": {"scale": number},
        "layout": {"overrides": _layout(value)},
        "steps": {"steps": number},
        "time_limit": {"time_limit": value or None},
        "procedure": {"procedure": "recipe" if value == "recipe" else "direct"},
    }
    return replace(answers, **given[field])


def _option(options: RunOptions, field: OptionField, value: str) -> RunOptions:
    if field == "load_checkpoint":
        return replace(options, load_checkpoint=value or None)
    number = int(value) if value.isdecimal() else None
    if field == "profile_start":
        return replace(options, profile_start=number)
    if field == "profile_stop":
        return replace(options, profile_stop=number)
    on: dict[str, Any] = {field: value == ON}
    return replace(options, **on)


def layout_text(overrides: Overrides) -> str:
    """A layout as one value: `tp=4 mbs=1`; empty for the recipe's own."""
    return " ".join(f"{name}={value}" for name, value in overrides.given().items())


def _layout(text: str) -> Overrides:
    named = (word.partition("=") for word in text.split())
    return Overrides(**{name: int(value) for name, _, value in named if name in LAYOUT_FIELDS and value.isdecimal()})


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
        overrides=full.overrides,
        steps=full.steps,
        time_limit=full.time_limit,
        options=_without_idle_steps(full.options),
    )


def _without_idle_steps(options: RunOptions) -> RunOptions:
    """The steps of a profile stay answered while the profile is switched off, and mean nothing then."""
    return options if options.profile else replace(options, profile_start=None, profile_stop=None)


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
    if field == "layout":
        return layout_text(answers.overrides)
    held = answers.options if field in _OPTION_FLAGS else answers.overrides if field in LAYOUT_FIELDS else answers
    value = getattr(held, field)
    if isinstance(value, bool):
        return ON if value else ""
    return "" if value is None else str(value)


def command(chosen: Selection, cluster: str | None, procedure: Procedure = "direct") -> str:
    """The same choice as a command line: `submit` where a cluster is chosen, else `plan`."""
    words = ["llmb-tui", "submit" if cluster else "plan", "-w", f"{chosen.workload}@{chosen.release}"]
    words += ["-s", chosen.size, "--gpu", chosen.gpu, "-d", chosen.dtype, "--scale", str(chosen.scale)]
    if chosen.strong_scaling:
        words.append("--strong-scaling")
    for name, number in chosen.overrides.given().items():
        words += [f"--{name.replace('_', '-')}", str(number)]
    if chosen.steps is not None:
        words += ["--steps", str(chosen.steps)]
    if chosen.time_limit is not None:
        words += ["--time-limit", chosen.time_limit]
    for field, flag in _OPTION_FLAGS.items():
        value = getattr(chosen.options, field)
        if value is not None and value is not False:
            words += [flag] if value is True else [flag, str(value)]
    if cluster:
        words += ["--cluster", cluster]
    if cluster and procedure == "recipe":
        words += ["--procedure", procedure]
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
