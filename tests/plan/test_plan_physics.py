"""The physical terms, compared with manual calculations and the recipes' own counts of floating point operations."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.recipe import Flops, Model
from llmb_tui.catalog.rows import Row, rows
from llmb_tui.plan.measurements import architecture
from llmb_tui.plan.physics import IN_STAGES, TIMES, Machine, Terms, terms
from llmb_tui.plan.step_model import StepModel
from llmb_tui.plan.throughput import flops_per_sample


def row_of(catalog: Catalog, recipe: str, size: str, dtype: str, gpus: int) -> tuple[Model, Machine, Row]:
    result = catalog.recipe(recipe)
    (row,) = [r for r in rows(result) if (r.size, r.gpu, r.dtype, r.gpus) == (size, "h100", dtype, gpus)]
    return result.models[size], Machine(result.gpus["h100"], catalog.chips["h100"], dtype), row


def of_row(catalog: Catalog, recipe: str, size: str, dtype: str, gpus: int) -> Terms:
    model, machine, row = row_of(catalog, recipe, size, dtype, gpus)
    return terms(model, machine, gpus, row)


@pytest.mark.parametrize(("recipe", "size"), [("nemotron4@25.04", "15b"), ("llama3.1@25.04", "8b")])
def test_without_a_pipeline_the_products_are_the_formula_with_causal_attention(
    catalog: Catalog, recipe: str, size: str
) -> None:
    model, machine, row = row_of(catalog, recipe, size, "bf16", 64)
    work = terms(model, machine, 64, row)
    counted = flops_per_sample(Flops("", True, True, ""), model, row.layers, row.seq_len) * row.gbs / 64 / 989e12
    assert work.linear_bf16 + work.attention + work.head == pytest.approx(counted)


def test_fp8_is_for_the_products_of_the_layers_alone(catalog: Catalog) -> None:
    bf16, fp8 = (of_row(catalog, "nemotron4@25.04", "15b", dtype, 64) for dtype in ("bf16", "fp8"))
    assert fp8.linear_bf16 == bf16.linear_fp8 == bf16.cast == 0
    assert fp8.linear_fp8 == pytest.approx(bf16.linear_bf16 * 989 / 1979)
    assert (fp8.attention, fp8.head) == (bf16.attention, bf16.head)
    assert fp8.cast == fp8.memory > 0


def test_traffic_equals_a_manual_calculation(catalog: Catalog) -> None:
    """15b on 64 GPUs: TP 2 x DP 32, 8 sequences of 4096 tokens for each of 32 groups, in BF16."""
    work = of_row(catalog, "nemotron4@25.04", "15b", "bf16", 64)
    activations = 8 * 4096 * 32 * 6144 * 2
    assert work.tp == pytest.approx(8 * activations / 2 / 450e9), "half of it is on the other GPU"
    held = (32 * (6144**2 * 2 * (1 + 8 / 48) + 2 * 6144 * 24576) + 2 * 6144 * 256000) / 2
    assert work.dp == pytest.approx(4 * held * 31 / 32 / 50e9), "over the network"
    assert work.optimizer == pytest.approx(26 * held / 32 / 3350e9)
    assert work.cp == work.pp == work.ep == work.moe == work.bubble == 0
    assert work.doublings == 3


def test_nvlink_ends_with_its_domain(catalog: Catalog) -> None:
    model, machine, row = row_of(catalog, "nemotron4@25.04", "15b", "bf16", 64)
    inside, across = (terms(model, machine, 64, replace(row, tp=tp)) for tp in (8, 16))
    assert across.tp / inside.tp == pytest.approx(2 * (15 / 16) / (7 / 8) * 450 / 50)
    rack = replace(catalog.chips["gb200"])
    assert terms(model, machine._replace(chip=rack), 64, replace(row, tp=16)).tp < inside.tp * 2


def test_the_bubble_shrinks_with_virtual_stages_and_micro_batches(catalog: Catalog) -> None:
    model, machine, row = row_of(catalog, "nemotron4@25.04", "340b", "bf16", 256)
    assert terms(model, machine, 256, row).bubble == pytest.approx(7 / (12 * 16))
    assert terms(model, machine, 256, replace(row, vp=None)).bubble == pytest.approx(7 / 16)
    assert terms(model, machine, 256, replace(row, gbs=2 * row.gbs)).bubble == pytest.approx(7 / (12 * 32))


def test_the_output_layer_adds_time_only_if_no_layers_are_removed_for_it(catalog: Catalog) -> None:
    model, machine, row = row_of(catalog, "llama3.1@25.04", "405b", "bf16", 512)
    assert model.stage_extra_layers == 2
    relieved = terms(model, machine, 512, row)
    plain = terms(replace(model, stage_extra_layers=0), machine, 512, row)
    assert relieved.head == 0
    assert relieved.linear_bf16 == pytest.approx(plain.linear_bf16 * 128 / 126)
    assert plain.head == pytest.approx(8 * terms(model, machine, 512, replace(row, pp=1, vp=None)).head)


def test_doubling_the_batch_doubles_all_times_except_those_of_one_step(catalog: Catalog) -> None:
    model, machine, row = row_of(catalog, "grok1@25.02", "314b", "fp8", 1024)
    once, twice = (terms(model, machine, 1024, replace(row, gbs=gbs)) for gbs in (row.gbs, 2 * row.gbs))
    for name in TIMES:
        factor = 1 if name in ("dp", "optimizer") else 2
        assert getattr(twice, name) == pytest.approx(factor * getattr(once, name)), name


def test_the_step_model_is_a_weighted_sum(catalog: Catalog) -> None:
    work = of_row(catalog, "nemotron4@25.04", "340b", "bf16", 256)
    plain = StepModel((1.0,) * len(TIMES), 0.0)
    stages = sum(getattr(work, name) for name in IN_STAGES)
    total = sum(getattr(work, name) for name in TIMES)
    assert plain.seconds(work) == pytest.approx(total + work.bubble * stages)
    assert StepModel(plain.weights, 0.01).seconds(work) == pytest.approx(plain.seconds(work) * 1.05), "5 doublings"
    parts = plain.breakdown(work, 2 * plain.seconds(work))
    assert parts.bubble_s == pytest.approx(2 * work.bubble * stages)
    assert parts.optimizer_s == pytest.approx(2 * work.optimizer)
    assert parts.communication_s == pytest.approx(2 * (work.tp + work.cp + work.ep + work.pp + work.dp))


def test_a_formula_may_count_other_query_groups_than_run(catalog: Catalog) -> None:
    """The counted operations give both releases one model, and their step times are compared."""
    older, newer = catalog.recipe("llama3.1@24.11"), catalog.recipe("llama3.1@25.04")
    models = [recipe.models["405b"] for recipe in (older, newer)]
    assert [model.query_groups for model in models] == [16, 8]
    assert architecture(models[0]) == architecture(models[1])
    assert len({flops_per_sample(newer.flops, model, 126, 8192) for model in models}) == 1
    assert models[0].attention_parameters > models[1].attention_parameters
