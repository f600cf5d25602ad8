"""Custom layouts: answers, the command, and messages."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.plan.make import plan
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.selection import LAYOUT, Overrides, Selection
from llmb_tui.wizard.answers import (
    Answers,
    answer,
    answers_of,
    command,
    layout_text,
    selection,
    value_of,
    with_defaults,
)
from llmb_tui.wizard.gates import layout_problems, mark, other_layout, summary
from llmb_tui.wizard.steps import StepId
from tests.wizard.wizard_states import state_of

NEMOTRON = Selection("nemotron4", "25.04", "15b", "h100", "bf16", 64)
EVERY = Overrides(4, 2, 1, 1, 4, 1, 512, 8192, 16)


def planned(catalog: Catalog, **overrides: int) -> Plan:
    return plan(catalog, replace(NEMOTRON, overrides=Overrides(**overrides)))


@pytest.mark.parametrize("field", [field.name for field in LAYOUT])
def test_a_number_is_kept_as_it_was_typed_and_taken_back_when_it_is_emptied(field: str) -> None:
    answers = answer(Answers(), field, "12")
    assert value_of(answers, field) == "12"
    assert answers.overrides.set_fields() == {field: 12}
    assert answer(answers, field, "") == Answers()


def test_a_whole_layout_is_one_answer_and_so_is_the_way_back() -> None:
    answers = answer(answer(Answers(), "mbs", "2"), "layout", "tp=4 vp=1")
    assert answers.overrides == Overrides(tp=4, vp=1)
    assert value_of(answers, "layout") == "tp=4 vp=1"
    assert answer(answers, "layout", "") == Answers()


@pytest.mark.parametrize("overrides", [Overrides(), Overrides(tp=4), EVERY])
def test_a_layout_written_as_a_value_is_read_back(overrides: Overrides) -> None:
    assert answer(Answers(), "layout", layout_text(overrides)).overrides == overrides


@pytest.mark.parametrize("text", ["tp", "tp=", "tp=x", "dp=4", "=4", "tp=-1"])
def test_what_is_no_layout_sets_nothing(text: str) -> None:
    assert answer(Answers(), "layout", text).overrides == Overrides()


def test_the_answers_of_a_run_with_its_own_layout_lead_back_to_it(catalog: Catalog) -> None:
    chosen = replace(NEMOTRON, overrides=EVERY)
    assert selection(catalog, with_defaults(catalog, answers_of(chosen))) == chosen


def test_the_layout_stays_when_an_earlier_answer_changes(catalog: Catalog) -> None:
    answers = answer(answers_of(replace(NEMOTRON, overrides=Overrides(tp=4))), "workload", "llama3.1@25.04/8b")
    chosen = selection(catalog, with_defaults(catalog, answers))
    assert chosen is not None
    assert chosen.overrides == Overrides(tp=4)


def test_the_command_has_a_flag_for_each_number() -> None:
    words = command(replace(NEMOTRON, overrides=EVERY), None)
    assert words.endswith("--scale 64 --tp 4 --pp 2 --cp 1 --ep 1 --vp 4 --mbs 1 --gbs 512 --seq-len 8192 --layers 16")
    assert "--tp" not in command(NEMOTRON, None)


def test_a_layout_that_cannot_be_flags_its_step(catalog: Catalog) -> None:
    answers = answers_of(NEMOTRON)
    assert mark(state_of(catalog, answer(answers, "tp", "3")), StepId.SCALE) == "flagged"
    assert mark(state_of(catalog, answer(answers, "tp", "4")), StepId.SCALE) == "done"


def test_the_rail_says_that_it_is_another_one(catalog: Catalog) -> None:
    answers = answers_of(NEMOTRON)
    assert summary(state_of(catalog, answer(answers, "tp", "4")), StepId.SCALE) == "64 GPUs · custom layout"
    assert summary(state_of(catalog, answers), StepId.SCALE) == "64 GPUs"


def test_where_it_differs_is_said_with_both_values(catalog: Catalog) -> None:
    usual = planned(catalog)
    assert other_layout(usual, planned(catalog, tp=4, seq_len=8192)) == (
        "differs from the published layout: TP 4, not 2; seq 8192, not 4096",
    )


def test_the_recipes_own_values_set_by_hand_are_no_other_layout(catalog: Catalog) -> None:
    usual = planned(catalog)
    assert other_layout(usual, planned(catalog, tp=2, pp=1, vp=1, mbs=2, gbs=256)) == ()
    assert other_layout(usual, None) == ()
    assert other_layout(None, usual) == ()


def test_beside_an_unlisted_scale_it_is_not_called_published(catalog: Catalog) -> None:
    chosen = replace(NEMOTRON, scale=96)
    words = other_layout(plan(catalog, chosen), plan(catalog, replace(chosen, overrides=Overrides(tp=4))))
    assert words == ("differs from the recipe's layout: TP 4, not 2",)


def test_errors_and_what_is_unusual_are_told_at_the_fields(catalog: Catalog) -> None:
    wrong = layout_problems(planned(catalog, tp=3))
    assert wrong
    assert all(problem.severity == "error" and problem.reason and problem.fix for problem in wrong)
    unusual = layout_problems(planned(catalog, cp=2))
    assert [(problem.field, problem.severity) for problem in unusual] == [("cp", "note")]
    assert layout_problems(planned(catalog)) == ()


def test_what_the_readme_prints_otherwise_is_no_fault_of_the_layout(catalog: Catalog) -> None:
    made = plan(catalog, Selection("nemotron4", "25.04", "340b", "h100", "bf16", 256))
    assert "vp" in {problem.field for problem in made.problems}
    assert layout_problems(made) == ()
