"""Round values for the axes of charts, and their labels. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

_MOST_DECIMALS = 9


def round_steps(least: float, factors: Sequence[float] = (1, 2, 5)) -> Iterator[float]:
    """Round numbers in endless ascending order, from the power of ten at or below `least`."""
    power = math.floor(math.log10(least))
    while True:
        yield from (factor * 10.0**power for factor in factors)
        power += 1


def multiples(step: float, low: float, high: float) -> list[float]:
    """All whole multiples of the step from `low` to `high`."""
    return [number * step for number in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def tick_label(value: float, step: float) -> str:
    """A multiple of the step, with as many decimals as the step: `1.95` for a step of 0.05."""
    decimals = next((d for d in range(_MOST_DECIMALS) if math.isclose(round(step, d), step)), _MOST_DECIMALS)
    return f"{value:,.{decimals}f}"
