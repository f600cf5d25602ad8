"""The JSON object that other programs read, compared with the example and the sentences of its contract."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.plan.document import document
from llmb_tui.plan.make import plan
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.resolved import selections

PlanOf = Callable[..., Plan]
KEYS = {
    "selection": {"workload", "release", "size", "gpu", "dtype", "scale", "scaling", "precision_variant", "variant"},
    "parallelism": set("tp pp cp ep dp vp mbs gbs ga seq_len layers".split()),
    "printed": set("tp pp cp ep dp vp mbs gbs ga seq_len layers".split()),
    "published": {"step_time_s", "tokens_per_s", "mfu_pct", "days_per_1t_tokens", "source", "note", "origin"},
    "estimate": set(
        "step_time_s low_s high_s method anchor tokens_per_s mfu_pct days_per_1t_tokens tflops_per_gpu"
        " model_flops_per_sample peak_tflops flops_formula".split()
    ),
}
TOP = {*KEYS, "nodes", "gpus_per_node", "memory", "checkpoint_gb", "gpu_hours", "problems"}


def test_the_example_field_by_field(plan_of: PlanOf) -> None:
    fields = document(plan_of("pretrain_nemotron4 15b H100 BF16", 64))
    assert fields["selection"] == {
        "workload": "nemotron4",
        "release": "25.04",
        "size": "15b",
        "gpu": "h100",
        "dtype": "bf16",
        "scale": 64,
        "scaling": "weak",
        "precision_variant": None,
        "variant": None,
    }
    assert (fields["nodes"], fields["gpus_per_node"]) == (8, 8)
    runs = {"tp": 2, "pp": 1, "cp": 1, "ep": 1, "dp": 32, "vp": None, "mbs": 2, "gbs": 256, "ga": 4}
    assert fields["parallelism"] == {**runs, "seq_len": 4096, "layers": 32}
    assert fields["printed"] == {**runs, "ep": None, "seq_len": 4096, "layers": 32}
    source = fields["published"].pop("source")
    assert "nemotron" in source
    assert fields["published"] == {
        "step_time_s": 2.67,
        "tokens_per_s": 392725,
        "mfu_pct": 65.82,
        "days_per_1t_tokens": 29.47,
        "note": None,
        "origin": "recipe",
    }
    estimate = fields["estimate"]
    assert estimate["step_time_s"] == 2.67
    assert round(estimate["low_s"], 2) == 2.56
    assert round(estimate["high_s"], 2) == 2.78
    assert estimate["method"] == "published"
    assert estimate["tokens_per_s"] == 392725
    assert round(estimate["mfu_pct"], 1) == 58.3
    assert round(estimate["days_per_1t_tokens"], 2) == 29.47
    assert round(estimate["tflops_per_gpu"], 1) == 576.8
    assert estimate["model_flops_per_sample"] == pytest.approx(3.85e14, rel=1e-5)
    assert estimate["peak_tflops"] == 989
    assert estimate["anchor"]
    assert estimate["flops_formula"]
    assert fields["checkpoint_gb"] == 204
    assert round(fields["gpu_hours"], 1) == 2.4
    (problem,) = fields["problems"]
    assert set(problem) == {"field", "severity", "reason", "fix"}
    assert problem["severity"] == "note"


def test_every_listed_plan_has_exactly_these_keys(catalog: Catalog) -> None:
    for recipe in catalog.recipes:
        for selection in selections(recipe):
            made = json.loads(json.dumps(document(plan(catalog, selection)), allow_nan=False))
            assert set(made) == TOP
            for part, keys in KEYS.items():
                assert made[part] is None or set(made[part]) == keys


def test_unknown_values_are_null(plan_of: PlanOf) -> None:
    fields = document(plan_of("nemotron4@25.04 340b h100 bf16", 300))
    assert fields["parallelism"]["dp"] is None
    assert fields["parallelism"]["ga"] is None
    assert fields["printed"] is None
    assert fields["published"] is None
    assert fields["estimate"] is None
    assert fields["gpu_hours"] is None


def test_a_reduced_model_is_marked_and_has_no_training_days(plan_of: PlanOf) -> None:
    fields = document(plan_of("llama3.1@25.04 405b h100 fp8", 64))
    assert fields["selection"]["scaling"] == "proxy"
    assert fields["published"]["days_per_1t_tokens"] is None
    assert fields["estimate"]["days_per_1t_tokens"] is None
    assert fields["checkpoint_gb"] is None


def test_strong_scaling_is_marked_in_the_selection(plan_of: PlanOf) -> None:
    fields = document(plan_of("nemotron4-340b 340b gb200 fp8", 128, strong_scaling=True))
    assert fields["selection"]["scaling"] == "strong"
    assert fields["parallelism"]["ga"] == 128


def test_grok_has_readme_values_for_dp_and_ga_that_differ(plan_of: PlanOf) -> None:
    fields = document(plan_of("grok1 314b h100 bf16", 16))
    assert (fields["printed"]["dp"], fields["printed"]["ga"], fields["printed"]["ep"]) == (1, 128, 4)
    assert (fields["parallelism"]["dp"], fields["parallelism"]["ga"], fields["parallelism"]["ep"]) == (4, 256, 4)


def test_values_in_the_title_of_a_table_are_printed_too(plan_of: PlanOf) -> None:
    fields = document(plan_of("llama3.1@24.11 405b h100 bf16", 96))
    assert fields["printed"]["tp"] == 8
    assert fields["printed"]["pp"] == 3
    assert fields["printed"]["ga"] == 63
    assert fields["printed"]["dp"] is None
    assert fields["printed"]["seq_len"] is None
