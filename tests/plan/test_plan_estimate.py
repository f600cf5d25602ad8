"""Where an estimate comes from, how wide its band is, and when there is none."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from llmb_tui.plan.plan import Estimate, Plan, Problem

PlanOf = Callable[..., Plan]
OTHER_RELEASE = math.hypot(4, 10)


def half_pct(estimate: Estimate) -> float:
    """Half the band in per cent, the same above and below."""
    above = 100 * (estimate.high_s / estimate.step_time_s - 1)
    assert above == pytest.approx(100 * (1 - estimate.low_s / estimate.step_time_s))
    return above


def estimate_of(plan: Plan) -> Estimate:
    assert plan.estimate is not None, plan.problems
    return plan.estimate


def why_none(plan: Plan) -> Problem:
    assert plan.estimate is None
    assert plan.gpu_hours is None
    (problem,) = [p for p in plan.problems if p.field == "estimate"]
    return problem


def test_a_published_row_names_itself(plan_of: PlanOf) -> None:
    estimate = estimate_of(plan_of("nemotron4@25.04 15b h100 fp8", 64))
    assert estimate.anchor == "nemotron4@25.04 15b fp8, 64 x H100, 1.98 s"


@pytest.mark.parametrize(("dtype", "scale", "step"), [("bf16", 256, 4.36), ("fp8", 2048, 3.05)])
def test_the_same_configuration_of_another_recipe(plan_of: PlanOf, dtype: str, scale: int, step: float) -> None:
    plan = plan_of(f"nemotron4-340b@25.12 340b h100 {dtype}", scale)
    estimate = estimate_of(plan)
    assert plan.published is None
    assert estimate.method == "other_release"
    assert estimate.step_time_s == step
    assert half_pct(estimate) == pytest.approx(OTHER_RELEASE)
    assert "nemotron4@25.04" in estimate.anchor


@pytest.mark.parametrize(
    ("dtype", "scale", "strong", "step"),
    [("bf16", 128, False, 2.189), ("fp8", 512, False, 1.549), ("bf16", 256, True, 16.58), ("fp8", 512, True, 5.668)],
)
def test_results_of_an_earlier_release_of_the_same_recipe(
    plan_of: PlanOf, dtype: str, scale: int, strong: bool, step: float
) -> None:
    plan = plan_of(f"nemotron4-340b@25.12 340b gb200 {dtype}", scale, strong_scaling=strong)
    estimate = estimate_of(plan)
    assert plan.published is None
    assert (estimate.method, estimate.step_time_s) == ("other_release", step)
    assert half_pct(estimate) == pytest.approx(OTHER_RELEASE)
    assert "@25.05" in estimate.anchor


def test_the_same_configuration_made_by_hand_counts_as_another_release(plan_of: PlanOf) -> None:
    plan = plan_of("nemotron4@25.04 340b gb200 bf16", 128, pp=4, gbs=32)
    assert estimate_of(plan).method == "other_release"
    assert estimate_of(plan).step_time_s == 2.189
    assert not plan.launchable


def test_values_by_hand_that_are_those_of_a_row_are_the_row(plan_of: PlanOf) -> None:
    plan = plan_of("nemotron4@25.04 15b h100 bf16", 64, tp=2, pp=1, vp=1, ep=1, gbs=256)
    assert plan.published is not None
    assert estimate_of(plan).method == "published"


def test_a_row_changed_by_hand_is_not_published(plan_of: PlanOf) -> None:
    plan = plan_of("nemotron4@25.04 340b h100 bf16", 256, vp=1)
    assert plan.parallelism.vp is None
    assert plan.published is None
    assert plan.printed is not None
    assert plan.printed.vp is None
    assert plan.launchable
    assert why_none(plan).severity == "warning"


def test_between_two_published_scales_log_log(plan_of: PlanOf) -> None:
    # Halfway between 64 GPUs (1.98 s) and 256 (2.00 s) would be 128; 96 lies log2(1.5) above 64, below 128 (1.99 s).
    estimate = estimate_of(plan_of("nemotron4@25.04 15b h100 fp8", 96))
    assert estimate.method == "interpolated"
    assert estimate.step_time_s == pytest.approx(1.98 * (1.99 / 1.98) ** math.log2(1.5), rel=1e-12)
    assert half_pct(estimate) == pytest.approx(math.hypot(4, 2))
    assert estimate.anchor == "between 64 (1.98 s) and 128 (1.99 s) GPUs, nemotron4@25.04"


def test_between_the_scales_of_another_release(plan_of: PlanOf) -> None:
    estimate = estimate_of(plan_of("nemotron4-340b@25.12 340b h100 fp8", 384))
    assert estimate.method == "interpolated"
    assert estimate.step_time_s == pytest.approx(2.93 * (2.97 / 2.93) ** math.log2(1.5), rel=1e-12)
    assert half_pct(estimate) == pytest.approx(math.hypot(4, 10, 2))


def test_beyond_the_last_scale_with_the_slope_of_the_last_two(plan_of: PlanOf) -> None:
    estimate = estimate_of(plan_of("nemotron4@25.04 15b h100 bf16", 3072))
    doublings = math.log2(1.5)
    assert estimate.method == "extrapolated"
    assert estimate.step_time_s == pytest.approx(2.78 * (2.78 / 2.74) ** doublings, rel=1e-12)
    assert half_pct(estimate) == pytest.approx(math.hypot(4, 4 * doublings))
    assert estimate.anchor == "from 1024 (2.74 s) and 2048 (2.78 s) GPUs, nemotron4@25.04"


def test_the_slope_is_at_most_three_per_cent_a_doubling(plan_of: PlanOf) -> None:
    # 11.31 s on 1152 and 12.35 s on 2304 GPUs: 9 % a doubling.
    estimate = estimate_of(plan_of("llama3.1@24.11 405b h100 fp8", 4608))
    assert estimate.step_time_s == pytest.approx(12.35 * 1.03)


def test_a_falling_curve_is_taken_as_level(plan_of: PlanOf) -> None:
    # 14.66, 14.67, 14.68, 14.67, 14.65, 14.66 s: between 256 and 512 it falls; the first two rise.
    estimate = estimate_of(plan_of("llama3.1@25.04 70b h100 bf16", 4096))
    assert estimate.step_time_s == pytest.approx(14.66 * (14.66 / 14.65))
    below = estimate_of(plan_of("nemotron4@25.04 15b h100 bf16", 8))
    assert below.step_time_s == 2.66


def test_below_the_first_scale_the_step_is_no_longer_than_there(plan_of: PlanOf) -> None:
    estimate = estimate_of(plan_of("llama3.1@25.04 405b h100 fp8", 256))
    assert estimate.method == "extrapolated"
    assert estimate.step_time_s == pytest.approx(12.37 / (12.42 / 12.37))
    assert half_pct(estimate) == pytest.approx(math.hypot(4, 4))


def test_a_short_way_beyond_still_costs_two_per_cent(plan_of: PlanOf) -> None:
    estimate = estimate_of(plan_of("nemotron4@25.04 15b h100 bf16", 2056))
    assert half_pct(estimate) == pytest.approx(math.hypot(4, 2))


def test_more_than_twice_beyond_there_is_no_number(plan_of: PlanOf) -> None:
    assert estimate_of(plan_of("nemotron4@25.04 15b h100 bf16", 4096)).method == "extrapolated"
    problem = why_none(plan_of("nemotron4@25.04 15b h100 bf16", 4104))
    assert "16 to 2048" in problem.reason


def test_one_point_is_held_level(plan_of: PlanOf) -> None:
    # Strong scaling has another batch for each GPU on every scale, so its curves have one point each.
    plan = plan_of("nemotron4-340b@25.12 340b gb200 bf16", 96, gbs=384, strong_scaling=True)
    estimate = estimate_of(plan)
    assert estimate.method == "extrapolated"
    assert estimate.step_time_s == 32.66
    assert half_pct(estimate) == pytest.approx(math.hypot(4, 10, 2))
    assert estimate.anchor == "from 128 (32.66 s) GPUs alone, nemotron4-340b@25.05"


@pytest.mark.parametrize("gpu", ["b200", "gb300"])
@pytest.mark.parametrize("strong", [False, True])
def test_a_gpu_without_results_has_no_number_and_says_so(plan_of: PlanOf, gpu: str, strong: bool) -> None:
    plan = plan_of(f"nemotron4-340b@25.12 340b {gpu} fp8", 128, strong_scaling=strong)
    problem = why_none(plan)
    assert plan.launchable
    assert problem.severity == "warning"
    assert gpu.upper() in problem.reason
    assert "verdict" in problem.fix


def test_proxies_are_points_and_no_curve(plan_of: PlanOf) -> None:
    # 62 layers are published on 128 GPUs; the same layout on 256 is not guessed from that.
    plan = plan_of("llama3.1@25.04 405b h100 bf16", 256, layers=62, pp=4, gbs=256)
    assert plan.scaling == "proxy"
    assert plan.parallelism.ga == 64
    assert "fewer layers" in why_none(plan).reason


def test_another_batch_or_layout_has_no_number(plan_of: PlanOf) -> None:
    for own in ({"gbs": 512}, {"tp": 4}, {"seq_len": 8192}, {"mbs": 1}):
        plan = plan_of("nemotron4@25.04 15b h100 bf16", 64, **own)
        assert plan.launchable, plan.problems
        assert "layout and batch" in why_none(plan).reason


def test_what_cannot_run_has_no_number(plan_of: PlanOf) -> None:
    plan = plan_of("grok1@25.02 314b h100 bf16", 768)
    assert plan.parallelism.ga is not None
    assert why_none(plan).severity == "note"


def test_gpu_hours_follow_the_steps(plan_of: PlanOf) -> None:
    assert plan_of("nemotron4@25.04 15b h100 bf16", 64).gpu_hours == pytest.approx(64 * 50 * 2.67 / 3600)
    assert plan_of("nemotron4@25.04 15b h100 bf16", 64, steps=100).gpu_hours == pytest.approx(64 * 100 * 2.67 / 3600)
