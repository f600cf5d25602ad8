"""Memory of one GPU: compared with two logs of real runs, and messages for counts above the GPU's or untried ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.plan.make import plan
from llmb_tui.plan.plan import Memory, Plan
from llmb_tui.plan.resolved import selections
from llmb_tui.plan.selection import Overrides, Selection
from tests.kit.runs import CATALOG

PlanOf = Callable[..., Plan]
N15B = "nemotron4@25.04 15b h100 bf16"
N340B = "nemotron4@25.04 340b h100 bf16"
L8B = "llama3.1@25.04 8b h100 bf16"
L405B = "llama3.1@24.11 405b h100"
GROK = "grok1@25.02 314b h100 bf16"


def memory(plan: Plan) -> Memory:
    assert plan.memory is not None
    return plan.memory


@pytest.mark.parametrize(
    ("names", "scale", "allocated", "peak"),
    [
        # dgxc-benchmarking v25.04, llama3.1/README.md, the log line under Expected Performance; its 12.39 s are BF16's.
        (L8B, 8, 44_271_689_728, 70_833_405_952),
        # dgxc-benchmarking v25.04, nemotron/README.md, the log line under Expected Performance.
        (N15B, 64, 34_466_545_664, 72_972_500_992),
    ],
)
def test_the_two_logged_runs(plan_of: PlanOf, names: str, scale: int, allocated: int, peak: int) -> None:
    counted = memory(plan_of(names, scale))
    assert counted.state_gb == pytest.approx(allocated / 1e9, rel=0.01)
    assert counted.peak_gb == pytest.approx(peak / 1e9, rel=0.05)


def test_the_example_of_a_plan(plan_of: PlanOf) -> None:
    counted = memory(plan_of(N15B, 64))
    assert (round(counted.state_gb, 1), round(counted.peak_gb, 1)) == (34.2, 70.8)
    assert (counted.capacity_gb, counted.verdict) == (80, "fits")


def test_every_published_configuration_fits_or_is_tight(catalog: Catalog) -> None:
    for recipe in catalog.recipes:
        for selection in selections(recipe):
            run_plan = plan(catalog, selection)
            assert memory(run_plan).verdict in ("fits", "tight"), selection
            assert not [p for p in run_plan.problems if p.field == "memory" and p.severity != "note"]


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, "fits"),  # 70.8 GB, 88 %
        ({"mbs": 4, "gbs": 256}, "needs recompute or sharding"),  # 104.3 GB
        ({"tp": 4}, "fits"),
        ({"tp": 1}, "needs recompute or sharding"),
    ],
)
def test_three_answers(plan_of: PlanOf, changes: dict[str, int], verdict: str) -> None:
    assert memory(plan_of(N15B, 64, **changes)).verdict == verdict


def test_the_limits_of_the_answers(plan_of: PlanOf) -> None:
    verdicts = {}
    for scale in (16, 32, 64, 128):
        counted = memory(plan_of(N15B, scale))
        verdicts[counted.peak_gb / counted.capacity_gb > 0.9] = counted.verdict
    assert verdicts == {True: "tight", False: "fits"}


def test_memory_above_the_capacity_is_a_warning_with_a_fix_and_no_error(plan_of: PlanOf) -> None:
    run_plan = plan_of(N15B, 64, mbs=4)
    (warning,) = [p for p in run_plan.problems if p.field == "memory"]
    assert warning.severity == "warning"
    assert "80 GB" in warning.reason
    assert "smaller MBS" in warning.fix
    assert run_plan.launchable


def test_memory_above_the_capacity_is_a_note_if_the_configuration_is_published(catalog: Catalog) -> None:
    """The count is too high for some layouts: NVIDIA has published 340b on 128 H100, for which 88 GB are counted."""
    recipe = catalog.recipe("nemotron4", "25.04")
    small = replace(recipe, gpus={"h100": replace(recipe.gpus["h100"], memory_gb=60)})
    selection = Selection("nemotron4", "25.04", "15b", "h100", "bf16", 64)
    run_plan = plan(Catalog((small,)), selection)
    assert memory(run_plan).verdict == "needs recompute or sharding"
    (note,) = [p for p in run_plan.problems if p.field == "memory"]
    assert (note.severity, "published configuration" in note.reason) == ("note", True)
    (warning,) = [
        p for p in plan(Catalog((small,)), replace(selection, overrides=Overrides(mbs=4))).problems
        if p.field == "memory"
    ]  # fmt: skip
    assert warning.severity == "warning"


def test_340b_on_half_the_smallest_listed_scale(plan_of: PlanOf) -> None:
    assert memory(plan_of(N340B, 128)).peak_gb == pytest.approx(88, abs=1)


def test_the_memory_of_a_mixture_of_experts_has_a_note_that_it_is_unverified(plan_of: PlanOf) -> None:
    run_plan = plan_of(GROK, 512)
    assert memory(run_plan).verdict == "fits"
    (note,) = [p for p in run_plan.problems if p.field == "memory"]
    assert note.severity == "note"
    assert "never compared with a run" in note.reason
    assert not [p for p in plan_of(N15B, 64).problems if p.field == "memory"]


def test_experts_are_split_by_expert_parallelism(plan_of: PlanOf) -> None:
    split, whole = memory(plan_of(GROK, 512)), memory(plan_of(GROK, 512, ep=1))
    assert whole.state_gb > 3 * split.state_gb


def test_the_size_of_master_weights_follows_from_the_presets_settings(plan_of: PlanOf) -> None:
    # 24.11 uses NeMo 1's own optimizer, which keeps two bytes less for each parameter where the weights are bf16.
    bf16, fp8 = memory(plan_of(f"{L405B} bf16", 576)), memory(plan_of(f"{L405B} fp8", 576))
    parameters = 126 / 72 * (2 * 16384 * (16384 + 2048) + 3 * 16384 * 53248) + 128256 * 16384 / 8
    assert fp8.state_gb - bf16.state_gb == pytest.approx(2 * parameters / 8 / 1e9)
    # 25.12 uses Megatron's precision-aware one in BF16 only.
    names = "nemotron4-340b@25.12 340b gb200"
    newer, older = memory(plan_of(f"{names} bf16", 256)), memory(plan_of(f"{names} fp8", 256))
    assert newer.state_gb < older.state_gb
    assert memory(plan_of(N15B, 64)) == memory(plan_of(N15B.replace("bf16", "fp8"), 64))


def test_a_deeper_pipeline_holds_more_micro_batches_of_fewer_layers(plan_of: PlanOf) -> None:
    """340b with GA 16: 8 micro-batches without virtual stages, 8 + 7/12 with 12, and never more than GA."""

    def working(**changes: int) -> float:
        counted = memory(plan_of(N340B, 256, **changes))
        return counted.peak_gb - counted.state_gb - 3

    assert working() / working(vp=1) == pytest.approx((8 + 7 / 12) / 8)
    logits = 10 * 4096 * 256000 / 8 / 1e9
    assert working(gbs=4, vp=1) == pytest.approx(working(vp=1) / 8 + logits), "one micro-batch, on the last stage"


def test_logits_are_on_the_last_stage(plan_of: PlanOf) -> None:
    """With a single micro-batch the last of two stages is the fuller one: 15b has 256,000 words."""
    counted = memory(plan_of(N15B, 64, pp=2, gbs=32))
    tokens = 4096 * 2
    micro_batch = 2 * (6 * 6144 + 2 * 1024 + 2 * 24576) / 2 * tokens * 16
    logits = 10 * tokens * 256000 / 2
    assert counted.peak_gb - counted.state_gb == pytest.approx((micro_batch + logits) / 1e9 + 3)


def test_numbers_that_do_not_divide_have_no_memory(plan_of: PlanOf) -> None:
    assert plan_of(N15B, 64, tp=3).memory is None
    assert plan_of(N15B, 64, gbs=100).memory is None


@given(
    st.sampled_from([s for recipe in CATALOG.recipes for s in selections(recipe)]),
    st.builds(Overrides, *[st.sampled_from([None, 1, 2, 4, 8, 16, 64])] * 7),
)
def test_memory_is_computed_for_every_layout_that_divides_evenly(selection: Selection, overrides: Overrides) -> None:
    run_plan = plan(CATALOG, replace(selection, overrides=overrides))
    assert (run_plan.memory is None) == (run_plan.parallelism.ga is None)
    if run_plan.memory:
        assert 0 < run_plan.memory.state_gb < run_plan.memory.peak_gb < math.inf
