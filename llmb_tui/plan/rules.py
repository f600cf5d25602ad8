"""Arithmetic of layouts, for the checks and the list of layouts: divisors, multiples and neighbouring values."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter

from llmb_tui.catalog.layout import fills_pipeline
from llmb_tui.plan.resolved import ResolvedSelection, quotient
from llmb_tui.plan.selection import LAYOUT

_layout_of = attrgetter(*(field.name for field in LAYOUT))


def tensor_reach(resolved: ResolvedSelection) -> int:
    """The largest TP on NVLink: the GPUs of a node, or the recipe's TP if that is larger."""
    return max(resolved.gpu.gpus_per_node, resolved.base.row_for(resolved.selection.scale).tp)


def runs_as_listed(resolved: ResolvedSelection) -> bool:
    """True if the layout is the recipe's row for this scale."""
    if not resolved.listed:
        return False
    row, runs = resolved.base.rows[resolved.selection.scale], resolved.parallelism
    return bool(_layout_of(row) == _layout_of(runs))


# Multiples tried on each side; a fixed batch of 512 on a layout of 32 GPUs needs 56 of them below 10,000 GPUs.
_TRIES = 64


def neighbours(value: int, ascending: Sequence[int]) -> tuple[int, ...]:
    """The next smaller and the next larger value; only one at an end."""
    index = bisect_left(ascending, value)
    below, above = ascending[:index][-1:], [number for number in ascending[index : index + 2] if number != value][:1]
    return (*below, *above)


def divisors(number: int) -> list[int]:
    """All divisors, ascending."""
    low = [n for n in range(1, math.isqrt(number) + 1) if number % n == 0]
    return sorted({*low, *(number // n for n in low)})


def multiples(value: int, unit: int, fits: Callable[[int], bool] = lambda _: True) -> tuple[int, ...]:
    """The nearest positive multiple of `unit` that fits below `value`, and the nearest above."""
    start = value // unit
    below = (k * unit for k in range(start, max(start - _TRIES, 0), -1) if k * unit < value)
    above = (k * unit for k in range(start + 1, start + 1 + _TRIES))
    return (*_first(below, fits), *_first(above, fits))


def dividing_scales(resolved: ResolvedSelection) -> tuple[int, ...]:
    """The nearest GPU counts below and above that the layout divides, with whole nodes and batches."""
    plan = resolved.parallelism
    layout = plan.tp * plan.pp * plan.cp

    def fits(gpus: int) -> bool:
        gbs = resolved.overrides.get("gbs") or resolved.base.gbs_for(gpus)
        ga = gbs and quotient(gbs, plan.mbs * (gpus // layout))
        return ga is not None and (not plan.vp or fills_pipeline(ga, plan.pp))

    return multiples(resolved.selection.scale, math.lcm(layout * plan.ep, resolved.gpu.gpus_per_node), fits)


def _first(candidates: Iterable[int], fits: Callable[[int], bool]) -> tuple[int, ...]:
    return next(((number,) for number in candidates if fits(number)), ())


def either(choices: Iterable[object]) -> str:
    """`64 or 128`."""
    return " or ".join(map(str, choices))
