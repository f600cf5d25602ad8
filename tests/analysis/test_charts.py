"""Contents of charts: round ticks, separate labels, changes beyond the noise, and the numbers of the results."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from statistics import fmean

import pytest

from llmb_tui.analysis.changes import chance, changes
from llmb_tui.analysis.chart import Axis, Chart, scale_axis, spread_labels
from llmb_tui.analysis.charts import efficiency_chart, history_chart, scale_chart, step_chart
from llmb_tui.analysis.result import RunResult
from llmb_tui.analysis.scaling import scaling_curves
from llmb_tui.analysis.statistics import t_95
from llmb_tui.catalog.recipe import ResultRule
from llmb_tui.plan.over_scale import over_scale
from tests.kit.results import make_result, with_changes
from tests.kit.runs import CATALOG, NEMOTRON, PLAN

DAY = 86_400.0
SCALES = ((16, 2.0), (64, 2.5), (64, 2.5))
TIMES = [41.2, *(1.97 + 0.01 * (index % 3) for index in range(1, 49)), 1.974]
RESULT = make_result("run1", TIMES, plan=PLAN, submitted_at=1_760_000_000.0)


def labels(axis: Axis, most: int) -> list[str]:
    return [tick.label for tick in axis.ticks(most)]


@pytest.mark.parametrize(
    ("low", "high", "most", "wanted"),
    [
        (1.87, 2.13, 6, ["1.90", "1.95", "2.00", "2.05", "2.10"]),
        (1.87, 2.13, 3, ["1.9", "2.0", "2.1"]),
        (0.0, 49.0, 6, ["0", "10", "20", "30", "40"]),
        (-3.0, 3.0, 4, ["-2", "0", "2"]),
        (0.0, 52_000.0, 4, ["0", "20,000", "40,000"]),
        (0.0182, 0.0188, 4, ["0.0182", "0.0184", "0.0186", "0.0188"]),
    ],
)
def test_ticks_are_round(low: float, high: float, most: int, wanted: list[str]) -> None:
    assert labels(Axis("", low, high), most) == wanted


def test_ticks_are_never_more_than_fit_and_never_outside() -> None:
    numbers = random.Random(3)
    for _ in range(500):
        low = numbers.uniform(-5, 5) * 10 ** numbers.randrange(-3, 5)
        axis = Axis("", low, low + 10 ** numbers.uniform(-4, 5))
        for most in (1, 2, 3, 5, 9):
            ticks = axis.ticks(most)
            assert len(ticks) <= most
            assert all(-1e-6 <= axis.place(tick.at) <= 1 + 1e-6 for tick in ticks)
            assert len({tick.label for tick in ticks}) == len(ticks)


def test_an_axis_of_gpus_labels_only_existing_values() -> None:
    axis = scale_axis("GPUs", [8, 16, 64, 128, 1024])
    assert labels(axis, 12) == ["8", "16", "64", "128", "1,024"]
    assert labels(axis, 4) == ["8", "64", "1,024"]
    assert 0 < axis.place(8) < axis.place(1024) < 1


def test_an_axis_of_time_has_whole_days() -> None:
    assert labels(Axis("", 1_760_000_000, 1_760_000_000 + 20 * DAY, "time"), 4)[0].endswith("Oct")
    assert labels(Axis("", 1_759_968_000, 1_759_968_000 + 6 * 3600, "time"), 8) == [
        f"09 Oct {hour:02}:00" for hour in range(7)
    ]


def test_labels_keep_apart_and_near() -> None:
    assert spread_labels([10, 50], 5, 0, 100) == [10, 50]
    found = spread_labels([50, 10, 51, 52, 99], 8, 0, 100)
    assert all(b - a >= 8 - 1e-9 for a, b in pairwise(sorted(found)))
    assert all(4 <= place <= 96 for place in found)
    assert found[0] < found[2] < found[3]
    assert spread_labels([5, 5, 5], 50, 0, 90) == [15, 45, 75]
    assert spread_labels([], 5, 0, 100) == []


def test_chance_of_student_is_the_tables() -> None:
    for degrees in (1, 2, 3, 4, 7, 10, 29, 30):
        assert chance(t_95(degrees), degrees) == pytest.approx(0.05, abs=2e-4)


def test_a_change_is_larger_than_the_noise() -> None:
    assert [change.at for change in changes([1.98, 1.99, 1.98, 2.1, 2.11])] == [3]
    (change,) = changes([2.0, 2.0, 2.0, 2.1, 2.1, 2.1])
    assert change.percent == pytest.approx(5.0)
    assert [
        change.at for change in changes([1.98, 1.99, 2.0, 1.98, 2.08, 2.09, 2.07, 2.08, 2.04, 2.02, 2.03, 2.04])
    ] == [
        4,
        8,
    ]
    assert [change.at for change in changes([*[2.0, 2.01] * 4, *[2.1, 2.11] * 4] * 2)] == [8, 16, 24]
    assert [change.at for change in changes([1.0, 1.01, 1.0, 1.2, 1.21, 1.2, 1.2, 1.0, 1.0, 1.01])] == [3, 7]


@pytest.mark.parametrize("values", [[], [2.0], [2.0, 3.0], [2.0] * 9, [1.98, 1.99, 1.98, 1.99, 1.98, 2.5]])
def test_an_outlier_or_a_few_values_are_no_change(values: list[float]) -> None:
    assert changes(values) == ()


_LIKE = [1.98, 1.97, 1.99, 1.98, 1.97, 1.98, 1.99, 1.98, 1.97, 1.98, 1.99, 1.97, 1.98, 1.98, 1.97, 1.99, 1.98, 1.98]


@pytest.mark.parametrize("values", [[*_LIKE, *_LIKE, 2.18], [*_LIKE, 2.18, *_LIKE], [*_LIKE, 2.18, *_LIKE, 2.2, 1.98]])
def test_a_single_slow_run_is_not_a_change(values: list[float]) -> None:
    assert changes(values) == ()


@pytest.mark.parametrize("slow", [(), (4, 30)])
def test_levels_of_a_long_history_are_found_despite_slow_runs(slow: tuple[int, ...]) -> None:
    """Runs far from most others count as well; the means are of the unchanged values."""
    levels = [*_LIKE, *_LIKE[:6], *(value * 1.1 for value in _LIKE[:10]), *(value * 1.2 for value in _LIKE[:10])]
    values = [value * (1.1 if index in slow else 1) for index, value in enumerate(levels)]
    result = changes(values)
    assert [one.at for one in result] == [24, 34]
    assert result[0].before == pytest.approx(fmean(values[:24]))
    assert result[1].after == pytest.approx(fmean(values[34:]))


@pytest.mark.parametrize("values", [[*_LIKE, *_LIKE, *[2.08, 2.07, 2.09, 2.08]], [*[1.98] * 20, *[2.08] * 3]])
def test_the_newest_runs_of_a_long_history_may_be_a_change(values: list[float]) -> None:
    (change,) = changes(values)
    assert change.at == values.index(2.08)


def test_rates_of_changes(record_property: Callable[[str, object], None]) -> None:
    """A change is reported in at most 20 of 1,000 noisy histories, 4 of 100 with outliers, and most of 200 with one."""
    numbers = random.Random(5)
    alarms = sum(bool(changes([numbers.gauss(2, 0.02) for _ in range(12)])) for _ in range(1000))
    detected = sum(
        any(
            change.at == 5
            for change in changes([numbers.gauss(2, 0.02) * (1.06 if index >= 5 else 1) for index in range(8)])
        )
        for _ in range(200)
    )
    often = [[numbers.gauss(2, 0.012) * (1.1 if numbers.random() < 0.05 else 1) for _ in range(30)] for _ in range(100)]
    by_outliers = sum(bool(changes(values)) for values in often)
    record_property("false alarms in 1000", alarms)
    record_property("by outliers in 100", by_outliers)
    record_property("found of 200", detected)
    assert alarms <= 20
    assert by_outliers <= 4
    assert detected >= 150


def chart(made: Chart | None) -> Chart:
    assert made is not None
    return made


def test_the_steps_of_a_run() -> None:
    made = chart(step_chart(RESULT))
    assert made.bands[0].points[0][1:] == (1.90, 2.06)
    assert [rule.label for rule in made.rules] == ["published 1.98 s"]
    steps, counts = made.series
    assert len(steps.points) == 50
    assert (counts.points[0].x, counts.points[0].y, counts.points[0].label) == (49, 1.974, "1.974 s")
    assert made.y.high < 3, "the first step does not press the rest into one line"
    assert "iteration 0 with 41.2 s" in made.notes[0]
    assert "last step) is 1.974 s" in made.summary


def test_the_result_is_a_line_over_its_steps() -> None:
    made = chart(step_chart(with_changes(RESULT, rule=ResultRule("mean", "README", 35, 44))))
    assert [point.x for point in made.series[1].points] == [35, 44]


def test_a_long_run_keeps_its_slowest_step() -> None:
    times = tuple((index, 2.2 if index == 1234 else 2.0) for index in range(5000))
    steps = chart(step_chart(with_changes(RESULT, step_times_s=times, steps_total=5000))).series[0].points
    assert len(steps) <= 400
    assert max(point.high or 0 for point in steps) == 2.2


def test_a_run_without_steps_or_estimate() -> None:
    assert step_chart(with_changes(RESULT, step_times_s=())) is None
    made = chart(step_chart(with_changes(RESULT, plan=replace(PLAN, estimate=None))))
    assert not made.bands
    assert not made.rules


def at_scale(gpus: int, seconds: float, name: str = "") -> RunResult:
    plan = replace(PLAN, selection=replace(NEMOTRON, scale=gpus), parallelism=replace(PLAN.parallelism, gbs=4 * gpus))
    return make_result(name or f"at{gpus}{seconds}", seconds, plan=plan)


def test_points_over_gpus() -> None:
    points = over_scale(CATALOG, NEMOTRON)
    runs = [at_scale(16, 2.0), at_scale(16, 2.1), at_scale(64, 2.2), with_changes(at_scale(32, 9.9), stage="failed")]
    made = chart(scale_chart(points, runs, RESULT))
    of = {line.role: line.points for line in made.series}
    assert [(point.x, point.y) for point in of["measured"]] == [(16, pytest.approx(2.05)), (64, 2.2)]
    assert (of["measured"][0].low, of["measured"][0].high) == (2.0, 2.1)
    assert [point.label for point in of["this"]] == ["1.974 s"]
    assert (64, 1.98) in [(point.x, point.y) for point in of["published"]]
    assert len(made.bands[0].points) == len(points)
    assert scale_chart((), [], None) is None


def test_a_run_is_among_its_repeats_and_not_drawn_twice() -> None:
    own = at_scale(64, 2.0, "own")
    alone = chart(scale_chart((), [own, at_scale(16, 2.0)], own))
    assert [point.x for point in alone.series[0].points] == [16]
    repeated = chart(scale_chart((), [own, at_scale(64, 2.2)], own))
    assert repeated.series[0].points[0].y == pytest.approx(2.1)


def test_efficiency_over_gpus() -> None:
    runs = [
        make_result(f"r{index}", seconds, replace(NEMOTRON, scale=gpus)) for index, (gpus, seconds) in enumerate(SCALES)
    ]
    (curve,) = scaling_curves(runs)
    drawn_chart = efficiency_chart(curve)
    published, measured = drawn_chart.series
    assert [(point.x, point.y) for point in measured.points] == [(16, 100.0), (64, pytest.approx(80.0))]
    assert published.points[1].y == pytest.approx(100 * 1.98 / 1.98)
    assert "80.0 %" in drawn_chart.summary
    assert "100.0 %" in drawn_chart.summary


def test_runs_over_time() -> None:
    runs = [
        make_result(f"r{index}", 2.0 if index < 4 else 2.2, submitted_at=1_760_000_000 + index * DAY)
        for index in range(8)
    ]
    made = chart(history_chart(runs[::-1]))
    (mark,) = [rule for rule in made.rules if rule.role == "change"]
    assert mark.label == "10 % slower"
    assert mark.at == pytest.approx(1_760_000_000 + 3.5 * DAY)
    assert "from run r4 on" in made.summary
    assert history_chart(runs[:1]) is None
    assert "no change" in chart(history_chart(runs[:4])).summary


@pytest.mark.parametrize("steps", [100, 1000])
def test_steps_outside_the_chart_are_counted_and_missing_marks_are_not_mentioned(steps: int) -> None:
    """Medians of neighbours hide slow steps, and charts in a terminal have no arrows."""
    output_text = "1 step is outside the chart: iteration 0 with 55 s."
    two = "2 steps are outside the chart; the slowest is iteration 0 with 55 s."
    thinned = ("Each point is the median of up to 3 steps; its line spans all of them, or ends at the edge.",)
    for slow, text in (([55.0], output_text), ([55.0, 50.0], two)):
        notes = chart(step_chart(make_result("a", [*slow, *[1.98] * (steps - len(slow))]))).notes
        assert notes == (*(thinned if steps > 400 else ()), text)
    assert chart(step_chart(make_result("a", 1.98))).notes == ()
