"""What divides what: the arithmetic of a layout, for the checks and the list of layouts; what divides nearby."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter

from llmb_tui.catalog.recipe import Model
from llmb_tui.plan.resolved import ResolvedSelection, quotient
from llmb_tui.plan.selection import LAYOUT

_layout_of = attrgetter(*(field.name for field in LAYOUT))


def shared_heads(model: Model) -> int:
    """What tensor parallelism must divide: query heads and key/value groups are split over its ranks.

    Source: Megatron Core 0.11 to 0.14, transformer_config.py, which refuses a TP that does not divide both.
    """
    return math.gcd(model.heads, model.query_groups)


def tensor_reach(resolved: ResolvedSelection) -> int:
    """The largest TP that stays on NVLink: a node, or further where the recipe's own TP reaches further."""
    return max(resolved.gpu.gpus_per_node, resolved.base.row_for(resolved.selection.scale).tp)


def stage_places(model: Model, layers: int) -> int:
    """What PP x VP must divide: the layers, and what the embedding and the loss count for in this recipe."""
    return layers + model.stage_extra_layers


def sequence_pieces(tp: int, cp: int) -> int:
    """What must divide the sequence length.

    Context parallelism gives each rank two pieces of a causal sequence, sequence parallelism splits them over the
    tensor ranks.
    """
    return tp * cp * (2 if cp > 1 else 1)


def fills_pipeline(ga: int, pp: int) -> bool:
    """Whether virtual stages can run: the micro-batches come in groups of PP.

    Source: Megatron Core 0.11 to 0.14, schedules.py, which stops with an error for any other number.
    """
    return ga % pp == 0


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
