"""Options that can be switched on at Scale, options."""

from __future__ import annotations

import pytest

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.plan.make import plan
from llmb_tui.plan.selection import ON
from llmb_tui.wizard.answers import Answers, answer, selection, with_defaults
from llmb_tui.wizard.choices import Switch, option_refusals, switches


def shown(catalog: Catalog, workload: str, *on: str) -> dict[str, Switch]:
    answers = answer(Answers(), "workload", workload)
    for switch in switches(catalog, with_defaults(catalog, answers)):
        answers = answer(answers, switch.field, ON if switch.field in on else "")
    return {switch.field: switch for switch in switches(catalog, with_defaults(catalog, answers))}


def test_switches_show_their_values_for_the_recipe(catalog: Catalog) -> None:
    result = shown(catalog, "llama3.1@25.04/70b")
    details = {
        "profile": "steps 20–25",
        "nccl_trace": "5 steps",
        "save_checkpoint": "about 920 GB",
        "hub_tokenizer": "Meta-Llama-3-70B",
    }
    assert {name: result[name].detail for name in details} == details
    assert not any(result[name].on or result[name].disabled_reason for name in details)


def test_unsupported_switches_are_shown_with_the_reason(catalog: Catalog) -> None:
    result = shown(catalog, "llama3.1@24.11/405b", "nccl_trace")
    states = {
        "profile": (False, True),
        "nccl_trace": (True, True),  # so that it can be switched off
        "save_checkpoint": (False, False),
        "hub_tokenizer": (False, False),
    }
    assert {name: (result[name].on, result[name].can_switch) for name in states} == states
    assert result["save_checkpoint"].disabled_reason == "not in this recipe"


def test_only_movable_switches_can_be_launched(catalog: Catalog) -> None:
    for recipe in catalog.recipes:
        for size in recipe.models:
            workload = f"{recipe.id}/{size}"
            for field, switch in shown(catalog, workload).items():
                chosen = selection(
                    catalog, with_defaults(catalog, answer(answer(Answers(), "workload", workload), switch.field, ON))
                )
                assert chosen is not None
                assert plan(catalog, chosen).launchable is switch.can_switch, (workload, field)


@pytest.mark.parametrize(
    ("workload", "reason"),
    [("nemotron4@25.04/15b", ""), ("grok1@25.02/314b", "not in this recipe")],
)
def test_loading_a_checkpoint_is_refused_with_a_reason_for_some_recipes(
    catalog: Catalog, workload: str, reason: str
) -> None:
    assert (
        option_refusals(catalog, with_defaults(catalog, answer(Answers(), "workload", workload)))["load_checkpoint"]
        == reason
    )
