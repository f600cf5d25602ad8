"""`applied`: a recipe's settings that apply to a plan. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from llmb_tui.catalog.settings import Values, applies, fill
from llmb_tui.errors import LlmbError
from llmb_tui.plan.plan import Problem
from llmb_tui.request import RunRequest

T = TypeVar("T")

RESULTS_DIR = "/nemo_run/results"
"""Results folder of a Hydra recipe in the container."""


@dataclass(frozen=True, slots=True)
class ResolvedSettings:
    """Every setting of a run, with the plan's values filled in, in the preset's order."""

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
    """Differences from NVIDIA's scripts, a few words each."""


def refuse_errors(what: str, problems: Iterable[Problem]) -> None:
    """Raise LlmbError (exit code 1) with the message `what`, for the first problem that is an error."""
    error = next((problem for problem in problems if problem.severity == "error"), None)
    if error:
        raise LlmbError(what, error.reason, error.fix, exit_code=1)


def resolve_settings(request: RunRequest) -> ResolvedSettings:
    """The preset's settings for the plan. If two groups set the same value, the later one wins."""
    values = plan_values(request)
    selection = request.plan.selection
    names = (request.plan.container, selection.size, selection.gpu, selection.dtype)
    groups = [group for group in request.recipe.settings if applies(group, names, values)]
    return ResolvedSettings(
        recipe=_merged([group.recipe for group in groups], values),
        base=_merged([group.base for group in groups], values),
        overrides=tuple(text_of(text, values) for group in groups for text in group.overrides),
        env={name: str(value) for group in groups for name, value in fill(group.env, values).items()},
        srun=_merged([group.srun for group in groups], values),
        prefix=tuple(text_of(word, values) for word in _last(group.prefix for group in groups) or ()),
        tasks_per_numa_node=_last(group.tasks_per_numa_node for group in groups),
        segment=_last(group.segment for group in groups),
        differs=tuple(text_of(group.differs, values) for group in groups if group.differs),
    )


def vboost_difference(request: RunRequest, *, vboost: bool) -> Iterator[str]:
    """`vboost on` or `vboost off`, if the runs behind the expected step time used the other."""
    estimate = request.plan.estimate
    if estimate is not None and estimate.vboost != vboost:
        yield "vboost on" if vboost else "vboost off"


def _last(values: Iterable[T | None]) -> T | None:
    non_empty = [value for value in values if value]
    return non_empty[-1] if non_empty else None


def _merged(tables: list[dict[str, Any]], values: Values) -> dict[str, Any]:
    """One table; a value that a later table sets again moves to the end, because the order matters."""
    merged: dict[str, Any] = {}
    for table in tables:
        for name, value in table.items():
            merged.pop(name, None)
            merged[name] = fill(value, values)
    return merged


def text_of(text: str, values: Values) -> str:
    """A preset's text with its placeholders filled, always as text; null becomes the word `null`."""
    return str(fill(f" {text}", values))[1:]


def plan_values(request: RunRequest) -> Values:
    """Values of the placeholders of `catalog.settings`."""
    plan, selection, options = request.plan, request.plan.selection, request.plan.options
    model = request.recipe.models[selection.size]
    return {
        **asdict(plan.parallelism),
        **asdict(options),
        "nodes": plan.nodes,
        "gpus_per_node": plan.gpus_per_node,
        "gpus": selection.scale,
        "all_ranks": list(range(selection.scale)),
        "steps": plan.steps,
        "dtype": selection.dtype,
        "fp8": selection.dtype == "fp8",
        "pipelined": plan.parallelism.pp > 1,
        "hidden": model.hidden,
        "vocab": model.vocab,
        "tokenizer": model.hub_tokenizer,
        "strong": selection.strong_scaling,
        "results_dir": RESULTS_DIR,
        "none": None,
    }
