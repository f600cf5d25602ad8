from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llmb_tui.plan.plan import Plan
from llmb_tui.watch.progress import WARM_UP_STEPS, fold
from llmb_tui.watch.state import Progress, Step


def steps(*seconds: float | None, first: int = 0, total: int = 50) -> list[Step]:
    return [Step(first + n, total, step_time_s=value) for n, value in enumerate(seconds)]


def test_nothing_new_changes_nothing(plan: Plan) -> None:
    progress = Progress(steps_total=50)
    assert fold(progress, [], plan) is progress


def test_the_median_leaves_out_the_warm_up(plan: Plan) -> None:
    progress = fold(Progress(), steps(30, 9, 5, 3, 2.5, 2.0, 2.2, 2.1), plan)
    assert WARM_UP_STEPS == 5
    assert progress.median_s == 2.1
    assert (progress.steps_done, progress.steps_total) == (8, 50)
    assert progress.step_times_s[0] == (0, 30)


def test_before_the_warm_up_is_over_there_is_no_median_but_a_speed(plan: Plan) -> None:
    progress = fold(Progress(), steps(30, 4), plan)
    assert progress.median_s is None
    assert progress.tokens_per_s == pytest.approx(256 * 4096 / 4)


def test_a_run_that_continues_from_a_checkpoint_warms_up_as_well(plan: Plan) -> None:
    progress = fold(Progress(), steps(30, 9, 5, 3, 2.5, 2.0, first=25), plan)
    assert progress.median_s == 2.0
    assert progress.steps_done == 31


def test_speed_and_utilisation_follow_from_the_median(plan: Plan) -> None:
    progress = fold(Progress(), steps(*[2.0] * 10), plan)
    assert progress.tokens_per_s == pytest.approx(524_288)
    # 256 samples * 3.85e14 FLOPs / (2 s * 64 GPUs) = 770 TFLOPS of 1979
    assert progress.mfu_pct == pytest.approx(100 * 770 / 1979)


def test_without_an_estimate_there_is_no_utilisation(plan: Plan) -> None:
    progress = fold(Progress(), steps(*[2.0] * 10), replace(plan, estimate=None))
    assert progress.mfu_pct is None
    assert progress.tokens_per_s is not None


def test_the_spread_is_half_the_interquartile_range_over_the_median(plan: Plan) -> None:
    progress = fold(Progress(), steps(*[9] * 5, 1.0, 2.0, 3.0, 4.0, 5.0), plan)
    assert progress.spread == pytest.approx((4.0 - 2.0) / 2 / 3.0)
    assert fold(Progress(), steps(*[9] * 5, 1.0, 2.0), plan).spread is None


def test_a_step_without_a_time_counts_as_done_only(plan: Plan) -> None:
    progress = fold(Progress(), steps(None, 2.0), plan)
    assert progress.step_times_s == ((1, 2.0),)
    assert progress.steps_done == 2


def test_a_step_that_is_given_again_replaces_the_earlier(plan: Plan) -> None:
    progress = fold(fold(Progress(), steps(1.0, 2.0, 3.0), plan), [Step(2, 50, step_time_s=4.0)], plan)
    assert progress.step_times_s == ((0, 1.0), (1, 2.0), (2, 4.0))


@pytest.mark.parametrize("cut", range(6))
def test_after_a_restart_only_the_steps_since_then_count(plan: Plan, cut: int) -> None:
    whole = [*steps(9.0, 9.0, 9.0), *steps(1.0, 2.0)]
    progress = fold(fold(Progress(), whole[:cut], plan), whole[cut:], plan)
    assert progress.step_times_s == ((0, 1.0), (1, 2.0))
    assert (progress.steps_done, progress.last) == (2, whole[-1])


@pytest.mark.parametrize("cut", [0, 3, 6, 7, 9])
def test_a_further_start_from_a_checkpoint_replaces_repeated_steps(plan: Plan, cut: int) -> None:
    whole = [*steps(*[9.0] * 6), *steps(1.0, 2.0, first=4), *steps(3.0, first=5)]
    progress = fold(fold(Progress(), whole[:cut], plan), whole[cut:], plan)
    assert progress.step_times_s == (*((i, 9.0) for i in range(4)), (4, 1.0), (5, 3.0))
    assert (progress.steps_done, progress.again_at) == (6, (4, 5))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # the plan never changes
@given(st.lists(st.floats(0.1, 100), min_size=1, max_size=60), st.data())
def test_folding_in_two_parts_gives_the_same_progress(plan: Plan, seconds: list[float], data: st.DataObject) -> None:
    whole = steps(*seconds)
    cut = data.draw(st.integers(0, len(whole)))
    assert fold(fold(Progress(), whole[:cut], plan), whole[cut:], plan) == fold(Progress(), whole, plan)


def test_memory_stays_flat_and_the_first_hundred_steps_stay(plan: Plan) -> None:
    progress = Progress()
    for first in range(0, 20_000, 1000):
        progress = fold(progress, steps(*[2.0] * 1000, first=first, total=20_000), plan)
    assert len(progress.step_times_s) < 5000
    assert [index for index, _ in progress.step_times_s[:100]] == list(range(100))
    assert progress.step_times_s[-1][0] == 19_999
