"""Remaining time of a growing count."""

from __future__ import annotations

import pytest

from llmb_tui.rates import RateEstimator


def test_the_remaining_time_counts_down_between_two_sightings() -> None:
    pace = RateEstimator()
    assert pace.seconds_left(50, 0.0) is None
    pace.note(10, 100.0)
    assert pace.seconds_left(50, 100.0) is None
    pace.note(12, 101.0)
    assert pace.seconds_left(50, 101.0) == pytest.approx(38 * 0.5)
    assert pace.seconds_left(50, 103.0) == pytest.approx(38 * 0.5 - 2)
    assert pace.seconds_left(50, 1000.0) == 0.0
    assert pace.seconds_left(None, 101.0) is None


def test_only_the_newest_sightings_count_and_a_smaller_count_is_a_new_start() -> None:
    pace = RateEstimator(newest=11)
    for done in range(1, 30):
        pace.note(done, 100.0 * done if done < 10 else 1000.0 + done)
    assert pace.seconds_left(50, 1029.0) == pytest.approx(21.0)
    pace.note(1, 2000.0)
    assert pace.seconds_left(50, 2000.0) is None


def test_the_pace_comes_from_a_window_and_needs_a_minimum_time() -> None:
    pace = RateEstimator(within_s=60.0, after_s=5.0)

    def remaining_s(now: float, count: int) -> float | None:
        pace.note(count, now)
        return pace.seconds_left(1000, now)

    assert remaining_s(0.0, 0) is None
    assert remaining_s(1.0, 10) is None
    assert remaining_s(10.0, 100) == 90.0
    assert remaining_s(80.0, 800) is None  # the earlier sightings are older than a minute
    assert remaining_s(90.0, 900) == 10.0
    assert remaining_s(100.0, 50) is None
