"""Options of a run in addition to the benchmark: steps, time limit, and impossible combinations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.plan.document import document
from llmb_tui.plan.make import plan
from llmb_tui.plan.options import option_row
from llmb_tui.plan.plan import Plan, Problem
from llmb_tui.plan.resolved import selections
from llmb_tui.plan.selection import FIELDS, NOTHING_MORE, OPTIONS, RunOptions

PlanOf = Callable[..., Plan]
NEMOTRON = "nemotron4@25.04 15b h100 bf16"
NEMOTRON_340B = "nemotron4-340b@25.12 340b gb200 fp8"
LLAMA = "llama3.1@25.04 8b h100 bf16"
LLAMA_HYDRA = "llama3.1@24.11 405b h100 bf16"
GROK = "grok1@25.02 314b h100 bf16"
CHECKPOINT = "/lustre/ckpt/default--None=0.0000-epoch=0-consumed_samples=12800.0"


def errors(made: Plan) -> dict[str, str]:
    return {problem.field: problem.reason for problem in made.problems if problem.severity == "error"}


def said(made: Plan, field: str, severity: str = "note") -> list[str]:
    return [problem.reason for problem in made.problems if (problem.field, problem.severity) == (field, severity)]


@pytest.mark.parametrize(
    ("names", "scale", "profiled", "steps"),
    [
        (NEMOTRON, 64, (20, 25), 25),
        (LLAMA, 8, (20, 25), 25),
        (NEMOTRON_340B, 128, (45, 50), 50),
        # The scripts of these releases run all steps after the profile.
        (LLAMA_HYDRA, 576, (20, 30), 50),
        (GROK, 512, (20, 30), 50),
    ],
)
def test_a_profiled_run_uses_the_recipes_steps(
    plan_of: PlanOf, names: str, scale: int, profiled: tuple[int, int], steps: int
) -> None:
    run_plan = plan_of(names, scale, profile=True)
    start, stop = profiled
    assert (run_plan.options.profile_start, run_plan.options.profile_stop, run_plan.steps) == (start, stop, steps)
    assert run_plan.launchable
    assert f"Steps {start} to {stop} are profiled" in said(run_plan, "profile")[0]
    assert ("where the run ends" in said(run_plan, "profile")[0]) == (steps == stop)
    assert "will be WARN" in said(run_plan, "profile")[0]


def test_own_steps_of_a_profile_move_its_end_and_its_cost(plan_of: PlanOf) -> None:
    run_plan = plan_of(NEMOTRON, 64, profile=True, profile_start=3, profile_stop=10)
    assert (run_plan.options.profile_start, run_plan.options.profile_stop, run_plan.steps) == (3, 10, 10)
    assert run_plan.estimate is not None
    assert run_plan.gpu_hours == pytest.approx(64 * 10 * run_plan.estimate.step_time_s / 3600)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"profile_start": 25}, "profile_start"),
        ({"profile_stop": 20}, "profile_stop"),
        ({"profile_start": 9, "profile_stop": 8}, "profile_stop"),
        ({"profile_start": -1}, "profile_start"),
        ({"profile_start": -9, "profile_stop": -3}, "profile_start"),
    ],
)
def test_steps_of_a_profile_are_in_order(plan_of: PlanOf, given: dict[str, int], field: str) -> None:
    run_plan = plan_of(NEMOTRON, 64, profile=True, **given)
    assert list(errors(run_plan)) == [field]
    assert said(run_plan, "profile") == []


def test_a_profile_lies_within_a_run_that_does_not_end_with_it(plan_of: PlanOf) -> None:
    assert list(errors(plan_of(GROK, 512, profile=True, steps=25))) == ["profile_stop"]
    assert plan_of(GROK, 512, profile=True, steps=30).launchable


@pytest.mark.parametrize("field", ["profile_start", "profile_stop"])
def test_steps_of_a_profile_without_a_profile_are_refused(plan_of: PlanOf, field: str) -> None:
    assert list(errors(plan_of(NEMOTRON, 64, **{field: 20}))) == [field]


@pytest.mark.parametrize(("names", "scale", "steps", "limit"), [(LLAMA, 8, 5, "00:15:00"), (GROK, 512, 10, "01:00:00")])
def test_a_traced_run_uses_the_recipes_steps_and_time_limit(
    plan_of: PlanOf, names: str, scale: int, steps: int, limit: str
) -> None:
    run_plan = plan_of(names, scale, nccl_trace=True)
    assert (run_plan.steps, run_plan.time_limit, run_plan.launchable) == (steps, limit, True)
    assert f"over {steps} steps" in said(run_plan, "nccl_trace")[0]
    assert plan_of(names, scale, nccl_trace=True, time_limit="00:05:00").time_limit == "00:05:00"


@pytest.mark.parametrize("names", [NEMOTRON, LLAMA, NEMOTRON_340B])
def test_a_run_that_loads_a_checkpoint_has_one_step(plan_of: PlanOf, names: str) -> None:
    run_plan = plan_of(names, 128, load_checkpoint=CHECKPOINT)
    assert (run_plan.steps, run_plan.options.load_checkpoint, run_plan.launchable) == (1, CHECKPOINT, True)
    assert "will be WARN" in said(run_plan, "load_checkpoint")[0]


@pytest.mark.parametrize("path", ["", "/", "ckpt", "~/ckpt", "/a b", "/a\nb", "/a$(id)", "/ä"])
def test_a_checkpoint_path_must_be_absolute_and_safe_in_a_script(plan_of: PlanOf, path: str) -> None:
    assert list(errors(plan_of(NEMOTRON, 64, load_checkpoint=path))) == ["load_checkpoint"]


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"profile": True, "nccl_trace": True}, "nccl_trace"),
        ({"profile": True, "load_checkpoint": "/a"}, "load_checkpoint"),
        ({"nccl_trace": True, "load_checkpoint": "/a"}, "load_checkpoint"),
        ({"profile": True, "nccl_trace": True, "load_checkpoint": "/a"}, "load_checkpoint"),
    ],
)
def test_conflicting_options_give_one_error(plan_of: PlanOf, asked: dict[str, object], field: str) -> None:
    run_plan = plan_of(LLAMA, 16, **asked)
    assert list(errors(run_plan)) == [field]
    assert all(problem.fix for problem in run_plan.problems if problem.severity == "error")


def test_saving_a_checkpoint_can_be_combined_with_other_options(plan_of: PlanOf) -> None:
    assert plan_of(NEMOTRON, 64, save_checkpoint=True, profile=True).launchable
    assert plan_of(NEMOTRON, 64, save_checkpoint=True, load_checkpoint="/a").launchable


@pytest.mark.parametrize("asked", [{"profile": True}, {"load_checkpoint": "/a"}])
def test_steps_that_an_option_would_overrule_are_refused(plan_of: PlanOf, asked: dict[str, object]) -> None:
    run_plan = plan_of(NEMOTRON, 64, steps=50, **asked)
    assert list(errors(run_plan)) == ["steps"]
    assert plan_of(NEMOTRON, 64, steps=run_plan.steps, **asked).launchable


@pytest.mark.parametrize(
    ("names", "scale", "field", "value"),
    [
        (NEMOTRON, 64, "nccl_trace", True),
        (NEMOTRON, 64, "hub_tokenizer", True),
        (NEMOTRON_340B, 128, "nccl_trace", True),
        (LLAMA_HYDRA, 576, "nccl_trace", True),
        (LLAMA_HYDRA, 576, "save_checkpoint", True),
        (LLAMA_HYDRA, 576, "load_checkpoint", "/a"),
        (LLAMA_HYDRA, 576, "hub_tokenizer", True),
        (GROK, 512, "save_checkpoint", True),
        (GROK, 512, "load_checkpoint", "/a"),
    ],
)
def test_an_option_that_the_recipe_lacks_is_refused(
    plan_of: PlanOf, names: str, scale: int, field: str, value: object
) -> None:
    run_plan = plan_of(names, scale, **{field: value})
    assert list(errors(run_plan)) == [field]
    assert names.partition(" ")[0] in errors(run_plan)[field]


def test_an_option_that_its_script_does_not_read_is_refused(catalog: Catalog) -> None:
    recipe = catalog.recipe("nemotron4", "25.04")
    idle = replace(recipe, options=tuple(replace(row, effective=False) for row in recipe.options))
    selection = replace(next(selections(recipe)), options=RunOptions(save_checkpoint=True))
    reason = "Save checkpoint: no effect in this recipe, nemotron4@25.04."
    assert errors(plan(Catalog((idle,)), selection)) == {"save_checkpoint": reason}
    assert plan(catalog, selection).launchable


@pytest.mark.parametrize(
    ("names", "scale", "asked", "least"),
    [
        (NEMOTRON, 16, {"save_checkpoint": True}, None),
        (NEMOTRON, 32, {"load_checkpoint": CHECKPOINT}, 64),
        (NEMOTRON, 64, {"load_checkpoint": CHECKPOINT}, None),
        (LLAMA, 8, {"save_checkpoint": True}, 16),
        (LLAMA, 8, {"load_checkpoint": CHECKPOINT}, 16),
        ("llama3.1@25.04 405b h100 fp8", 512, {"save_checkpoint": True}, None),
        ("llama3.1@25.04 405b h100 fp8", 512, {"load_checkpoint": CHECKPOINT}, 1024),
    ],
)
def test_below_the_tested_scale_is_a_warning_with_it(
    plan_of: PlanOf, names: str, scale: int, asked: dict[str, object], least: int | None
) -> None:
    run_plan = plan_of(names, scale, **asked)
    (field,) = asked
    warned = said(run_plan, field, "warning")
    assert len(warned) == (least is not None)
    assert all(f"{least:,} × H100" in text for text in warned)
    assert run_plan.launchable


def test_saving_a_checkpoint_notes_that_no_tested_scale_is_published(plan_of: PlanOf) -> None:
    run_plan = plan_of("nemotron4-340b@25.12 340b gb300 fp8", 128, save_checkpoint=True)
    assert any("published for GB300" in text for text in said(run_plan, "save_checkpoint"))
    assert said(run_plan, "save_checkpoint", "warning") == []


def test_a_note_gives_the_checkpoint_size_if_it_is_published(plan_of: PlanOf) -> None:
    assert any("about 204 GB" in text for text in said(plan_of(NEMOTRON, 64, save_checkpoint=True), "save_checkpoint"))
    cut = plan_of(NEMOTRON, 64, save_checkpoint=True, layers=16)
    assert not any(" GB" in text for text in said(cut, "save_checkpoint"))


def test_the_hubs_tokenizer_is_named(plan_of: PlanOf) -> None:
    run_plan = plan_of(LLAMA, 8, hub_tokenizer=True)
    assert run_plan.launchable
    assert "meta-llama/Meta-Llama-3-8B" in said(run_plan, "hub_tokenizer")[0]


def test_a_plan_document_has_options_only_if_an_option_is_set(plan_of: PlanOf) -> None:
    assert "options" not in document(plan_of(NEMOTRON, 64))
    fields = document(plan_of(NEMOTRON, 64, profile=True, save_checkpoint=True))
    assert fields["options"] == {"profile": True, "profile_start": 20, "profile_stop": 25, "save_checkpoint": True}
    plain = document(plan_of(NEMOTRON, 64))
    assert fields["selection"] == plain["selection"]
    assert fields["estimate"] == plain["estimate"]


def test_no_published_configuration_has_run_options(catalog: Catalog) -> None:
    for recipe in catalog.recipes:
        for selection in selections(recipe):
            run_plan = plan(catalog, selection)
            fields = {problem.field for problem in run_plan.problems}
            assert run_plan.options == NOTHING_MORE
            assert fields.isdisjoint(option.name for option in OPTIONS)


def test_every_recipe_documents_a_profile_with_its_steps(catalog: Catalog) -> None:
    """The plan searches for the names of the options."""
    for recipe in catalog.recipes:
        for name in ("profile", "profile_start", "profile_stop"):
            assert option_row(recipe, FIELDS[name]) is not None, (recipe.id, name)


def test_each_error_has_a_fix(plan_of: PlanOf) -> None:
    run_plan = plan_of(
        LLAMA_HYDRA, 576, profile=True, profile_stop=2, nccl_trace=True, save_checkpoint=True, load_checkpoint="x",
        hub_tokenizer=True, steps=7,
    )  # fmt: skip
    found: list[Problem] = [problem for problem in run_plan.problems if problem.severity == "error"]
    assert len(found) >= 6
    assert all(problem.fix for problem in found)
