"""Confidence intervals of 95 % contain the true difference in about 95 % of simulated cases."""

from __future__ import annotations

import random
from statistics import fmean

from llmb_tui.analysis.statistics import welch_half_width


def test_the_confidence_interval_covers_the_true_difference_in_95_of_100_cases() -> None:
    noise = random.Random(2)
    inside = 0
    for _ in range(400):
        one, other = ([noise.gauss(mean, 0.05) for _ in range(10)] for mean in (2.1, 2.0))
        half = welch_half_width(one, other)
        assert half is not None
        inside += abs(fmean(one) - fmean(other) - 0.1) <= half
    assert 370 <= inside <= 390
