"""How a layout stands to its recipe, and what divides nearby: for the checks and the list of layouts."""

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
    """The largest TP that stays on NVLink: a node, or further where the recipe's own TP reaches further."""
    return max(resolved.gpu.gpus_per_node, resolved.base.row_for(resolved.selection.scale).tp)


def runs_as_listed(resolved: ResolvedSelection) -> bool:
    """True where what runs is the recipe's own row for this scale."""
    if not resolved.listed:
        return False
    row, runs = resolved.base.rows[resolved.selection.scale], resolved.parallelism
    return bool(_layout_of(row) == _layout_of(runs))


# Multiples tried on each side. A fixed batch of 512 on a layout of 32 GPUs needs 56 of them from 10,000 GPUs down.
_TRIES = 64


def neighbours(value: int, ascending: Sequence[int]) -> tuple[int, ...]:
    """The value below and the value above, without the value itself; one of them at an end."""
    at = bisect_left(ascending, value)
    below, above = ascending[:at][-1:], [number for number in ascending[at : at + 2] if number != value][:1]
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
    """The nearest GPU counts below and above that the resolved's layout divides, with whole nodes and batches."""
    plan = resolved.parallelism
    layout = plan.tp * plan.pp * plan.cp

    def fits(gpus: int) -> bool:
        gbs = resolved.by_hand.get("gbs") or resolved.base.gbs_for(gpus)
        ga = gbs and quotient(gbs, plan.mbs * (gpus // layout))
        return ga is not None and (not plan.vp or fills_pipeline(ga, plan.pp))

    return multiples(resolved.selection.scale, math.lcm(layout * plan.ep, resolved.gpu.gpus_per_node), fits)


def _first(candidates: Iterable[int], fits: Callable[[int], bool]) -> tuple[int, ...]:
    return next(((number,) for number in candidates if fits(number)), ())


def either(choices: Iterable[object]) -> str:
    """`64 or 128`."""
    return " or ".join(map(str, choices))
