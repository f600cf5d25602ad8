"""Round values of axes."""

from __future__ import annotations

from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmb_tui.language.ticks import multiples, round_steps, tick_label


def test_steps_are_round_and_start_at_the_power_of_ten_below() -> None:
    assert list(islice(round_steps(3.7), 5)) == [1, 2, 5, 10, 20]
    assert list(islice(round_steps(0.05, (1, 2.5)), 3)) == pytest.approx([0.01, 0.025, 0.1])


@given(st.floats(1e-6, 1e6), st.floats(0.01, 100))
def test_ticks_are_consecutive_multiples_of_the_step_in_the_range(low: float, span: float) -> None:
    step = next(step for step in round_steps(span / 5) if step >= span / 5)
    values = multiples(step, low, low + span)
    assert all(low - step * 1e-6 <= value <= low + span + step * 1e-6 for value in values)
    assert all(b - a == pytest.approx(step, rel=1e-3) for a, b in pairwise(values))


@pytest.mark.parametrize(
    ("value", "step", "label"),
    [(2, 0.5, "2.0"), (1.95, 0.05, "1.95"), (0.3, 0.025, "0.300"), (1500, 500, "1,500"), (3, 1.5, "3.0"), (0, 20, "0")],
)
def test_a_label_has_the_decimals_of_the_step(value: float, step: float, label: str) -> None:
    assert tick_label(value, step) == label
