"""Problems that prevent a run: message, field and alternative."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from llmb_tui.catalog.catalog import Catalog, UnknownNameError
from llmb_tui.plan.make import plan
from llmb_tui.plan.plan import Plan, Problem
from llmb_tui.plan.selection import Selection

PlanOf = Callable[..., Plan]
N15B = "nemotron4@25.04 15b h100 bf16"
N340B = "nemotron4@25.04 340b h100 bf16"
L405B = "llama3.1@25.04 405b h100 bf16"
GROK = "grok1@25.02 314b h100 bf16"


def on(plan: Plan, field: str, severity: str = "error") -> Problem:
    (problem,) = [p for p in plan.problems if (p.field, p.severity) == (field, severity)]
    assert problem.reason
    assert problem.fix or severity == "note"
    return problem


def errors(plan: Plan) -> list[str]:
    return [p.field for p in plan.problems if p.severity == "error"]


def test_an_unlisted_scale_names_its_listed_neighbours_and_is_still_estimated(plan_of: PlanOf) -> None:
    plan = plan_of(N15B, 96)
    assert errors(plan) == ["scale"]
    assert "64 or 128 GPUs" in on(plan, "scale").fix
    assert "96" in on(plan, "scale").reason
    assert plan.printed is None
    assert plan.published is None
    assert plan.estimate is not None
    assert (plan.parallelism.gbs, plan.parallelism.dp, plan.parallelism.ga) == (384, 48, 4)


def test_above_the_largest_scale_the_error_suggests_the_largest(plan_of: PlanOf) -> None:
    plan = plan_of(N15B, 4096)
    assert errors(plan) == ["scale"]
    assert "2048 GPUs" in on(plan, "scale").fix
    assert plan.parallelism.gbs == 16384


def test_an_unlisted_scale_uses_the_layout_of_the_full_model(plan_of: PlanOf) -> None:
    runs = plan_of(L405B, 256).parallelism
    assert (runs.tp, runs.pp, runs.cp, runs.vp, runs.layers) == (8, 8, 2, 8, 126)
    assert (runs.dp, runs.gbs, runs.ga) == (2, 128, 64)
    strong = plan_of("nemotron4-340b@25.12 340b gb200 bf16", 64, strong_scaling=True).parallelism
    assert (strong.gbs, strong.dp, strong.ga) == (512, 2, 256)


def test_below_the_smallest_whole_model_memory_may_not_suffice(plan_of: PlanOf) -> None:
    warning = on(plan_of(L405B, 256), "scale", "warning")
    assert "512" in warning.reason
    assert "memory" in warning.reason
    assert "fewer layers" in warning.reason
    assert "fewer layers" not in on(plan_of(N340B, 128), "scale", "warning").reason
    assert not [p for p in plan_of(L405B, 128).problems if p.severity == "warning"], "a proxy is made for its scale"
    assert on(plan_of(L405B, 128, layers=126), "scale", "warning")


def test_a_layout_that_does_not_divide_the_scale_names_scales_that_do(plan_of: PlanOf) -> None:
    plan = plan_of(N340B, 300)
    assert errors(plan) == ["scale"], "one cause, one problem"
    problem = on(plan, "scale")
    assert "TP 8 x PP 8 x CP 1 = 64 does not divide 300 GPUs" in problem.reason
    assert "nodes of 8" in problem.reason
    assert "256 or 512 GPUs" in problem.fix, "the listed scales"
    assert "256 or 320 GPUs" in problem.fix, "the scales that divide"
    assert plan.parallelism.dp is None
    assert plan.parallelism.ga is None
    assert plan.nodes == 38


def test_expert_groups_must_divide_the_data_parallel_ranks(plan_of: PlanOf) -> None:
    plan = plan_of(GROK, 832)
    assert plan.parallelism.dp == 13
    assert "EP 8 does not divide DP 13" in on(plan, "scale").reason
    assert "512 or 1024 GPUs" in on(plan, "scale").fix


def test_a_fixed_batch_names_scales_that_divide_it(plan_of: PlanOf) -> None:
    plan = plan_of("nemotron4-340b@25.12 340b b200 fp8", 768, strong_scaling=True)
    assert "MBS 1 x DP 24 = 24 does not divide GBS 512" in on(plan, "scale").reason
    assert "512 or 1024 GPUs" in on(plan, "scale").fix
    assert plan.parallelism.dp == 24
    assert plan.parallelism.ga is None


def test_a_rule_that_gives_a_fractional_batch_is_a_problem(plan_of: PlanOf) -> None:
    plan = plan_of("llama3.1@24.11 405b h100 bf16", 40, tp=1, pp=1, cp=1, vp=1)
    assert plan.parallelism.gbs == 17
    assert "252/576 samples" in on(plan, "scale").reason
    exact = plan_of("llama3.1@24.11 405b h100 bf16", 288)
    assert (exact.parallelism.gbs, exact.parallelism.ga) == (126, 63)


def test_part_of_a_node_cannot_be_requested(plan_of: PlanOf) -> None:
    plan = plan_of(N15B, 20)
    assert "nodes of 8" in on(plan, "scale").reason
    assert "16 or 24 GPUs" in on(plan, "scale").fix
    assert plan.nodes == 3


def test_a_gpu_type_of_another_recipe_is_planned_with_the_node_size_of_that_type(plan_of: PlanOf) -> None:
    plan = plan_of("nemotron4@25.04 15b gb200 bf16", 64)
    assert errors(plan) == ["gpu"]
    assert "H100" in on(plan, "gpu").fix
    assert (plan.nodes, plan.gpus_per_node, plan.container) == (16, 4, None)
    assert plan.parallelism == plan_of(N15B, 64).parallelism
    assert plan.printed is None
    assert plan.published is None
    assert plan.estimate is not None
    assert plan.estimate.method == "modelled"


def test_a_gpu_of_another_preset_runs_the_whole_model(plan_of: PlanOf) -> None:
    """On 128 H100 the recipe reduces the layers to 62 to save memory."""
    assert plan_of(L405B, 128).parallelism.layers == 62
    runs = plan_of("llama3.1@25.04 405b gb200 bf16", 128).parallelism
    assert (runs.layers, runs.pp, runs.gbs) == (126, 8, 64)


def test_strong_scaling_is_an_error_if_the_recipe_has_no_such_rows(plan_of: PlanOf) -> None:
    plan = plan_of(N15B, 64, strong_scaling=True)
    assert errors(plan) == ["strong_scaling"]
    assert plan.scaling == "strong"
    assert plan.printed is None
    assert plan.published is None
    assert plan.estimate is None
    h100 = plan_of("nemotron4-340b@25.12 340b h100 bf16", 256, strong_scaling=True)
    fix = on(h100, "strong_scaling").fix
    assert all(gpu in fix for gpu in ("B200", "GB200", "GB300"))
    assert "H100" not in fix


def test_a_precision_that_the_recipe_does_not_have(catalog: Catalog) -> None:
    plan_ = plan(catalog, Selection("nemotron4", "25.04", "15b", "h100", "nvfp4", 64))
    assert errors(plan_) == ["dtype"]
    assert "bf16 or fp8" in on(plan_, "dtype").fix
    assert plan_.estimate is None


def test_names_that_no_preset_has_are_no_plan(catalog: Catalog) -> None:
    for names in (("nemotron4", "25.04", "8b", "h100"), ("nemotron4", "25.04", "15b", "a100")):
        with pytest.raises(UnknownNameError):
            plan(catalog, Selection(*names, "bf16", 64))


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ((N15B, 64, {"tp": 3}), ("tp", "TP 3 x PP 1 x CP 1 = 3 does not divide 64", "48 or 72 GPUs")),
        ((N15B, 64, {"pp": 3}), ("pp", "TP 2 x PP 3 x CP 1 = 6", "48 or 72 GPUs")),
        ((N15B, 64, {"tp": 32}), ("tp", "48 attention heads", "Choose TP 8")),
        ((N340B, 256, {"tp": 16, "pp": 4}), ("tp", "TP 16 does not divide 8 query groups", "Choose TP 8")),
        ((L405B, 512, {"tp": 16, "pp": 4}), ("tp", "TP 16 does not divide 8 query groups", "Choose TP 8")),
        ((N340B, 256, {"gbs": 4}), ("gbs", "GA must be a multiple of PP; 1 is not a multiple of 8", "GBS 32, or VP 1")),
        ((N15B, 64, {"gbs": 100}), ("gbs", "MBS 2 x DP 32 = 64 does not divide GBS 100", "GBS 64 or 128")),
        ((N340B, 512, {"gbs": 100}), ("gbs", "MBS 1 x DP 8 = 8 does not divide GBS 100", "Choose GBS 64 or 128.")),
        (
            (N15B, 64, {"mbs": 3}),
            ("mbs", "MBS 3 x DP 32 = 96 does not divide GBS 256", "Choose MBS 2 or 4, or GBS 192 or 288."),
        ),
        (
            (L405B, 512, {"mbs": 3}),
            ("mbs", "MBS 3 x DP 4 = 12 does not divide GBS 256", "Choose MBS 2 or 4, or GBS 192 or 288."),
        ),
        (
            (L405B, 512, {"mbs": 16}),
            ("mbs", "GA must be a multiple of PP; 4 is not a multiple of 8", "MBS 8, or GBS 512, or VP 1."),
        ),
        (
            (N15B, 64, {"pp": 2, "vp": 3}),
            ("vp", "32 layers do not divide by PP 2 x VP 3 = 6", "VP 2 or 4, or 30 or 36 layers"),
        ),
        ((N15B, 64, {"pp": 32, "vp": 2}), ("vp", "PP 32 x VP 2 = 64", "VP 1, or 64 layers")),
        ((L405B, 512, {"pp": 16, "tp": 4, "vp": 3}), ("vp", "PP 16 x VP 3 = 48", "VP 2 or 4, or 94 or 142 layers")),
        ((N340B, 256, {"tp": 1, "pp": 64}), ("pp", "96 layers do not divide by PP 64 x VP 12", "PP 48 or 96")),
        ((N15B, 64, {"vp": 4}), ("vp", "needs a pipeline", "VP 1")),
        ((N340B, 256, {"pp": 1}), ("pp", "needs a pipeline", "VP 1")),
        ((N15B, 64, {"ep": 2}), ("ep", "without experts", "EP 1")),
        ((GROK, 512, {"ep": 3}), ("ep", "EP 3 does not divide DP 8", "EP 2 or 4")),
        ((GROK, 1536, {"ep": 5}), ("ep", "EP 5 does not divide DP 24", "EP 4 or 8")),
        ((L405B, 512, {"layers": 128}), ("layers", "128 layers and 2 places", "126 or 190 layers")),
        ((N15B, 64, {"seq_len": 4095}), ("seq_len", "4095 does not split into 2 pieces", "4094 or 4096")),
        (
            (N15B, 64, {"tp": 3}),
            ("tp", "4096 does not split into 3 pieces", "Choose another TP, or sequence length 4095 or 4098."),
        ),
        ((L405B, 512, {"seq_len": 8208}), ("seq_len", "8208 does not split into 32 pieces", "8192 or 8224")),
        ((N15B, 64, {"tp": 0}), ("tp", "at least 1", "Keep 2")),
        ((N15B, 64, {"vp": -1}), ("vp", "at least 1", "Keep 1")),
    ],
)
def test_impossible_values_are_errors(
    plan_of: PlanOf, asked: tuple[str, int, dict[str, int]], problem: tuple[str, str, str]
) -> None:
    names, scale, own = asked
    field, reason, fix = problem
    plan = plan_of(names, scale, **own)
    problems = [p for p in plan.problems if p.severity == "error" and p.field == field]
    assert any(reason in p.reason and fix in p.fix for p in problems), plan.problems
    assert not plan.launchable


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        (("llama3.1@24.11 405b h100 bf16", 576, {"tp": 16}), ("tp", "beyond a node of 8")),
        ((N15B, 64, {"layers": 34}), ("layers", "more than the model's 32")),
    ],
)
def test_unusual_values_are_warnings(
    plan_of: PlanOf, asked: tuple[str, int, dict[str, int]], problem: tuple[str, str]
) -> None:
    names, scale, own = asked
    field, reason = problem
    plan = plan_of(names, scale, **own)
    assert reason in on(plan, field, "warning").reason
    assert plan.launchable


def test_a_tensor_group_across_nodes_is_accepted_if_the_recipe_has_it(plan_of: PlanOf) -> None:
    plan = plan_of("nemotron4-340b@25.12 340b gb200 bf16", 128)
    assert plan.gpus_per_node == 4
    assert plan.parallelism.tp == 8
    assert not [p for p in plan.problems if p.field == "tp"]


@pytest.mark.parametrize(
    ("asked", "note"),
    [
        ((N15B, 64, {"mbs": 4}), ("mbs", "MBS 4 is above the published 2.")),
        ((N15B, 64, {"pp": 2}), ("pp", "PP 2 is above the published 1.")),
        ((N340B, 256, {"pp": 16, "tp": 4, "vp": 6}), ("pp", "PP 16 is above the published 8.")),
        ((N340B, 256, {"vp": 1}), ("vp", "PP 8 has no virtual stages")),
        ((N340B, 256, {"vp": 1, "gbs": 16}), ("pp", "GA 4 is less than PP 8")),
        ((L405B, 512, {"cp": 4}), ("cp", "CP 4 is above the published 2.")),
    ],
)
def test_an_unpublished_configuration_has_a_note_and_can_be_launched(
    plan_of: PlanOf, asked: tuple[str, int, dict[str, int]], note: tuple[str, str]
) -> None:
    names, scale, own = asked
    field, reason = note
    plan = plan_of(names, scale, **own)
    assert [p for p in plan.problems if (p.field, p.severity) == (field, "note") and p.reason.startswith(reason)]
    assert plan.launchable


def test_published_values_are_not_unusual_if_the_user_sets_them(plan_of: PlanOf) -> None:
    plain, by_hand = plan_of(N340B, 256), plan_of(N340B, 256, tp=8, pp=8, vp=12, mbs=1)
    assert by_hand.problems == plain.problems


def test_fewer_layers_make_a_proxy(plan_of: PlanOf) -> None:
    plan = plan_of(N15B, 64, layers=16)
    assert plan.scaling == "proxy"
    assert plan.checkpoint_gb is None
    assert plan.launchable


def test_one_virtual_stage_or_expert_group_means_none(plan_of: PlanOf) -> None:
    plan = plan_of(N340B, 256, vp=1, ep=1)
    assert plan.parallelism.vp is None
    assert plan.parallelism.ep == 1


def test_a_value_that_the_script_corrects_has_a_note(plan_of: PlanOf) -> None:
    plan = plan_of(N340B, 256)
    assert plan.parallelism.vp == 12
    assert plan.printed is not None
    assert plan.printed.vp is None
    assert "12" in on(plan, "vp", "note").reason


def test_a_note_gives_the_corrected_mfu_and_the_readme_value(plan_of: PlanOf) -> None:
    reason = on(plan_of(N15B, 64), "mfu_pct", "note").reason
    assert "65.82 %" in reason
    assert "58.3 %" in reason


def test_oddities_of_a_row_are_noted(plan_of: PlanOf) -> None:
    plan = plan_of(GROK, 8)
    assert plan.printed is not None
    assert (plan.printed.ga, plan.parallelism.ga) == (128, 512)
    assert "128" in on(plan, "printed", "note").reason
    assert "causal" in on(plan, "mfu_pct", "note").reason
    misprint = plan_of("grok1@25.02 314b h100 fp8", 1024)
    assert misprint.published is not None
    assert misprint.published.note
    assert "17.09" in on(misprint, "published", "note").reason
    assert "16 query groups" in on(plan_of(L405B, 512), "size", "note").reason


@pytest.mark.parametrize(
    "limit", ["", "0", "0:0:0", "00:00:00", "0-0", "1-1:1:1\n", "1-", "-1", "1h", "1:2:3:4", "9" * 30, "unlimited"]
)
def test_a_time_limit_that_cannot_be_read(plan_of: PlanOf, limit: str) -> None:
    plan = plan_of(N15B, 64, time_limit=limit)
    assert errors(plan) == ["time_limit"]
    assert plan.time_limit == "00:30:00"


@pytest.mark.parametrize("limit", ["00:15:00", "1-00:00:00", "2:00:00"])
def test_a_time_limit_that_suffices(plan_of: PlanOf, limit: str) -> None:
    plan = plan_of(N15B, 64, time_limit=limit)
    assert plan.launchable
    assert plan.time_limit == limit
    assert not [p for p in plan.problems if p.field == "time_limit"]


@pytest.mark.parametrize(
    ("limit", "clock"),
    [
        ("30", "00:30:00"),
        ("1500", "1-01:00:00"),
        ("30:30", "00:30:30"),
        ("00:90:00", "01:30:00"),
        ("1-12", "1-12:00:00"),
        ("0-1:30", "01:30:00"),
        ("1-1:1:1", "1-01:01:01"),
    ],
)
def test_a_time_limit_in_another_form_of_sbatch_becomes_a_clock(plan_of: PlanOf, limit: str, clock: str) -> None:
    plan = plan_of(N15B, 64, time_limit=limit)
    assert (plan.launchable, plan.time_limit) == (True, clock)


def test_a_time_limit_too_short_for_the_steps_is_a_warning(plan_of: PlanOf) -> None:
    plan = plan_of(N15B, 64, steps=1000)
    warning = on(plan, "time_limit", "warning")
    assert "45 minutes" in warning.reason
    assert "00:30:00" in warning.reason
    assert plan.launchable


def test_steps_must_be_at_least_one(plan_of: PlanOf) -> None:
    plan = plan_of(N15B, 64, steps=0)
    assert errors(plan) == ["steps"]
    assert plan.steps == 50


def test_strong_scaling_has_a_separate_time_limit(plan_of: PlanOf) -> None:
    weak = plan_of("nemotron4-340b@25.12 340b gb200 bf16", 128)
    strong = plan_of("nemotron4-340b@25.12 340b gb200 bf16", 128, strong_scaling=True)
    assert (weak.time_limit, strong.time_limit) == ("00:25:00", "00:35:00")


def test_the_most_severe_problem_comes_first(plan_of: PlanOf) -> None:
    severities = [p.severity for p in plan_of(L405B, 250, tp=3).problems]
    assert severities == sorted(severities, key=["error", "warning", "note"].index)
    assert len(set(severities)) == 3
