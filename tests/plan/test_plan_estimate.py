"""Estimates: their sources, the width of their bands, and selections without an estimate."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.recipe import ResultTable
from llmb_tui.plan.make import plan
from llmb_tui.plan.plan import Estimate, Plan, Problem
from llmb_tui.plan.resolved import selections
from llmb_tui.plan.selection import Overrides, Selection
from tests.kit.runs import NEMOTRON

PlanOf = Callable[..., Plan]
OTHER_RELEASE = math.hypot(4, 10)
OTHER_VARIANT = math.hypot(OTHER_RELEASE, 12)


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


def without(catalog: Catalog, away: Callable[[ResultTable], bool]) -> Catalog:
    """The catalog without some of its published results."""
    recipes = [
        replace(recipe, results=tuple(table for table in recipe.results if not away(table)))
        for recipe in catalog.recipes
    ]
    return replace(catalog, recipes=tuple(recipes))


def test_the_anchor_of_a_published_row_is_that_row(plan_of: PlanOf) -> None:
    estimate = estimate_of(plan_of("nemotron4@25.04 15b h100 fp8", 64))
    assert estimate.anchor == "nemotron4@25.04 15b fp8, 64 × H100, 1.98 s"


@pytest.mark.parametrize(("dtype", "scale", "step"), [("bf16", 256, 4.36), ("fp8", 2048, 3.05)])
def test_the_same_configuration_of_another_recipe(plan_of: PlanOf, dtype: str, scale: int, step: float) -> None:
    plan = plan_of(f"nemotron4-340b@25.12 340b h100 {dtype}", scale)
    estimate = estimate_of(plan)
    assert plan.published is None
    assert estimate.method == "other_release"
    assert estimate.step_time_s == step
    assert half_pct(estimate) == pytest.approx(OTHER_VARIANT if dtype == "fp8" else OTHER_RELEASE)
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
    assert half_pct(estimate) == pytest.approx(OTHER_VARIANT if dtype == "fp8" else OTHER_RELEASE)
    assert "@25.05" in estimate.anchor


@pytest.mark.parametrize("selection", ["h100 fp8", "gb200 fp8", "gb200 fp8 strong", "h100 fp8 384"])
def test_an_estimate_from_another_precision_variant_has_a_note(plan_of: PlanOf, selection: str) -> None:
    gpu, _, *more = selection.split()
    scale = 384 if "384" in more else 256
    plan = plan_of(f"nemotron4-340b@25.12 340b {gpu} fp8", scale, strong_scaling="strong" in more)
    words = "is based on FP8 with delayed scaling; the recipe uses current scaling."
    assert words in estimate_of(plan).other_variant
    (problem,) = [p for p in plan.problems if words in p.reason]
    assert problem.severity == "note"
    assert plan.precision_variant == "current"


@pytest.mark.parametrize(
    "selection",
    ["nemotron4@25.04 340b h100 fp8", "nemotron4-340b@25.12 340b h100 bf16", "nemotron4@25.04 15b h100 bf16"],
)
def test_the_same_variant_is_not_mentioned(plan_of: PlanOf, selection: str) -> None:
    plan = plan_of(selection, 256)
    assert estimate_of(plan).other_variant == ""
    assert not [p for p in plan.problems if "scaling," in p.reason]


def test_the_same_precision_variant_takes_precedence_over_the_same_release(catalog: Catalog) -> None:
    """Rows of the same variant in another release precede rows of another variant in the recipe's release."""
    recipe = catalog.recipe("nemotron4@25.04")
    mixed = [table if table.dtype == "bf16" else replace(table, precision_variant="mx") for table in recipe.results]
    older = replace(recipe, release="25.03")
    both = replace(catalog, recipes=(replace(recipe, results=tuple(mixed)), older))
    estimate = estimate_of(plan(both, Selection("nemotron4", "25.04", "15b", "h100", "fp8", 64)))
    assert (estimate.method, estimate.other_variant) == ("other_release", "")
    alone = plan(replace(catalog, recipes=both.recipes[:1]), Selection("nemotron4", "25.04", "15b", "h100", "fp8", 64))
    assert "FP8 with MX scaling" in estimate_of(alone).other_variant


def test_an_equal_configuration_of_changed_values_counts_as_another_release(plan_of: PlanOf) -> None:
    plan = plan_of("nemotron4@25.04 340b gb200 bf16", 128, pp=4, gbs=32)
    assert estimate_of(plan).method == "other_release"
    assert estimate_of(plan).step_time_s == 2.189
    assert not plan.launchable


def test_changed_values_that_equal_a_row_are_the_row(plan_of: PlanOf) -> None:
    plan = plan_of("nemotron4@25.04 15b h100 bf16", 64, tp=2, pp=1, vp=1, ep=1, gbs=256)
    assert plan.published is not None
    assert estimate_of(plan).method == "published"


def test_a_row_with_a_changed_value_is_not_published(plan_of: PlanOf) -> None:
    plan = plan_of("nemotron4@25.04 340b h100 bf16", 256, vp=1)
    assert plan.parallelism.vp is None
    assert plan.published is None
    assert plan.printed is not None
    assert plan.printed.vp is None
    assert plan.launchable
    estimate = estimate_of(plan)
    assert (estimate.method, estimate.basis) == ("modelled", "the same model in another layout")
    assert estimate.breakdown is not None
    # Without virtual stages the bubble is 7/16 of the work in the stages instead of 7/192.
    published = estimate_of(plan_of("nemotron4@25.04 340b h100 bf16", 256)).breakdown
    assert published is not None
    assert estimate.breakdown.bubble_s == pytest.approx(12 * published.bubble_s, rel=0.01)


def test_between_two_published_scales_log_log(plan_of: PlanOf) -> None:
    # Halfway between 64 GPUs (1.98 s) and 256 (2.00 s) would be 128; 96 lies log2(1.5) above 64, below 128 (1.99 s).
    estimate = estimate_of(plan_of("nemotron4@25.04 15b h100 fp8", 96))
    assert estimate.method == "interpolated"
    assert estimate.step_time_s == pytest.approx(1.98 * (1.99 / 1.98) ** math.log2(1.5), rel=1e-12)
    assert half_pct(estimate) == pytest.approx(math.hypot(4, 2))
    assert estimate.anchor == "between 64 (1.98 s) and 128 (1.99 s) GPUs, nemotron4@25.04"


def test_between_the_scales_of_another_release(plan_of: PlanOf) -> None:
    for dtype, left, right, variant in (("bf16", 4.36, 4.39, 0), ("fp8", 2.93, 2.97, 12)):
        estimate = estimate_of(plan_of(f"nemotron4-340b@25.12 340b h100 {dtype}", 384))
        assert estimate.method == "interpolated"
        assert estimate.step_time_s == pytest.approx(left * (right / left) ** math.log2(1.5), rel=1e-12)
        assert half_pct(estimate) == pytest.approx(math.hypot(4, 10, 2, variant))


def test_beyond_the_last_scale_with_the_slope_of_the_last_two(plan_of: PlanOf) -> None:
    estimate = estimate_of(plan_of("nemotron4@25.04 15b h100 bf16", 3072))
    doublings = math.log2(1.5)
    assert estimate.method == "extrapolated"
    assert estimate.step_time_s == pytest.approx(2.78 * (2.78 / 2.74) ** doublings, rel=1e-12)
    assert half_pct(estimate) == pytest.approx(math.hypot(4, 4 * doublings))
    assert estimate.anchor == "from 1,024 (2.74 s) and 2,048 (2.78 s) GPUs, nemotron4@25.04"


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


def test_beyond_twice_the_largest_scale_the_estimate_is_still_extrapolated(plan_of: PlanOf) -> None:
    twice, four_times, eight_times = (
        estimate_of(plan_of("nemotron4@25.04 15b h100 bf16", scale)) for scale in (4096, 8192, 16384)
    )
    assert {each.method for each in (twice, four_times, eight_times)} == {"extrapolated"}
    assert half_pct(four_times) == pytest.approx(math.hypot(4, 4 + 2))
    assert half_pct(eight_times) == pytest.approx(math.hypot(4, 4 + 2 + 2))
    assert twice.step_time_s < four_times.step_time_s < eight_times.step_time_s < 1.05 * twice.step_time_s
    assert "2,048 (2.78 s) GPUs" in four_times.anchor


def test_a_single_point_is_extrapolated_as_constant(plan_of: PlanOf) -> None:
    # Strong scaling has another batch for each GPU on every scale, so its curves have one point each.
    plan = plan_of("nemotron4-340b@25.12 340b gb200 bf16", 96, gbs=384, strong_scaling=True)
    estimate = estimate_of(plan)
    assert estimate.method == "extrapolated"
    assert estimate.step_time_s == 32.66
    assert half_pct(estimate) == pytest.approx(math.hypot(4, 10, 2))
    assert estimate.anchor == "from 128 (32.66 s) GPUs only, nemotron4-340b@25.05"


def test_a_gpu_type_is_modelled_from_another_of_the_same_generation(plan_of: PlanOf) -> None:
    b200 = estimate_of(plan_of("nemotron4-340b@25.12 340b b200 bf16", 128))
    gb200 = estimate_of(plan_of("nemotron4-340b@25.12 340b gb200 bf16", 128))
    assert (b200.method, b200.basis) == ("modelled", "the same model on GB200")
    assert half_pct(b200) == pytest.approx(math.hypot(4, 10, 20))
    slower = b200.step_time_s / (gb200.step_time_s * 2450 / 2250)
    assert 1 < slower < 1.1, "by the peak, and by a network that has to do what NVLink does for 72 GPUs"
    assert "nemotron4-340b@25.05 340b bf16, 128 × GB200, 2.189 s" in b200.anchor


@pytest.mark.parametrize("strong", [False, True])
def test_a_generation_without_results_has_a_number_with_a_wide_band(plan_of: PlanOf, strong: bool) -> None:
    plan = plan_of("nemotron4-340b@25.12 340b gb300 fp8", 128, strong_scaling=strong)
    estimate = estimate_of(plan)
    assert plan.launchable
    assert estimate.basis == "the same model on H100, another generation"
    assert half_pct(estimate) > 35
    assert not [p for p in plan.problems if "never published" in p.reason], "the recipe lists it"


def test_an_estimate_without_rows_uses_other_models_on_the_same_gpu_type(plan_of: PlanOf) -> None:
    """GB200 is some 28 % farther from its peaks than the model predicts, which is fitted on H100."""
    estimate = estimate_of(plan_of("nemotron4@25.04 15b gb200 bf16", 64))
    assert estimate.basis == "other models on GB200"
    assert half_pct(estimate) == pytest.approx(math.hypot(4, 10, 15, 20))
    h100 = estimate_of(plan_of("nemotron4@25.04 15b h100 bf16", 64))
    assert 1.2 < estimate.step_time_s / (h100.step_time_s * 989 / 2450) < 1.4
    assert estimate.anchor.startswith("13 step times, one of them nemotron4-340b@25.05 340b bf16, 128 × GB200, 2.189 s")


def test_an_anchor_from_a_worked_example_is_marked(plan_of: PlanOf) -> None:
    plan = plan_of("nemotron4-340b@25.12 340b h100 bf16", 256, gbs=128)
    assert plan.published is None
    assert "nemotron4-340b@25.12 340b bf16, 256 × H100, 4.31 s, worked example" in estimate_of(plan).anchor
    assert half_pct(estimate_of(plan)) == pytest.approx(math.hypot(4, 10)), "its own release, another batch"


def test_proxies_are_points_and_no_curve(plan_of: PlanOf) -> None:
    # 62 layers are published on 128 GPUs with 19.62 s; the same layout on 256 gives no curve, but the model applies.
    plan = plan_of("llama3.1@25.04 405b h100 bf16", 256, layers=62, pp=4, gbs=256)
    assert plan.scaling == "proxy"
    assert plan.parallelism.ga == 64
    estimate = estimate_of(plan)
    assert estimate.method == "modelled"
    assert estimate.days_per_1t_tokens is None
    assert estimate.step_time_s == pytest.approx(19.62, rel=0.01)


@pytest.mark.parametrize(
    ("own", "basis", "factor", "half"),
    [
        ({"gbs": 512}, "the same layout with another batch", 2, (10,)),
        ({"tp": 4}, "the same model in another layout", 1, (15,)),
        ({"mbs": 1}, "the same model in another layout", 1, (15,)),
        ({"seq_len": 8192}, "the same model with another sequence length", 2.05, (8,)),
        ({"layers": 16}, "the same model with other layers", 0.55, (8,)),
        ({"layers": 16, "gbs": 512}, "the same model with other layers", 1.1, (8, 10)),
    ],
)
def test_another_batch_or_layout_is_measured_against_the_row(
    plan_of: PlanOf, own: dict[str, int], basis: str, factor: float, half: tuple[float, ...]
) -> None:
    plan = plan_of("nemotron4@25.04 15b h100 bf16", 64, **own)
    estimate = estimate_of(plan)
    assert plan.launchable, plan.problems
    assert (estimate.method, estimate.basis) == ("modelled", basis)
    assert estimate.anchor == "nemotron4@25.04 15b bf16, 64 × H100, 2.67 s"
    assert estimate.step_time_s == pytest.approx(2.67 * factor, rel=0.03)
    assert half_pct(estimate) == pytest.approx(math.hypot(4, *half))
    warned = [p.severity for p in plan.problems if "never published" in p.reason]
    assert warned == (["note"] if "another layout" in basis else []), "a poor one can be slower than the band"


def test_a_layout_across_nodes_is_much_slower(plan_of: PlanOf) -> None:
    inside, across = (estimate_of(plan_of("nemotron4@25.04 15b h100 bf16", 64, tp=tp)) for tp in (8, 16))
    assert across.step_time_s > 1.5 * inside.step_time_s
    assert inside.breakdown is not None
    assert across.breakdown is not None
    assert across.breakdown.communication_s > 5 * inside.breakdown.communication_s


def test_an_unpublished_precision_is_estimated_from_the_other_precision(catalog: Catalog) -> None:
    only_bf16 = without(catalog, lambda table: (table.size, table.dtype) == ("15b", "fp8"))
    run_plan = plan(only_bf16, NEMOTRON)
    assert estimate_of(run_plan).basis == "the same model in bf16"
    assert half_pct(estimate_of(run_plan)) == pytest.approx(math.hypot(4, 12))
    assert estimate_of(run_plan).low_s < 1.98 < estimate_of(run_plan).high_s, "the published value"


def test_an_unpublished_model_is_estimated_from_other_models(catalog: Catalog) -> None:
    others = without(catalog, lambda table: table.size == "15b")
    run_plan = plan(others, Selection("nemotron4", "25.04", "15b", "h100", "bf16", 64))
    assert estimate_of(run_plan).basis == "other models on H100"
    assert half_pct(estimate_of(run_plan)) == pytest.approx(math.hypot(4, 12))
    assert estimate_of(run_plan).low_s < 2.67 < estimate_of(run_plan).high_s, "the published value"


def test_a_mixture_of_experts_scales_with_the_flops_of_its_published_rows(plan_of: PlanOf) -> None:
    plan = plan_of("grok1@25.02 314b h100 bf16", 1024, tp=8)
    estimate = estimate_of(plan)
    assert estimate.method == "modelled"
    assert estimate.step_time_s == pytest.approx(21.2), "constant MFU"
    assert half_pct(estimate) == pytest.approx(math.hypot(4, 15))
    assert estimate_of(plan_of("grok1@25.02 314b h100 bf16", 1024, gbs=4096)).step_time_s == pytest.approx(2 * 21.2)


def test_experts_on_another_gpu_have_no_number(plan_of: PlanOf) -> None:
    assert "experts" in why_none(plan_of("grok1@25.02 314b gb200 bf16", 1024)).reason


def test_a_mixture_of_experts_without_published_rows_has_no_estimate(catalog: Catalog) -> None:
    others = without(catalog, lambda table: table.size == "314b")
    run_plan = plan(others, Selection("grok1", "25.02", "314b", "h100", "bf16", 1024))
    assert "experts" in why_none(run_plan).reason
    assert why_none(run_plan).severity == "warning"


def test_a_sequence_length_far_from_all_published_ones_has_no_estimate(plan_of: PlanOf) -> None:
    assert "no similar configuration" in why_none(plan_of("nemotron4@25.04 15b h100 bf16", 64, seq_len=65536)).reason


def test_without_facts_of_the_hardware_only_published_scales_answer(catalog: Catalog) -> None:
    bare = Catalog(catalog.recipes)
    row = plan(bare, Selection("nemotron4", "25.04", "15b", "h100", "bf16", 64))
    assert (estimate_of(row).method, estimate_of(row).breakdown) == ("published", None)
    assert estimate_of(plan(bare, Selection("nemotron4", "25.04", "15b", "h100", "bf16", 96))).step_time_s == 2.67
    run_plan = plan(bare, Selection("nemotron4", "25.04", "15b", "h100", "bf16", 64, overrides=Overrides(gbs=512)))
    assert "only the peak of H100 is known" in why_none(run_plan).reason


def test_strong_scaling_with_a_custom_batch_has_an_estimate(plan_of: PlanOf) -> None:
    assert "global batch" in why_none(plan_of("nemotron4@25.04 15b h100 bf16", 64, strong_scaling=True)).reason
    own = plan_of("nemotron4@25.04 15b h100 bf16", 64, strong_scaling=True, gbs=512)
    assert not own.launchable
    assert estimate_of(own).basis == "the same layout with another batch"


def test_the_parts_of_a_step_add_up_to_it(catalog: Catalog) -> None:
    for recipe in catalog.recipes:
        for selection in selections(recipe):
            estimate = estimate_of(plan(catalog, selection))
            parts = estimate.breakdown
            assert parts is not None
            assert min(parts.compute_s, parts.communication_s, parts.bubble_s, parts.optimizer_s) >= 0
            total = parts.compute_s + parts.communication_s + parts.bubble_s + parts.optimizer_s
            assert total == pytest.approx(estimate.step_time_s)
            assert parts.compute_s > 0.6 * total


def test_a_configuration_that_cannot_run_has_no_estimate(plan_of: PlanOf) -> None:
    plan = plan_of("grok1@25.02 314b h100 bf16", 768)
    assert plan.parallelism.ga is not None
    assert why_none(plan).severity == "note"


def test_gpu_hours_follow_the_steps(plan_of: PlanOf) -> None:
    assert plan_of("nemotron4@25.04 15b h100 bf16", 64).gpu_hours == pytest.approx(64 * 50 * 2.67 / 3600)
    assert plan_of("nemotron4@25.04 15b h100 bf16", 64, steps=100).gpu_hours == pytest.approx(64 * 100 * 2.67 / 3600)
