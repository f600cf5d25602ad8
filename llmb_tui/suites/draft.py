"""`SuiteDraft`: the choices for a suite so far, and the runs that they make. Frozen and pure.

A screen shows `offers`, passes a toggled value to `switched`, and shows the result of `draft_plan.plan_draft`.
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
"""Axes that multiply the runs besides the repeats; the names are those of the draft's fields."""
Number = Literal["count", "at_most", "stop_after", "shuffle"]
Workload = tuple[str, str, str]
"""Workload, release and size."""
Value = Workload | str | int | Overrides
_REPEAT = re.compile(r" #\d+$")
"""Number of a row among its repeats, at the end of its key."""


@dataclass(frozen=True, slots=True)
class SuiteDraft:
    """The base selection, the values that multiply it, and the way of submission."""

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
    """Number of runs of each; for `tune`, of layouts to try. None: the usual number of its kind."""
    excluded: frozenset[str] = frozenset()
    """Keys of the excluded rows."""
    name: str = ""
    """Name of the suite; if empty, a text of what it measures."""
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
    disabled_reason: str = ""
    """Reason why it cannot be chosen; empty if it can."""


def draft_of(base: Selection, procedure: ProcedureId, cluster: str) -> SuiteDraft:
    """The suite with a single run."""
    one_each = ((_workload(base),), (base.dtype,), (base.scale,), (base.overrides,))
    return SuiteDraft(base, procedure, cluster, "custom", *one_each)


def offers(draft: SuiteDraft, catalog: Catalog, layouts: Sequence[Layout] = ()) -> dict[Axis, tuple[Offer, ...]]:
    """Possible values of each axis, in order. `layouts`: layouts that were listed for the base."""
    return {
        "workloads": tuple(_workload_offers(draft, catalog)),
        "dtypes": tuple(_dtype_offers(draft, catalog)),
        "scales": tuple(_scale_offers(draft, catalog)),
        "layouts": tuple(_layout_offers(draft, layouts)),
    }


def switched(draft: SuiteDraft, axis: Axis, offered: Sequence[Offer], value: Value) -> SuiteDraft:
    """Add a value to an axis, or remove it; the order is that of the offers."""
    chosen = {offer.value for offer in offered if offer.chosen} ^ {value}
    values = tuple(offer.value for offer in offered if offer.value in chosen)
    return replace(draft, **{axis: values})  # type: ignore[arg-type]


def with_number(draft: SuiteDraft, name: Number, value: int | None) -> SuiteDraft:
    """Set a number; 0 is only valid for a seed. A row stays excluded if all of its repeats were."""
    changed: SuiteDraft = replace(draft, **{name: value if value or name == "shuffle" else None})  # type: ignore[arg-type]
    if name != "count" or draft.kind == "tune":
        return changed
    names = {_REPEAT.sub("", key) for key in draft.excluded}
    out = [name for name in names if draft.excluded.issuperset(repeat_keys(name, _repeats(draft)))]
    return replace(changed, excluded=frozenset(key for name in out for key in repeat_keys(name, _repeats(changed))))


def toggle_excluded(draft: SuiteDraft, keys: Sequence[str]) -> SuiteDraft:
    """Exclude these rows; if all of them are excluded already, include them again."""
    wanted = frozenset(keys)
    out = draft.excluded - wanted if wanted <= draft.excluded else draft.excluded | wanted
    return replace(draft, excluded=out)


def product(draft: SuiteDraft) -> list[Selection]:
    """Every combination of a custom suite with its repeats; the repeats change fastest."""
    return [
        replace(draft.base, workload=workload, release=release, size=size, dtype=dtype, scale=scale, overrides=layout)
        for (workload, release, size), dtype, scale, layout in itertools.product(
            draft.workloads, draft.dtypes, draft.scales, draft.layouts
        )
        for _ in range(draft.count or 1)
    ]


def _repeats(draft: SuiteDraft) -> int:
    """Number of repeats of each row, limited to the number of runs that a suite may have."""
    return min(draft.count or (REPEATS if draft.kind == "repeat" else 1), MOST_RUNS)


def _workload(selection: Selection) -> Workload:
    return selection.workload, selection.release, selection.size


def _published(recipe: Recipe, size: str, gpu: str) -> list[Row]:
    return [row for row in rows(recipe) if (row.size, row.gpu) == (size, gpu)]


def _workload_offers(draft: SuiteDraft, catalog: Catalog) -> list[Offer]:
    """Every recipe and size: first the base, then those published for this GPU type, then the others."""
    gpu = draft.base.gpu
    offered = []
    for recipe in catalog.recipes:
        for size in recipe.models:
            scales = sorted(row.gpus for row in _published(recipe, size, gpu))
            value = (recipe.workload, recipe.release, size)
            reach = f"{recipe.release}  {count(scales[0])}–{count(scales[-1])}" if scales else recipe.release
            chosen = value in draft.workloads
            disabled_reason = "" if scales or chosen else f"not published for {gpu.upper()}"
            offered.append(Offer(value, f"{recipe.workload} {size}", reach, chosen, disabled_reason))
    return sorted(offered, key=lambda offer: (offer.value != _workload(draft.base), bool(offer.disabled_reason)))


def _rows_of(draft: SuiteDraft, catalog: Catalog) -> list[Row]:
    """Published rows of the chosen workloads for the GPU type and the scaling of the base."""
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
    return [Offer(dtype, dtype, "", dtype in draft.dtypes, disabled_reason) for dtype, disabled_reason in why.items()]


def _scale_offers(draft: SuiteDraft, catalog: Catalog) -> list[Offer]:
    """Published scales of the chosen workloads in any chosen precision, and the chosen scales."""
    published: dict[int, set[str]] = {}
    for row in _rows_of(draft, catalog):
        published.setdefault(row.gpus, set()).add(row.dtype)
    offered = []
    for gpus in sorted({*published, *draft.scales, draft.base.scale}):
        chosen = gpus in draft.scales
        only = published.get(gpus, set())
        disabled_reason = (
            f"only {', '.join(sorted(only))}" if only and not only & set(draft.dtypes) and not chosen else ""
        )
        offered.append(Offer(gpus, count(gpus), "" if only else "not published", chosen, disabled_reason))
    return offered


def _layout_offers(draft: SuiteDraft, layouts: Sequence[Layout]) -> list[Offer]:
    """The layout of the base, and the listed layouts."""
    details = {
        layout.overrides: f"{layout.estimate.step_time_text} {layout.estimate.method.replace('_', ' ')}"
        if layout.estimate
        else "no estimate"
        for layout in layouts
    }
    labels = {
        overrides: " ".join(f"{name}{value}" for name, value in overrides.set_fields().items()) or "the recipe's"
        for overrides in (draft.base.overrides, *draft.layouts, *details)
    }
    return [
        Offer(overrides, label, details.get(overrides, ""), overrides in draft.layouts)
        for overrides, label in labels.items()
    ]
