"""Every published row: its plan, its published values, and the arithmetic behind them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.recipe import Recipe
from llmb_tui.catalog.rows import ResultRow, results, rows
from llmb_tui.plan import throughput
from llmb_tui.plan.make import plan
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.resolved import selections
from llmb_tui.plan.selection import Selection
from llmb_tui.plan.throughput import flops_per_sample

PlanOf = Callable[..., Plan]


def of_result(catalog: Catalog, recipe: Recipe, row: ResultRow) -> Plan:
    strong = row.scaling == "strong"
    names = (recipe.workload, recipe.release, row.size, row.gpu, row.dtype)
    return plan(catalog, Selection(*names, row.gpus, strong))


def own_results(catalog: Catalog) -> list[tuple[Recipe, ResultRow, Plan]]:
    """The 88 rows of the recipes' own result tables."""
    return [
        (recipe, row, of_result(catalog, recipe, row))
        for recipe in catalog.recipes
        for row in results(recipe)
        if row.release is None
    ]


def printed_tables_disagree(recipe: Recipe, row: ResultRow) -> bool:
    """Grok FP8 on 1,024 GPUs: a misprint, stored as published."""
    return (recipe.workload, row.dtype, row.gpus) == ("grok1", "fp8", 1024)


def test_every_listed_configuration_can_be_launched_and_is_whole(catalog: Catalog) -> None:
    plans = [plan(catalog, selection) for recipe in catalog.recipes for selection in selections(recipe)]
    assert len(plans) == 136
    for each in plans:
        runs = each.parallelism
        assert each.launchable, each.problems
        assert each.printed is not None
        assert runs.dp is not None
        assert runs.ga is not None
        assert runs.tp * runs.pp * runs.cp * runs.dp == each.selection.scale
        assert runs.mbs * runs.dp * runs.ga == runs.gbs
        assert runs.dp % runs.ep == 0


def test_a_listed_configuration_runs_its_row_and_prints_its_cells(catalog: Catalog) -> None:
    for recipe in catalog.recipes:
        for row in rows(recipe):
            each = plan(
                catalog,
                Selection(
                    recipe.workload, recipe.release, row.size, row.gpu, row.dtype, row.gpus, row.scaling == "strong"
                ),
            )
            for name in "tp pp cp ep dp vp mbs gbs ga seq_len layers".split():
                assert getattr(each.parallelism, name) == getattr(row, name)
                assert getattr(each.printed, name) == row.printed[name]
            assert each.scaling == ("proxy" if row.proxy else row.scaling)


def test_the_estimate_of_a_published_row_is_its_published_result(catalog: Catalog) -> None:
    found = own_results(catalog)
    assert len(found) == 88
    for _, row, each in found:
        assert each.published is not None
        assert each.estimate is not None
        assert (each.published.step_time_s, each.published.tokens_per_s) == (row.step_time_s, row.tokens_per_s)
        assert (each.published.mfu_pct, each.published.days_per_1t_tokens) == (row.mfu_pct, row.days_per_1t_tokens)
        assert each.estimate.method == "published"
        assert each.estimate.step_time_s == row.step_time_s
        assert each.estimate.low_s == pytest.approx(0.96 * row.step_time_s)
        assert each.estimate.high_s == pytest.approx(1.04 * row.step_time_s)


def test_the_printed_tokens_per_second_follow_from_the_step_time(catalog: Catalog) -> None:
    for recipe, row, each in own_results(catalog):
        assert each.estimate is not None
        agrees = each.estimate.tokens_per_s == pytest.approx(row.tokens_per_s, rel=0.002)
        assert agrees != printed_tables_disagree(recipe, row), (recipe.id, row)


def test_the_printed_mfu_follows_from_the_formula_that_was_printed(catalog: Catalog) -> None:
    for recipe, row, each in own_results(catalog):
        assert each.estimate is not None
        runs = each.parallelism
        formula = recipe.printed_flops or recipe.flops
        flops = flops_per_sample(formula, recipe.models[row.size], runs.layers, runs.seq_len)
        sustained = throughput.tflops_per_gpu(runs.gbs, flops, row.step_time_s, row.gpus)
        mfu = throughput.mfu_pct(sustained, each.estimate.peak_tflops)
        agrees = mfu == pytest.approx(row.mfu_pct, rel=0.002)
        assert agrees != printed_tables_disagree(recipe, row), (recipe.id, row, mfu)


def test_days_follow_from_the_step_time_and_are_left_out_for_proxies(catalog: Catalog) -> None:
    for _, row, each in own_results(catalog):
        assert each.estimate is not None
        if each.scaling == "proxy":
            assert each.estimate.days_per_1t_tokens is None
        else:
            assert each.estimate.days_per_1t_tokens == pytest.approx(row.days_per_1t_tokens, rel=0.002)


@pytest.mark.parametrize(
    ("names", "versions"),
    [
        ("nemotron4@25.04 15b h100", (("NeMo", "2.2.1"),)),
        ("nemotron4@25.04 15b b200", ()),  # the recipe has no container for this type
        ("nemotron4-340b@25.12 340b h100", (("NeMo", "2.5.0"), ("Megatron Core", "0.14.0"))),
        ("nemotron4-340b@25.12 340b b200", ()),  # no source states the versions in this container
        ("grok1@25.02 314b h100", (("framework", "24.12"),)),
    ],
)
def test_a_plan_names_the_versions_in_its_container(
    plan_of: PlanOf, names: str, versions: tuple[tuple[str, str], ...]
) -> None:
    assert plan_of(f"{names} bf16", 256).container_versions == versions


def test_only_the_full_model_has_a_checkpoint_size(catalog: Catalog) -> None:
    for recipe in catalog.recipes:
        for selection in selections(recipe):
            each = plan(catalog, selection)
            size = recipe.models[selection.size].checkpoint_gb
            assert each.checkpoint_gb == (None if each.scaling == "proxy" else size)


@pytest.mark.parametrize(
    ("names", "runs", "flops"),
    [
        ("nemotron4@25.04 15b", (32, 4096), 3.8500e14),
        ("nemotron4@25.04 340b", (96, 4096), 8.62124e15),
        ("nemotron4-340b@25.12 340b", (96, 4096), 8.62124e15),
        ("llama3.1@25.04 8b", (32, 8192), 4.7442e14),
        ("llama3.1@25.04 70b", (80, 8192), 3.9439e15),
        ("llama3.1@25.04 405b", (126, 8192), 2.17153e16),
        ("llama3.1@25.04 405b", (30, 8192), 5.2490e15),
        ("llama3.1@24.11 405b", (7, 8192), 1.303952e15),
        ("grok1@25.02 314b", (64, 8192), 4.274051e15),
        ("grok1@25.02 314b", (2, 4096), 8.430591e13),
    ],
)
def test_flops_of_each_model(catalog: Catalog, names: str, runs: tuple[int, int], flops: float) -> None:
    workload, size = names.split()
    recipe = catalog.recipe(workload)
    assert flops_per_sample(recipe.flops, recipe.models[size], *runs) == pytest.approx(flops, rel=2e-5)
