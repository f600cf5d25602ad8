"""`over_scale`: estimates of one selection over the number of GPUs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.plan import make
from llmb_tui.plan.plan import Estimate
from llmb_tui.plan.resolved import resolve
from llmb_tui.plan.selection import NOTHING_MORE, Selection


@dataclass(frozen=True, slots=True)
class AtScale:
    """The estimate of a selection on this many GPUs."""

    gpus: int
    estimate: Estimate
    published: bool
    """True if the recipe published a result of this configuration."""


def over_scale(catalog: Catalog, selection: Selection) -> tuple[AtScale, ...]:
    """One point for each scale that can be compared, ascending.

    Scales are the listed ones, the powers of two between them, twice the largest, and the selection's. A scale without
    an estimate is left out, and so is one with another number of layers (a reduced model). Raises `UnknownNameError`
    for a recipe, size or GPU type without a preset.
    """
    # These do not change the step time; without them more plans are in the cache.
    bare = replace(selection, steps=None, time_limit=None, options=NOTHING_MORE)
    resolved = resolve(catalog, bare)
    scales = {selection.scale, *resolved.base.rows, *_between_and_beyond(tuple(resolved.base.rows))}
    plans = [_plan(catalog, replace(bare, scale=scale)) for scale in sorted(scales)]
    return tuple(
        AtScale(plan.selection.scale, plan.estimate, plan.published is not None)
        for plan in plans
        if plan.estimate is not None and plan.parallelism.layers == resolved.parallelism.layers
    )


def _between_and_beyond(scales: tuple[int, ...]) -> list[int]:
    """The powers of two between the smallest scale and the largest, and twice the largest. `scales` is ascending."""
    powers = (1 << power for power in range(scales[0].bit_length(), scales[-1].bit_length()))
    return [*powers, 2 * scales[-1]]


# Moving over the scales of one selection asks for the same plans repeatedly.
_plan = lru_cache(maxsize=512)(make.plan)
