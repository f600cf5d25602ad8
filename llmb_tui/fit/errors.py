"""Errors in per cent of what was published: mean, 90th percentile, worst."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Errors:
    """Absolute errors of step times, per cent of the published ones."""

    n: int
    mean_pct: float
    p90_pct: float
    worst_pct: float


def errors_of(pairs: Sequence[tuple[float, float]]) -> Errors:
    """The errors of (predicted, published) seconds; there must be one pair at least."""
    found = np.array([abs(predicted / published - 1) * 100 for predicted, published in pairs])
    return Errors(len(found), float(found.mean()), float(np.percentile(found, 90)), float(found.max()))
