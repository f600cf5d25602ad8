"""`changes`: where a row of values became larger or smaller for good, beyond what they differ by anyway. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import fmean

_LEAST = 2
"""Values on each side: a single one that is otherwise is an outlier, no change."""
_ERROR = 0.01
"""How often noise alone may be taken for a change, of one row of values."""
_FINEST = 0.002
"""Values that are more alike than this part of themselves are so by their rounding alone: a log prints 1.98 s."""

RULE = (
    "A change is marked where two runs or more in a row differ from the others by more than those do among "
    "themselves: Student's t of the two means, for the stretch where it is largest, such that noise alone is taken for "
    "a change in 1 % of histories at most, however many stretches there are to try."
)


@dataclass(frozen=True, slots=True)
class Change:
    """From one value to the next, all of them became others."""

    at: int
    """Index of the first value after it."""
    before: float
    """Mean of the values since the change before."""
    after: float
    """Mean of the values until the next change."""

    @property
    def percent(self) -> float:
        """How much larger the values are after it, in per cent."""
        return 100 * (self.after / self.before - 1)


def changes(values: Sequence[float]) -> tuple[Change, ...]:
    """Where a row of positive values changes, by `RULE`, ascending."""
    edges = [0, *_places(values, 0, len(values)), len(values)]
    means = [fmean(values[low:high]) for low, high in pairwise(edges) if high > low]
    return tuple(Change(at, means[i], means[i + 1]) for i, at in enumerate(edges[1:-1]))


def chance(t: float, degrees: int) -> float:
    """How often Student's t is farther from 0 than this by chance alone.

    The finite series for whole degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4).
    """
    if math.isinf(t):
        return 0.0
    angle = math.atan2(abs(t), math.sqrt(degrees))
    term, total = (1.0, 0.0) if degrees % 2 == 0 else (math.cos(angle), 0.0)
    for power in range(degrees % 2, degrees - 1, 2):
        total += term
        term *= (power + 1) / (power + 2) * math.cos(angle) ** 2
    inside = math.sin(angle) * total
    return 1 - (inside if degrees % 2 == 0 else 2 / math.pi * (angle + inside))


def _places(values: Sequence[float], low: int, high: int) -> list[int]:
    """Within values[low:high]: the ends of the stretch that differs most from the rest, and those in each part."""
    part = values[low:high]
    cuts = [0, *range(_LEAST, len(part) - _LEAST + 1)]  # one that reaches to the end is the rest of another
    stretches = [(i, j) for i in cuts for j in cuts if j - i >= _LEAST]
    if not stretches:
        return []
    sums = [0.0, *accumulate(value - part[0] for value in part)]
    squares = sum((value - fmean(part)) ** 2 for value in part)
    finest = _FINEST * min(part)
    t, i, j = max((_t(sums, squares, finest, i, j), i, j) for i, j in stretches)
    if chance(t, len(part) - 2) * len(stretches) > _ERROR:
        return []
    edges = sorted({low, low + i, low + j, high})
    inner = [place for begin, end in pairwise(edges) for place in _places(values, begin, end)]
    return sorted([*edges[1:-1], *inner])


def _t(sums: Sequence[float], squares: float, finest: float, i: int, j: int) -> float:
    """Student's t of the means of a stretch and of the rest, with one deviation for both."""
    count, inside = len(sums) - 1, j - i
    apart = (sums[j] - sums[i]) / inside - (sums[-1] - sums[j] + sums[i]) / (count - inside)
    share = inside * (count - inside) / count
    deviation = max(math.sqrt(max(0.0, squares - apart**2 * share) / (count - 2)), finest)
    return abs(apart) / deviation * math.sqrt(share)
