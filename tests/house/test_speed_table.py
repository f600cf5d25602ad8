"""Verdicts of the speed table on its goals, and that it compares equal work."""

import pytest

from bench._rounds import Row
from bench.parse import agree, make_log

VALUES = {"now": [3.0, 1.0, 2.0], "before": [16.0, 15.0, 30.0], "Log": [0.05, 0.1, 0.2]}


@pytest.mark.parametrize(
    ("to_reach", "said"),
    [
        ("≤ 1/8 × before", "yes: 0.125"),
        ("≤ 0.1 × before", "no: 0.125"),
        ("≥ 20 × Log", "yes: 20"),
        ("≥ 21 × Log", "no: 20"),
        ("≤ 1.5 more than Log", "no: 1.9"),
        ("≤ 10", "yes: 2"),
        ("one process", "not judged"),
    ],
)
def test_a_goal_is_judged_by_medians(to_reach: str, said: str) -> None:
    assert Row("it", "s", VALUES, to_reach).judged() == [(to_reach, said)]


def test_unmeasured_values_are_not_judged() -> None:
    row = Row("it", "s", {"now": [1.0]}, "≤ 1 × before; ≤ 10", 1, "it waits for its neighbour")
    assert [text.split(":")[0] for _, text in row.judged()] == ["not judged", "yes"]
    assert "neighbour" not in row.cells()[-1]


def test_a_goal_that_is_not_reached_has_a_reason() -> None:
    row = Row("it", "s", VALUES, "≤ 0.1 × before", 1, "it waits for its neighbour")
    assert row.cells()[-1] == "no: 0.125<br>it waits for its neighbour"


def test_the_ways_of_reading_steps_agree() -> None:
    """The step parser's row is valid only for equal work; this test fails before an hour of measuring does."""
    assert agree(make_log(500, 0.4))
