"""`SampleStatistics`: step times summarised in a few numbers; and confidence intervals of means of repeats."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median, pstdev, stdev

# Student's t, two-sided 95 %, by degrees of freedom from 1 on. Beyond the table its last value is used, which is a
# little too wide and never too narrow. (Fisher and Yates, Statistical Tables, table III.)
_T_95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
FINEST_PCT = 0.1
"""Minimum width of an interval of step times: logs print four digits, and the last one is rounded on either side."""


@dataclass(frozen=True, slots=True)
class SampleStatistics:
    """Summary of one or more values, in their unit."""

    count: int
    mean: float
    median: float
    low: float
    high: float
    stdev: float | None
    """Standard deviation of a sample (÷ n − 1), as llmb-run computes it; None for a single value."""
    population_stdev: float
    """Standard deviation ÷ n, as NVIDIA's parse_train_timing.sh computes it."""

    @property
    def cv_pct(self) -> float | None:
        """Standard deviation of the sample in per cent of the mean; None for a single value."""
        return None if self.stdev is None else 100 * self.stdev / self.mean


def spread(values: Sequence[float]) -> SampleStatistics | None:
    """Summary of values; None without a value."""
    if not values:
        return None
    deviation = stdev(values) if len(values) > 1 else None
    return SampleStatistics(
        len(values), fmean(values), median(values), min(values), max(values), deviation, pstdev(values)
    )


def t_95(degrees: int) -> float:
    """Student's t for a two-sided interval of 95 %; `degrees` of freedom from 1 on."""
    return _T_95[min(degrees, len(_T_95)) - 1]


def mean_half_width(values: Sequence[float]) -> float | None:
    """Half of the 95 % confidence interval of the mean, in the values' unit; None for fewer than two."""
    if len(values) < 2:
        return None
    return t_95(len(values) - 1) * stdev(values) / math.sqrt(len(values))


def welch_half_width(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Half of the 95 % confidence interval of the difference of two means, by Welch, for deviations that may differ.

    In the values' unit; None if either side has fewer than two values.
    """
    if min(len(first), len(second)) < 2:
        return None
    squares = [stdev(values) ** 2 / len(values) for values in (first, second)]
    if not (whole := sum(squares)):
        return 0.0
    degrees = whole**2 / sum(
        square**2 / (len(values) - 1) for square, values in zip(squares, (first, second), strict=True)
    )
    return t_95(max(1, math.floor(degrees))) * math.sqrt(whole)
