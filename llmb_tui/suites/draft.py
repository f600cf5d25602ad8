"""`SuiteDraft`: what a person has chosen of a suite so far, and the runs that it makes. Frozen; all of it is pure.

A screen shows `offers`, gives what was switched to `switched`, and shows what `draft_plan.plan_draft` makes of it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.recipe import Recipe
from llmb_tui.catalog.rows import Row, rows
from llmb_tui.language.quantities import count
from llmb_tui.plan.layouts import Layout
from llmb_tui.plan.selection import Overrides, ProcedureId, Selection
from llmb_tui.suites.ready_made import REPEATS
from llmb_tui.suites.suite import MOST_RUNS, SuiteKind, repeat_keys

Axis = Literal["workloads", "dtypes", "scales", "layouts"]
"""What multiplies beside the repeats; the names are those of the draft's fields."""
Number = Literal["count", "at_most", "stop_after", "shuffle"]
Workload = tuple[str, str, str]
"""Workload, release and size."""
Value = Workload | str | int | Overrides
_REPEAT = re.compile(r" #\d+$")
"""What numbers a row among its repeats, at the end of its key."""


@dataclass(frozen=True, slots=True)
class SuiteDraft:
    """The base, what of it is multiplied, and how it will be sent."""

    base: Selection
    procedure: ProcedureId
    cluster: str
    """Name of the cluster profile."""
    kind: SuiteKind = "custom"
    workloads: tuple[Workload, ...] = ()
    dtypes: tuple[str, ...] = ()
    scales: tuple[int, ...] = ()
    layouts: tuple[Overrides, ...] = ()
    count: int | None = None
    """Runs of each; of a `tune` the layouts that are tried. None: the usual number of its kind."""
    taken_out: frozenset[str] = frozenset()
    """Keys of the rows that are not sent."""
    name: str = ""
    """Empty: what it measures."""
    at_most: int | None = None
    stop_after: int | None = None
    chain: bool = False
    shuffle: int | None = None


@dataclass(frozen=True, slots=True)
class Offer:
    """One value of an axis."""

    value: Value
    label: str
    detail: str = ""
    chosen: bool = False
    why_not: str = ""
    """Why it cannot be chosen; empty where it can."""


def draft_of(base: Selection, procedure: ProcedureId, cluster: str) -> SuiteDraft:
    """The suite of one run."""
    one_each = ((_workload(base),), (base.dtype,), (base.scale,), (base.overrides,))
    return SuiteDraft(base, procedure, cluster, "custom", *one_each)


def offers(draft: SuiteDraft, catalog: Catalog, layouts: Sequence[Layout] = ()) -> dict[Axis, tuple[Offer, ...]]:
    """What each axis can have, in its order. `layouts`: those that were listed for the base."""
    return {
        "workloads": tuple(_workload_offers(draft, catalog)),
        "dtypes": tuple(_dtype_offers(draft, catalog)),
        "scales": tuple(_scale_offers(draft, catalog)),
        "layouts": tuple(_layout_offers(draft, layouts)),
    }


def switched(draft: SuiteDraft, axis: Axis, offered: Sequence[Offer], value: Value) -> SuiteDraft:
    """With a value more of an axis, or without it; in the order of the offers."""
    chosen = {one.value for one in offered if one.chosen} ^ {value}
    values = tuple(one.value for one in offered if one.value in chosen)
    return replace(draft, **{axis: values})  # type: ignore[arg-type]


def with_number(draft: SuiteDraft, name: Number, value: int | None) -> SuiteDraft:
    """With that number; 0 is one only of a seed. A row that is repeated otherwise is out where all its repeats were."""
    now: SuiteDraft = replace(draft, **{name: value if value or name == "shuffle" else None})  # type: ignore[arg-type]
    if name != "count" or draft.kind == "tune":
        return now
    names = {_REPEAT.sub("", key) for key in draft.taken_out}
    out = [one for one in names if draft.taken_out.issuperset(repeat_keys(one, _repeats(draft)))]
    return replace(now, taken_out=frozenset(key for one in out for key in repeat_keys(one, _repeats(now))))


def taken_out(draft: SuiteDraft, keys: Sequence[str]) -> SuiteDraft:
    """With these rows out; put back where all of them are out already."""
    wanted = frozenset(keys)
    out = draft.taken_out - wanted if wanted <= draft.taken_out else draft.taken_out | wanted
    return replace(draft, taken_out=out)


def product(draft: SuiteDraft) -> list[Selection]:
    """Every combination of a suite of one's own, each as often as it is repeated; the repeats change fastest."""
    return [
        replace(draft.base, workload=workload, release=release, size=size, dtype=dtype, scale=scale, overrides=layout)
        for (workload, release, size), dtype, scale, layout in itertools.product(
            draft.workloads, draft.dtypes, draft.scales, draft.layouts
        )
        for _ in range(draft.count or 1)
    ]


def _repeats(draft: SuiteDraft) -> int:
    """Of each row; more than can be planned are not counted."""
    return min(draft.count or (REPEATS if draft.kind == "repeat" else 1), MOST_RUNS)


def _workload(selection: Selection) -> Workload:
    return selection.workload, selection.release, selection.size


def _published(recipe: Recipe, size: str, gpu: str) -> list[Row]:
    return [row for row in rows(recipe) if (row.size, row.gpu) == (size, gpu)]


def _workload_offers(draft: SuiteDraft, catalog: Catalog) -> list[Offer]:
    """Every recipe and size: the base, those that this GPU type has, the others."""
    gpu = draft.base.gpu
    offered = []
    for recipe in catalog.recipes:
        for size in recipe.models:
            scales = sorted(row.gpus for row in _published(recipe, size, gpu))
            value = (recipe.workload, recipe.release, size)
            reach = f"{recipe.release}  {count(scales[0])}–{count(scales[-1])}" if scales else recipe.release
            chosen = value in draft.workloads
            why_not = "" if scales or chosen else f"not published for {gpu.upper()}"
            offered.append(Offer(value, f"{recipe.workload} {size}", reach, chosen, why_not))
    return sorted(offered, key=lambda one: (one.value != _workload(draft.base), bool(one.why_not)))


def _rows_of(draft: SuiteDraft, catalog: Catalog) -> list[Row]:
    """What is published of the chosen workloads for the GPU type and the scaling of the base."""
    scaling = "strong" if draft.base.strong_scaling else "weak"
    return [
        row
        for workload, release, size in draft.workloads or (_workload(draft.base),)
        for row in _published(catalog.recipe(workload, release), size, draft.base.gpu)
        if row.scaling == scaling
    ]


def _dtype_offers(draft: SuiteDraft, catalog: Catalog) -> list[Offer]:
    published = {row.dtype for row in _rows_of(draft, catalog)}
    why = {dtype: "" if dtype in {*published, *draft.dtypes} else "not published" for dtype in catalog.dtypes()}
    return [Offer(dtype, dtype, "", dtype in draft.dtypes, why_not) for dtype, why_not in why.items()]


def _scale_offers(draft: SuiteDraft, catalog: Catalog) -> list[Offer]:
    """All that is published of the chosen workloads in one of the chosen precisions; and what the base has."""
    published: dict[int, set[str]] = {}
    for row in _rows_of(draft, catalog):
        published.setdefault(row.gpus, set()).add(row.dtype)
    offered = []
    for gpus in sorted({*published, *draft.scales, draft.base.scale}):
        chosen = gpus in draft.scales
        only = published.get(gpus, set())
        why_not = f"only {', '.join(sorted(only))}" if only and not only & set(draft.dtypes) and not chosen else ""
        offered.append(Offer(gpus, count(gpus), "" if only else "not published", chosen, why_not))
    return offered


def _layout_offers(draft: SuiteDraft, layouts: Sequence[Layout]) -> list[Offer]:
    """The base's own layout, and those that were listed."""
    details = {
        one.overrides: f"{one.estimate.step_time_text} {one.estimate.method.replace('_', ' ')}"
        if one.estimate
        else "no estimate"
        for one in layouts
    }
    labels = {
        one: " ".join(f"{name}{value}" for name, value in one.set_fields().items()) or "the recipe's"
        for one in (draft.base.overrides, *draft.layouts, *details)
    }
    return [Offer(one, label, details.get(one, ""), one in draft.layouts) for one, label in labels.items()]
