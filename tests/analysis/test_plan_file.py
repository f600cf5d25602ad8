"""The plan that is read back from a run's folder equals the plan of the run."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from llmb_tui.errors import LlmbError
from llmb_tui.plan.document import document
from llmb_tui.plan.make import plan
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.resolved import selections
from llmb_tui.plan.selection import Overrides, RunOptions
from llmb_tui.watch.judge_log import plan_in
from tests.kit.runs import CATALOG, NEMOTRON


def file_of(made: Plan) -> str:
    """File content as `launch/files.py` writes it."""
    return json.dumps(document(made) | {"steps": made.steps})


def test_every_configuration_of_the_recipes() -> None:
    for recipe in CATALOG.recipes:
        for selection in selections(recipe):
            run_plan = plan(CATALOG, selection)
            again = plan_in(CATALOG, file_of(run_plan))
            assert (document(again), again.steps) == (document(run_plan), run_plan.steps)


@pytest.mark.parametrize(
    "changes",
    [
        {"overrides": Overrides(tp=4, mbs=1)},
        {"overrides": Overrides(layers=8, seq_len=2048)},
        {"steps": 80},
        {"options": RunOptions(profile=True)},
        {"options": RunOptions(profile=True, profile_start=10, profile_stop=12)},
        {"options": RunOptions(nccl_trace=True, load_checkpoint="/lustre/c")},
    ],
)
def test_settings_changed_by_the_user_are_read(changes: dict[str, Any]) -> None:
    run_plan = plan(CATALOG, replace(NEMOTRON, **changes))
    again = plan_in(CATALOG, file_of(run_plan))
    assert (again.parallelism, again.steps, again.options) == (run_plan.parallelism, run_plan.steps, run_plan.options)
    assert again.estimate == run_plan.estimate


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "null",
        "NaN",
        '{"selection": {}, "parallelism": {}}',
        '{"selection": [1], "parallelism": 3}',
        "[" * 9999,
    ],
)
def test_a_text_that_is_not_a_plan_is_rejected_with_an_explanation(text: str) -> None:
    with pytest.raises(LlmbError) as refused:
        plan_in(CATALOG, text)
    assert refused.value.exit_code == 1


def test_a_hostile_plan_is_refused_in_words() -> None:
    good = json.loads(file_of(plan(CATALOG, NEMOTRON)))
    for part, key, value in (
        ("selection", "workload", "\x1b[2J"), ("selection", "scale", 1e308), ("parallelism", "tp", "x"),
        ("parallelism", "gbs", {}), ("selection", "size", []),
    ):  # fmt: skip
        with pytest.raises(LlmbError):
            plan_in(CATALOG, json.dumps(good | {part: good[part] | {key: value}}))
    with pytest.raises(LlmbError):
        plan_in(CATALOG, json.dumps(good | {"options": {"from": "x"}}))
    with pytest.raises(LlmbError):
        plan_in(CATALOG, json.dumps(good | {"steps": "many"}))
