"""`changes`: positions at which a series of values became larger or smaller by more than its noise. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import fmean, median

_LEAST = 2
"""Shortest level, in values: a single deviating value is an outlier and no change."""
_ERROR = 0.01
"""Probability that noise alone is reported as a change, for one series of values."""
_LEAST_AGAIN = 12
"""Number of values from which parts are searched as well, and outliers are recognised."""
_FINEST = 0.002
"""Relative noise that is always assumed, because logs round: they print 1.98 s."""
_AROUND = 7
"""Number of consecutive values whose median is their level."""
_FARTHEST = 3.5
"""Limit of a value's distance from its level, in deviations: one slow run does not make a slower level."""
_NEAR = 0.01
"""Distance from its level, as a fraction of it, that never counts as far, however similar the values are."""
_MOST = 150
"""Number of newest values that are searched: the cost grows with its square."""

RULE = (
    "A change is marked if two or more consecutive runs differ from the earlier ones by more than runs differ without "
    "any change: the series is cut at one or two places so that the least noise remains, and the parts are compared by "
    "the variance within them (an F test, corrected for all places that were tried), so that noise alone is reported "
    "as a change in 1 % of histories. In a series of twelve runs or more, a run that is far from the runs before it "
    "and after it is first moved closer to them."
)


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """A lasting change between two consecutive values."""

    at: int
    """Index of the first value after the change."""
    before: float
    """Mean of the values since the previous change."""
    after: float
    """Mean of the values until the next change."""

    @property
    def percent(self) -> float:
        """Difference of the values after the change, in per cent of those before."""
        return 100 * (self.after / self.before - 1)


def changes(values: Sequence[float]) -> tuple[ChangePoint, ...]:
    """Lasting changes of a series of positive values, by `RULE`, ascending."""
    first = max(0, len(values) - _MOST)
    near = _near(values)
    edges = _kept(near, [first, *_places(near, first, len(values)), len(values)])
    means = [fmean(values[low:high]) for low, high in pairwise(edges) if high > low]
    return tuple(ChangePoint(place, means[i], means[i + 1]) for i, place in enumerate(edges[1:-1]))


def chance(t: float, degrees: int) -> float:
    """Probability that Student's t is farther from 0 than this by chance alone.

    Computed by the finite series for whole degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4).
    """
    angle = math.atan2(abs(t), math.sqrt(degrees))
    term, total = (1.0, 0.0) if degrees % 2 == 0 else (math.cos(angle), 0.0)
    for power in range(degrees % 2, degrees - 1, 2):
        total += term
        term *= (power + 1) / (power + 2) * math.cos(angle) ** 2
    inside = math.sin(angle) * total
    return max(0.0, 1 - (inside if degrees % 2 == 0 else 2 / math.pi * (angle + inside)))


def _near(values: Sequence[float]) -> Sequence[float]:
    """Move outliers closer to their level; a short series has no level and stays unchanged.

    The level of a value is that of the values before it or of those after it, because a change may be between the two.
    """
    if len(values) < _LEAST_AGAIN:
        return values
    last = len(values) - _AROUND
    medians = [median(values[i : i + _AROUND]) for i in range(last + 1)]
    levels = [sorted((medians[max(0, i - _AROUND + 1)], medians[min(i, last)])) for i in range(len(values))]
    near = [max(low, min(high, value)) for value, (low, high) in zip(values, levels, strict=True)]
    deviation = 1.4826 * median(abs(value - level) for value, level in zip(values, near, strict=True))
    widths = [max(_FARTHEST * deviation, _NEAR * level) for level in near]
    return [
        max(level - width, min(level + width, value)) for value, level, width in zip(values, near, widths, strict=True)
    ]


def _places(values: Sequence[float], low: int, high: int) -> list[int]:
    """Places within values[low:high] to cut at, including further cuts of the parts."""
    places = _cut(values, low, high, _ERROR)
    edges = [low, *places, high] if places else []
    return sorted([*places, *(place for begin, end in pairwise(edges) for place in _places(values, begin, end))])


def _cut(values: Sequence[float], low: int, high: int, error: float) -> list[int]:
    """Best one or two places within values[low:high], or within most of it: the whole hides a temporary change."""
    part = values[low:high]
    candidates = list(_pieces(len(part)))
    if not candidates:
        return []
    sums = [0.0, *accumulate(value - part[0] for value in part)]
    total = sum((value - fmean(part)) ** 2 for value in part)
    least = (_FINEST * fmean(part)) ** 2
    accepted = []
    for kinds in (2, 3):
        between, i, j = max(
            ((_between(sums, *candidate), *candidate[1:]) for candidate in candidates if candidate[0] == kinds),
            default=(0.0, 0, 0),
        )
        noise = max((total - between) / (len(part) - kinds), least)
        if _by_chance(between / (kinds - 1) / noise, kinds, len(part)) * len(candidates) <= error:
            accepted.append((noise, i, j))
    if accepted:
        _, i, j = min(accepted)
        return sorted({low + i, low + j} - {low, high})
    most = 2 * len(part) // 3
    if len(part) < _LEAST_AGAIN or error < _ERROR / 2:
        return []
    return _cut(values, low, low + most, error / 2) or _cut(values, high - most, high, error / 2)


def _pieces(count: int) -> Iterator[tuple[int, int, int]]:
    """(2, i, j): the part from i to j is a level of its own between equal parts; (3, i, j): three different levels."""
    places = range(_LEAST, count - _LEAST + 1)
    for i in (0, *places):
        for j in places:
            if j - i >= _LEAST:
                yield 2, i, j
                if i:
                    yield 3, i, j


def _between(sums: Sequence[float], levels: int, i: int, j: int) -> float:
    """Sum of squares between the levels; with 2 of them the outer parts are one level."""
    count, total = len(sums) - 1, sums[-1]
    parts = [(sums[j] - sums[i], j - i)]
    if levels == 2:
        parts.append((total - parts[0][0], count - (j - i)))
    else:
        parts += [(sums[i], i), (total - sums[j], count - j)]
    return sum(part**2 / size for part, size in parts) - total**2 / count


def _by_chance(f: float, levels: int, count: int) -> float:
    """Probability that F for this number of levels is larger than this by chance alone."""
    if levels == 2:
        return chance(math.sqrt(max(f, 0.0)), count - 2)
    return float((1 + 2 * f / (count - 3)) ** (-(count - 3) / 2))


def _kept(values: Sequence[float], edges: list[int]) -> list[int]:
    """Edges at which neighbours really differ: parts that the best cut has split needlessly are joined again."""
    while len(edges) > 2:
        parts = [values[low:high] for low, high in pairwise(edges)]
        means = [fmean(part) for part in parts]
        count = sum(map(len, parts))
        squares = sum((value - mean) ** 2 for part, mean in zip(parts, means, strict=True) for value in part)
        noise = max(math.sqrt(squares / max(count - len(parts), 1)), _FINEST * fmean(means))
        ts = [
            abs(means[i + 1] - means[i]) / (noise * math.sqrt(1 / len(parts[i]) + 1 / len(parts[i + 1])))
            for i in range(len(means) - 1)
        ]
        weakest = min(range(len(ts)), key=ts.__getitem__)
        if chance(ts[weakest], max(count - len(parts), 1)) * count <= _ERROR:
            break
        edges = [*edges[: weakest + 1], *edges[weakest + 2 :]]
    return edges
