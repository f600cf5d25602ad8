"""Effect of a cluster's own runs on a plan: runs of the same configuration, and others by their ratio."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from llmb_tui.launch.procedures import PROCEDURES
from llmb_tui.plan.calibration import ClusterEstimate, ClusterResult, measured_here
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.selection import ProcedureId

PlanOf = Callable[..., Plan]
N15B = "nemotron4@25.04 15b h100 bf16"


def ran(
    run_id: str, plan: Plan, ratio: float, *, ended_at: float = 0.0, procedure: ProcedureId = "direct"
) -> ClusterResult:
    """A run that took `ratio` times what its plan expects."""
    assert plan.estimate is not None
    title = PROCEDURES[procedure].title
    return ClusterResult(run_id, plan, plan.estimate.step_time_s * ratio, ended_at, procedure, title)


def here(plan: Plan, *results: ClusterResult) -> ClusterEstimate:
    estimate = measured_here(plan, results)
    assert estimate is not None
    return estimate


def halves(found: ClusterEstimate) -> tuple[float, float]:
    """Half widths of the band in per cent, below and above."""
    return (
        100 * (1 - found.low_s / found.step_time_s),
        100 * (found.high_s / found.step_time_s - 1),
    )


def test_one_run_of_the_same_configuration(plan_of: PlanOf) -> None:
    plan = plan_of(N15B, 64)
    estimate = here(plan, ran("a", plan, 1.05))
    assert estimate.step_time_s == pytest.approx(2.67 * 1.05)
    assert halves(estimate) == pytest.approx((4, 4))
    assert estimate.runs == ("a",)
    assert estimate.basis == "1 run of this configuration on this cluster, our script"


@pytest.mark.parametrize(
    ("ratios", "half"), [((1.00, 1.01), 2), ((0.95, 1.05), 5), ((1.0, 1.0, 1.09), 100 * 0.06 / 1.03)]
)
def test_several_runs_their_mean_and_a_band_that_holds_all(
    plan_of: PlanOf, ratios: tuple[float, ...], half: float
) -> None:
    plan = plan_of(N15B, 64)
    results = [ran(f"r{i}", plan, ratio, ended_at=i) for i, ratio in enumerate(ratios)]
    estimate = here(plan, *results)
    assert estimate.step_time_s == pytest.approx(2.67 * sum(ratios) / len(ratios))
    assert halves(estimate) == pytest.approx((half, half))
    assert all(estimate.low_s <= result.step_time_s <= estimate.high_s * (1 + 1e-9) for result in results)
    assert estimate.runs == tuple(reversed([result.run_id for result in results])), "newest first"


@pytest.mark.parametrize("ratios", [(1.0, 1.0, 1.0, 1.0, 3.15), (*[1.0] * 9, 2.4)])
def test_a_run_with_a_slow_link_does_not_extend_the_band_below_zero(plan_of: PlanOf, ratios: tuple[float, ...]) -> None:
    plan = plan_of(N15B, 64)
    estimate = here(plan, *(ran(f"r{i}", plan, ratio) for i, ratio in enumerate(ratios)))
    assert estimate.low_s == pytest.approx(estimate.step_time_s / 10)
    assert estimate.high_s == pytest.approx(2.67 * max(ratios))


def test_runs_of_the_same_configuration_leave_the_others_out(plan_of: PlanOf) -> None:
    plan = plan_of(N15B, 64)
    estimate = here(plan, ran("same", plan, 1.0), ran("other", plan_of(N15B, 128), 2.0))
    assert estimate.runs == ("same",)
    assert estimate.step_time_s == pytest.approx(2.67)


def test_another_scale_is_scaled_by_how_much_longer_it_took(plan_of: PlanOf) -> None:
    plan = plan_of(N15B, 64)
    estimate = here(plan, ran("a", plan_of(N15B, 128), 1.05))
    assert estimate.step_time_s == pytest.approx(2.67 * 1.05)
    assert halves(estimate) == pytest.approx((4, 4)), (
        "a published estimate is only unsure about the cluster; now a run is"
    )
    assert "1 run of other configurations on H100" in estimate.basis
    assert "5.0 % longer than expected" in estimate.basis


@pytest.mark.parametrize(
    "other", ["nemotron4@25.04 340b h100 bf16", "nemotron4@25.04 15b h100 fp8", "llama3.1@25.04 70b h100 bf16"]
)
def test_runs_of_another_model_or_precision_give_a_wider_band(plan_of: PlanOf, other: str) -> None:
    plan = plan_of(N15B, 256)
    estimate = here(plan, ran("a", plan_of(other, 256), 0.96))
    assert estimate.step_time_s == pytest.approx(2.68 * 0.96)
    assert halves(estimate) == pytest.approx((math.hypot(4, 6),) * 2)
    assert "4.0 % less than expected" in estimate.basis


def test_the_same_model_and_precision_weigh_most(plan_of: PlanOf) -> None:
    plan = plan_of(N15B, 64)
    same, run_plan = plan_of(N15B, 128), plan_of("llama3.1@25.04 70b h100 fp8", 128)
    estimate = here(plan, ran("same", same, 1.02), ran("other", run_plan, 1.20))
    expected = 2.67 * math.exp((math.log(1.02) / 16 + math.log(1.20) / (16 + 36 + 36)) / (1 / 16 + 1 / 88))
    assert estimate.step_time_s == pytest.approx(expected)
    assert set(estimate.runs) == {"same", "other"}


def test_runs_that_disagree_widen_the_band_and_many_do_not_narrow_it(plan_of: PlanOf) -> None:
    plan = plan_of(N15B, 64)
    one = halves(here(plan, ran("a", plan_of(N15B, 128), 1.05)))
    many = halves(here(plan, *(ran(f"r{gpus}", plan_of(N15B, gpus), 1.05) for gpus in (16, 32, 128, 256, 512))))
    apart = halves(here(plan, ran("a", plan_of(N15B, 128), 1.0), ran("b", plan_of(N15B, 256), 1.1)))
    assert many == pytest.approx(one)
    assert apart[0] > one[0]


def test_calibration_removes_only_the_uncertainty_about_the_cluster(plan_of: PlanOf) -> None:
    plan = plan_of(N15B, 64)
    assert plan.estimate is not None
    step = plan.estimate.step_time_s
    wide = replace(plan, estimate=replace(plan.estimate, low_s=step * 0.85, high_s=step * 1.60, method="modelled"))
    low, high = halves(here(wide, ran("a", plan_of(N15B, 128), 1.0)))
    assert low == pytest.approx(math.sqrt(15**2 - 4**2 + 4**2))
    assert high == pytest.approx(60)


def test_a_run_with_a_less_certain_expectation_has_less_weight(plan_of: PlanOf) -> None:
    plan, run_plan = plan_of(N15B, 64), plan_of(N15B, 128)
    assert run_plan.estimate is not None
    step = run_plan.estimate.step_time_s
    unsure = replace(run_plan, estimate=replace(run_plan.estimate, low_s=step * 0.85, high_s=step * 1.15))
    low, _ = halves(here(plan, ran("a", unsure, 1.1)))
    assert low == pytest.approx(15)
    both = here(plan, ran("a", unsure, 1.1), ran("b", plan_of(N15B, 256), 1.0))
    assert both.step_time_s < 2.67 * 1.01


def test_other_gpu_types_and_runs_without_an_expectation_are_ignored(plan_of: PlanOf) -> None:
    plan = plan_of(N15B, 64)
    elsewhere = plan_of("nemotron4-340b@25.12 340b gb200 bf16", 128)
    blind = replace(plan_of(N15B, 128), estimate=None)
    assert measured_here(plan, []) is None
    assert (
        measured_here(plan, [ran("a", elsewhere, 1.0), ClusterResult("b", blind, 3.0, 0.0, "direct", "our script")])
        is None
    )


def test_a_measured_run_of_the_same_configuration_replaces_a_missing_estimate(plan_of: PlanOf) -> None:
    blind = replace(plan_of(N15B, 64), estimate=None)
    assert here(blind, ClusterResult("a", blind, 3.0, 0.0, "upstream", "NVIDIA's scripts")).step_time_s == 3.0
    assert measured_here(blind, [ran("b", plan_of(N15B, 128), 1.0)]) is None


@pytest.mark.parametrize("change", [{"mbs": 1}, {"gbs": 128}, {"layers": 16}])
def test_another_layout_or_batch_is_another_configuration(plan_of: PlanOf, change: dict[str, int]) -> None:
    plan = replace(plan_of(N15B, 64, **change), estimate=None)
    assert measured_here(plan_of(N15B, 64), [ClusterResult("a", plan, 1.0, 0.0, "direct", "our script")]) is None


def test_the_procedures_are_named(plan_of: PlanOf) -> None:
    plan = plan_of(N15B, 64)
    estimate = here(plan, ran("a", plan, 1.0), ran("b", plan, 1.0, procedure="upstream"))
    assert estimate.basis == "2 runs of this configuration on this cluster, our script and NVIDIA's scripts"


def test_a_band_never_reaches_zero(plan_of: PlanOf) -> None:
    plan = plan_of(N15B, 64)
    estimate = here(plan, ran("a", plan_of(N15B, 128), 0.1), ran("b", plan_of(N15B, 256), 9.0))
    assert 0 < estimate.low_s < estimate.step_time_s < estimate.high_s
