"""`document`: a plan as the JSON object that other programs rely on."""

from __future__ import annotations

from dataclasses import asdict, fields
from operator import attrgetter
from typing import Any, get_args

from llmb_tui.plan.plan import Estimate, Memory, Parallelism, Plan, Printed, Problem, PublishedResult
from llmb_tui.plan.selection import NOTHING_MORE, RunOptions, is_given

# Fields of an estimate for screens only.
_ON_SCREEN = ("basis", "breakdown", "other_variant", "vboost", "container")
_Part = Parallelism | Printed | PublishedResult | Estimate | Memory | Problem
_NAMES = {part: tuple(f.name for f in fields(part) if f.name not in _ON_SCREEN) for part in get_args(_Part)}
_VALUES = {part: attrgetter(*names) for part, names in _NAMES.items()}
_SELECTION = ("workload", "release", "size", "gpu", "dtype", "scale")


def document(plan: Plan) -> dict[str, Any]:
    """The JSON object of a plan (docs/verbs.md); only tokens per second are rounded.

    `options` is present only if an option is set, and contains the set options.
    """
    estimate = _object(plan.estimate)
    if estimate:
        estimate["tokens_per_s"] = round(estimate["tokens_per_s"])
    published = _object(plan.published)
    if published:
        published["origin"] = "recipe"  # presets have no other origin
    return {
        "selection": {
            **{name: getattr(plan.selection, name) for name in _SELECTION},
            "scaling": plan.scaling,
            "precision_variant": plan.precision_variant,
            "variant": None,  # presets have one variant of each configuration
        },
        "nodes": plan.nodes,
        "gpus_per_node": plan.gpus_per_node,
        "parallelism": _object(plan.parallelism),
        "printed": _object(plan.printed),
        "published": published,
        "estimate": estimate,
        "memory": _object(plan.memory),
        "checkpoint_gb": _plain(plan.checkpoint_gb),
        "gpu_hours": plan.gpu_hours,
        "problems": [_object(problem) for problem in plan.problems],
        **({} if plan.options == NOTHING_MORE else {"options": _options(plan.options)}),
    }


def _options(options: RunOptions) -> dict[str, Any]:
    return {name: value for name, value in asdict(options).items() if is_given(value)}


def _object(part: _Part | None) -> dict[str, Any] | None:
    """The fields of a part; None for None."""
    if part is None:
        return None
    return dict(zip(_NAMES[type(part)], map(_plain, _VALUES[type(part)](part)), strict=True))


def _plain(value: Any) -> Any:
    """A whole number as an integer, as tables print it."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
