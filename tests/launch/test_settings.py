"""Settings of a recipe: which ones apply to a plan, and their values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.recipe import Recipe
from llmb_tui.catalog.rows import rows
from llmb_tui.catalog.settings import PLACEHOLDERS, SettingsGroup
from llmb_tui.launch.settings import RESULTS_DIR, ResolvedSettings, plan_values, resolve_settings
from llmb_tui.plan.make import plan
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.selection import Overrides, RunOptions, Selection
from llmb_tui.request import RunRequest
from tests.launch.launch_cases import PROFILE, MakePlan

OPTIONS = (
    RunOptions(),
    RunOptions(profile=True),
    RunOptions(nccl_trace=True),
    RunOptions(save_checkpoint=True),
    RunOptions(load_checkpoint="/checkpoints/one"),
    RunOptions(hub_tokenizer=True),
)
BY_HAND = (Overrides(tp=1, cp=2), Overrides(tp=2, pp=4))


@pytest.fixture
def pipelined(make_plan: MakePlan) -> Plan:
    """TP 8, PP 4, CP 1, VP 12, EP 1, DP 4, MBS 1, GBS 32, 96 layers, 50 steps; 32 nodes of 4 GPUs."""
    return make_plan("nemotron4-340b@25.12", "340b", "gb200", "fp8", 128)


@pytest.fixture
def flat(make_plan: MakePlan) -> Plan:
    """TP 1, PP 1, CP 2, no VP, BF16; one node of 8 GPUs."""
    return make_plan("llama3.1@25.04", "8b", "h100", "bf16", 8)


def settings_of(catalog: Catalog, plan: Plan, *groups: SettingsGroup) -> ResolvedSettings:
    selection = plan.selection
    recipe = catalog.recipe(f"{selection.workload}@{selection.release}")
    return resolve_settings(RunRequest(replace(recipe, settings=groups), plan, PROFILE))


@pytest.mark.parametrize(
    "filters",
    [
        {"containers": ("nvidia/nemo:25.09.00",)},
        {"sizes": ("15b",)},
        {"gpus": ("h100", "b200")},
        {"dtypes": ("bf16",)},
        {"gpus": ("gb200",), "dtypes": ("bf16",)},
        {"when": ("pp > 4",)},
        {"when": ("pp < 4",)},
        {"when": ("vp == 1",)},
        {"when": ("not fp8",)},
        {"when": ("profile",)},
        {"when": ("load_checkpoint",)},
        {"when": ("tp > 1", "cp > 1")},
    ],
    ids=str,
)
def test_a_group_that_is_for_another_run_does_not_apply(
    catalog: Catalog, pipelined: Plan, filters: dict[str, Any]
) -> None:
    group = SettingsGroup("a test", env={"A": "1"}, **filters)
    assert settings_of(catalog, pipelined, group).env == {}


@pytest.mark.parametrize(
    "filters",
    [
        {},
        {"containers": ("nvidia/nemo:25.09.00", "nvidia/nemo:25.07.01")},
        {"sizes": ("340b",), "gpus": ("b200", "gb200"), "dtypes": ("fp8",)},
        {"when": ("pp > 3", "pp == 4", "pp < 5", "fp8", "pipelined", "not profile", "dp > 1", "gpus == 128")},
    ],
    ids=str,
)
def test_a_group_applies_if_all_its_filters_match(catalog: Catalog, pipelined: Plan, filters: dict[str, Any]) -> None:
    group = SettingsGroup("a test", env={"A": "1"}, **filters)
    assert settings_of(catalog, pipelined, group).env == {"A": "1"}


@pytest.mark.parametrize(("condition", "holds"), [("vp > 0", False), ("vp < 1", True), ("vp", False), ("not vp", True)])
def test_none_counts_as_zero_in_a_condition(catalog: Catalog, flat: Plan, condition: str, holds: bool) -> None:
    assert flat.parallelism.vp is None
    group = SettingsGroup("a test", when=(condition,), env={"A": "1"})
    assert bool(settings_of(catalog, flat, group).env) == holds


def test_a_placeholder_alone_keeps_its_type(catalog: Catalog, pipelined: Plan, flat: Plan) -> None:
    group = SettingsGroup(
        "a test",
        recipe={
            "tp": "{tp}",
            "vp": "{vp}",
            "fp8": "{fp8}",
            "dtype": "{dtype}",
            "none": "{none}",
            "hidden": "{hidden}",
            "samples": "{steps*gbs*mbs}",
            "plain": 7,
            "braces": "{{tp}}",
        },
    )
    alike = {"none": None, "plain": 7, "braces": "{tp}"}
    assert settings_of(catalog, pipelined, group).recipe == alike | {
        "tp": 8,
        "vp": 12,
        "fp8": True,
        "dtype": "fp8",
        "hidden": 18432,
        "samples": 1600,
    }
    assert settings_of(catalog, flat, group).recipe == alike | {
        "tp": 1,
        "vp": None,
        "fp8": False,
        "dtype": "bf16",
        "hidden": 4096,
        "samples": 6400,
    }


def test_a_placeholder_in_a_longer_text_is_written_as_hydra_reads_it(catalog: Catalog, flat: Plan) -> None:
    group = SettingsGroup("a test", recipe={"text": "tp{tp} vp {vp} fp8={fp8} {gbs*mbs}"})
    assert settings_of(catalog, flat, group).recipe == {"text": "tp1 vp null fp8=False 128"}


def test_placeholders_are_filled_at_any_depth(catalog: Catalog, pipelined: Plan) -> None:
    value = {"config": "a.module:Class_{dtype}", "with": {"sizes": ["{tp}", {"pp": "{pp}"}], "ranks": "{all_ranks}"}}
    group = SettingsGroup("a test", recipe={"a": value}, base={"b": value})
    done = settings_of(catalog, pipelined, group)
    wanted = {"config": "a.module:Class_fp8", "with": {"sizes": [8, {"pp": 4}], "ranks": list(range(128))}}
    assert (done.recipe, done.base) == ({"a": wanted}, {"b": wanted})


def test_overrides_words_and_environment_are_text(catalog: Catalog, pipelined: Plan) -> None:
    group = SettingsGroup(
        "a test",
        overrides=("a={vp}", "{tp}"),
        prefix=("nsys", "{pp}", "%q{{JOB}}"),
        env={"A": "{tp}", "B": "x{fp8}"},
        srun={"mpi": "pmix", "flag": True},
    )
    done = settings_of(catalog, pipelined, group)
    assert (done.overrides, done.prefix) == (("a=12", "8"), ("nsys", "4", "%q{JOB}"))
    assert (done.env, done.srun) == ({"A": "8", "B": "xTrue"}, {"mpi": "pmix", "flag": True})


def test_the_later_of_two_groups_wins_key_by_key_and_in_order(catalog: Catalog, pipelined: Plan) -> None:
    first = SettingsGroup(
        "a test",
        recipe={"a": 1, "a.x": 2, "b": 3},
        env={"A": "1", "B": "1"},
        srun={"mpi": "pmi2"},
        overrides=("a=1",),
        prefix=("nsys",),
        segment=9,
        tasks_per_numa_node=4,
    )
    later = SettingsGroup(
        "a test",
        recipe={"a": "{none}"},
        env={"A": "2"},
        srun={"mpi": "pmix"},
        overrides=("a=2",),
        prefix=("numactl",),
        segment=18,
    )
    done = settings_of(catalog, pipelined, first, later)
    # A value for all of `a` comes after a value for a part of it.
    assert list(done.recipe.items()) == [("a.x", 2), ("b", 3), ("a", None)]
    assert (done.env, done.srun, done.overrides) == ({"A": "2", "B": "1"}, {"mpi": "pmix"}, ("a=1", "a=2"))
    assert (done.prefix, done.segment, done.tasks_per_numa_node) == (("numactl",), 18, 4)


def test_every_placeholder_has_a_value(catalog: Catalog, make_plan: MakePlan) -> None:
    options = RunOptions(profile=True, profile_start=3, profile_stop=9, hub_tokenizer=True)
    asked = make_plan("llama3.1@25.04", "70b", "h100", "bf16", 64, options=options)
    values = plan_values(RunRequest(catalog.recipe("llama3.1@25.04"), asked, PROFILE))
    assert set(values) == set(PLACEHOLDERS)
    wanted: dict[str, object] = {
        "nodes": 8,
        "gpus_per_node": 8,
        "gpus": 64,
        "ga": 64,
        "layers": 80,
        "vocab": 128256,
        "none": None,
    }
    wanted |= {"profile": True, "profile_start": 3, "profile_stop": 9, "steps": 9, "strong": False, "pipelined": True}
    wanted |= {"tokenizer": "meta-llama/Meta-Llama-3-70B", "results_dir": RESULTS_DIR, "load_checkpoint": None}
    assert {name: values[name] for name in wanted} == wanted


def some_runs(catalog: Catalog, recipe: Recipe) -> list[Plan]:
    """Every row, with every option, and with custom layouts."""
    return [
        plan(
            catalog,
            Selection(
                recipe.workload,
                recipe.release,
                row.size,
                row.gpu,
                row.dtype,
                row.gpus,
                strong_scaling=row.scaling == "strong",
                options=options,
                overrides=overrides,
            ),
        )
        for row in rows(recipe)
        for options, overrides in [
            *((each, Overrides()) for each in OPTIONS),
            *((OPTIONS[0], overrides) for overrides in BY_HAND),
        ]
    ]


def test_every_group_of_every_preset_changes_some_run(catalog: Catalog) -> None:
    for recipe in catalog.recipes:
        plans = some_runs(catalog, recipe)
        whole = [resolve_settings(RunRequest(recipe, each, PROFILE)) for each in plans]
        for index, group in enumerate(recipe.settings):
            without = replace(recipe, settings=recipe.settings[:index] + recipe.settings[index + 1 :])
            others = (resolve_settings(RunRequest(without, each, PROFILE)) for each in plans)
            changed = any(other != before for other, before in zip(others, whole, strict=True))  # stops at the first
            assert changed, f"{recipe.id}: group {index}, {group.source}"


@pytest.mark.parametrize("name", ["hub_tokenizer", "profile", "nccl_trace", "save_checkpoint", "load_checkpoint"])
def test_a_run_option_changes_no_setting_of_a_run_without_it(catalog: Catalog, flat: Plan, name: str) -> None:
    recipe = catalog.recipe("llama3.1@25.04")
    groups = tuple(group for group in recipe.settings if name not in group.when)
    assert len(groups) < len(recipe.settings)
    request = RunRequest(recipe, flat, PROFILE)
    assert resolve_settings(request) == resolve_settings(replace(request, recipe=replace(recipe, settings=groups)))
