"""`changes`: where a row of values became larger or smaller for good, beyond what they differ by anyway. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import fmean, median

_LEAST = 2
"""Values in a row: a single one that is otherwise is an outlier, no change."""
_ERROR = 0.01
"""How often noise alone may be taken for a change, of one row of values."""
_LEAST_AGAIN = 12
"""Values of which parts are looked at as well, and outliers are known."""
_FINEST = 0.002
"""Values that are more alike than this part of themselves are so by their rounding alone: a log prints 1.98 s."""
_AROUND = 7
"""Values in a row whose median is their level."""
_FARTHEST = 3.5
"""Deviations from its level, as which a value counts that is farther away: one slow run is no slower level."""
_NEAR = 0.01
"""Part of its level that is never far away, however alike the values are."""
_MOST = 150
"""Values that are looked at, the newest: the places to try grow with the square of their number."""

RULE = (
    "A change is marked where two runs or more in a row differ from those before by more than runs do that nothing was "
    "changed between: the row is cut at one place or at two, where that leaves least noise, and the parts are held "
    "against each other by the variance within them (an F test, corrected for all places that were tried), such that "
    "noise alone is taken for a change in 1 % of histories. Of twelve runs or more, one that is far from those before "
    "it and from those after it is moved nearer first."
)


@dataclass(frozen=True, slots=True)
class ChangePoint:
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


def changes(values: Sequence[float]) -> tuple[ChangePoint, ...]:
    """Where a row of positive values changes, by `RULE`, ascending."""
    first = max(0, len(values) - _MOST)
    near = _near(values)
    edges = _kept(near, [first, *_places(near, first, len(values)), len(values)])
    means = [fmean(values[low:high]) for low, high in pairwise(edges) if high > low]
    return tuple(ChangePoint(at, means[i], means[i + 1]) for i, at in enumerate(edges[1:-1]))


def chance(t: float, degrees: int) -> float:
    """How often Student's t is farther from 0 than this by chance alone.

    The finite series for whole degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4).
    """
    angle = math.atan2(abs(t), math.sqrt(degrees))
    term, total = (1.0, 0.0) if degrees % 2 == 0 else (math.cos(angle), 0.0)
    for power in range(degrees % 2, degrees - 1, 2):
        total += term
        term *= (power + 1) / (power + 2) * math.cos(angle) ** 2
    inside = math.sin(angle) * total
    return max(0.0, 1 - (inside if degrees % 2 == 0 else 2 / math.pi * (angle + inside)))


def _near(values: Sequence[float]) -> Sequence[float]:
    """With those moved nearer that are far from their level for a reason of their own; few values have no level.

    A value belongs to what is before it or to what is after it: a change is between the two.
    """
    if len(values) < _LEAST_AGAIN:
        return values
    last = len(values) - _AROUND
    medians = [median(values[at : at + _AROUND]) for at in range(last + 1)]
    levels = [sorted((medians[max(0, at - _AROUND + 1)], medians[min(at, last)])) for at in range(len(values))]
    near = [max(low, min(high, value)) for value, (low, high) in zip(values, levels, strict=True)]
    deviation = 1.4826 * median(abs(value - level) for value, level in zip(values, near, strict=True))
    widths = [max(_FARTHEST * deviation, _NEAR * level) for level in near]
    return [
        max(level - width, min(level + width, value)) for value, level, width in zip(values, near, widths, strict=True)
    ]


def _places(values: Sequence[float], low: int, high: int) -> list[int]:
    """Within values[low:high]: where to cut, and where to cut the parts again."""
    places = _cut(values, low, high, _ERROR)
    edges = [low, *places, high] if places else []
    return sorted([*places, *(place for begin, end in pairwise(edges) for place in _places(values, begin, end))])


def _cut(values: Sequence[float], low: int, high: int, error: float) -> list[int]:
    """The best one or two places within values[low:high], or within most of it: to and fro hides in the whole."""
    part = values[low:high]
    tried = list(_pieces(len(part)))
    if not tried:
        return []
    sums = [0.0, *accumulate(value - part[0] for value in part)]
    total = sum((value - fmean(part)) ** 2 for value in part)
    least = (_FINEST * fmean(part)) ** 2
    found = []
    for kinds in (2, 3):
        between, i, j = max(((_between(sums, *one), *one[1:]) for one in tried if one[0] == kinds), default=(0.0, 0, 0))
        noise = max((total - between) / (len(part) - kinds), least)
        if _by_chance(between / (kinds - 1) / noise, kinds, len(part)) * len(tried) <= error:
            found.append((noise, i, j))
    if found:
        _, i, j = min(found)
        return sorted({low + i, low + j} - {low, high})
    most = 2 * len(part) // 3
    if len(part) < _LEAST_AGAIN or error < _ERROR / 2:
        return []
    return _cut(values, low, low + most, error / 2) or _cut(values, high - most, high, error / 2)


def _pieces(count: int) -> Iterator[tuple[int, int, int]]:
    """(2, i, j): the stretch from i to j is another kind than the rest; (3, i, j): all three parts are of their own."""
    places = range(_LEAST, count - _LEAST + 1)
    for i in (0, *places):
        for j in places:
            if j - i >= _LEAST:
                yield 2, i, j
                if i:
                    yield 3, i, j


def _between(sums: Sequence[float], kinds: int, i: int, j: int) -> float:
    """Sum of squares between the parts; of 2 kinds the outer parts are one."""
    count, total = len(sums) - 1, sums[-1]
    parts = [(sums[j] - sums[i], j - i)]
    if kinds == 2:
        parts.append((total - parts[0][0], count - (j - i)))
    else:
        parts += [(sums[i], i), (total - sums[j], count - j)]
    return sum(part**2 / size for part, size in parts) - total**2 / count


def _by_chance(f: float, kinds: int, count: int) -> float:
    """How often F of so many kinds is larger than this by chance alone."""
    if kinds == 2:
        return chance(math.sqrt(max(f, 0.0)), count - 2)
    return float((1 + 2 * f / (count - 3)) ** (-(count - 3) / 2))


def _kept(values: Sequence[float], edges: list[int]) -> list[int]:
    """Those at which neighbours do differ: what the best cut has split beyond that is joined again."""
    while len(edges) > 2:
        parts = [values[low:high] for low, high in pairwise(edges)]
        means = [fmean(part) for part in parts]
        count = sum(map(len, parts))
        squares = sum((value - mean) ** 2 for part, mean in zip(parts, means, strict=True) for value in part)
        noise = max(math.sqrt(squares / max(count - len(parts), 1)), _FINEST * fmean(means))
        ts = [
            abs(means[at + 1] - means[at]) / (noise * math.sqrt(1 / len(parts[at]) + 1 / len(parts[at + 1])))
            for at in range(len(means) - 1)
        ]
        weakest = min(range(len(ts)), key=ts.__getitem__)
        if chance(ts[weakest], max(count - len(parts), 1)) * count <= _ERROR:
            break
        edges = [*edges[: weakest + 1], *edges[weakest + 2 :]]
    return edges
