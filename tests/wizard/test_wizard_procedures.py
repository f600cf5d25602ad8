"""The two procedures: as an answer, as choices, in the copied command, on the rail."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.plan.plan import Problem
from llmb_tui.plan.selection import Selection
from llmb_tui.wizard.answers import Answers, answer, answers_of, command, value_of
from llmb_tui.wizard.procedures import procedures
from llmb_tui.wizard.steps import StepId, summary

CHOSEN = Selection("nemotron4", "25.04", "15b", "h100", "fp8", 64)


def test_direct_is_meant_until_the_other_is_chosen() -> None:
    assert value_of(Answers(), "procedure") == "direct"
    assert value_of(answer(Answers(), "procedure", "recipe"), "procedure") == "recipe"


@pytest.mark.parametrize("value", ["direct", "", "published"])
def test_whatever_is_not_the_published_one_is_direct(value: str) -> None:
    answers = answer(answer(Answers(), "procedure", "recipe"), "procedure", value)
    assert answers == Answers()


def test_another_workload_keeps_the_procedure() -> None:
    answers = answer(answer(Answers(), "procedure", "recipe"), "workload", "grok1@25.02/314b")
    assert answers.procedure == "recipe"
    assert answers_of(CHOSEN, "eos", "recipe").procedure == "recipe"


def test_both_are_offered_and_the_published_one_names_its_release(catalog: Catalog) -> None:
    for recipe in catalog.recipes:
        assert recipe.published is not None
        direct, published = procedures(catalog, Answers(recipe=recipe.id), ())
        assert (direct.value, published.value) == ("direct", "recipe")
        assert direct.disabled_reason is published.disabled_reason is None
        assert recipe.published.tag in published.detail


def test_an_error_disables_the_published_one_with_its_reason_and_a_warning_does_not(catalog: Catalog) -> None:
    against = (
        Problem("vboost", "warning", "launch.sh gives no more power.", "Leave it."),
        Problem("steps", "error", "launch.sh takes no number of steps.", "Give none."),
    )
    direct, published = procedures(catalog, Answers(), against)
    assert direct.disabled_reason is None
    assert published.disabled_reason == "launch.sh takes no number of steps."
    assert procedures(catalog, Answers(), against[:1])[1].disabled_reason is None


def test_a_recipe_of_ones_own_need_not_have_it(catalog: Catalog) -> None:
    lean = replace(catalog.recipes[0], published=None)
    reason = Problem("procedure", "error", "No published procedure is known for it.", "")
    found = procedures(Catalog((lean,)), Answers(), (reason,))
    assert [one.disabled_reason for one in found] == [None, reason.reason]


def test_the_command_names_the_published_one() -> None:
    assert command(CHOSEN, "eos", "recipe").endswith(" --cluster eos --procedure recipe")
    assert "--procedure" not in command(CHOSEN, "eos")
    assert "--procedure" not in command(CHOSEN, None, "recipe")  # `plan` has no procedure


def test_the_rail_names_the_published_one() -> None:
    assert summary(Answers(scale=64, procedure="recipe"), None, StepId.SCALE) == "64 GPUs · published procedure"
    assert summary(Answers(scale=64), None, StepId.SCALE) == "64 GPUs"
