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
    answers_from_selection,
    command,
    layout_text,
    selection,
    value_of,
    with_defaults,
)
from llmb_tui.wizard.gates import layout_difference, layout_problems, mark, summary
from llmb_tui.wizard.steps import StepId
from tests.wizard.wizard_states import state_of

NEMOTRON = Selection("nemotron4", "25.04", "15b", "h100", "bf16", 64)
EVERY = Overrides(4, 2, 1, 1, 4, 1, 512, 8192, 16)


def planned(catalog: Catalog, **overrides: int) -> Plan:
    return plan(catalog, replace(NEMOTRON, overrides=Overrides(**overrides)))


@pytest.mark.parametrize("field", [field.name for field in LAYOUT])
def test_number_is_kept_as_typed_and_removed_by_empty_text(field: str) -> None:
    answers = answer(Answers(), field, "12")
    assert value_of(answers, field) == "12"
    assert answers.overrides.set_fields() == {field: 12}
    assert answer(answers, field, "") == Answers()


def test_whole_layout_can_be_set_and_reset_in_one_answer() -> None:
    answers = answer(answer(Answers(), "mbs", "2"), "layout", "tp=4 vp=1")
    assert answers.overrides == Overrides(tp=4, vp=1)
    assert value_of(answers, "layout") == "tp=4 vp=1"
    assert answer(answers, "layout", "") == Answers()


@pytest.mark.parametrize("overrides", [Overrides(), Overrides(tp=4), EVERY])
def test_a_layout_written_as_a_value_is_read_back(overrides: Overrides) -> None:
    assert answer(Answers(), "layout", layout_text(overrides)).overrides == overrides


@pytest.mark.parametrize("text", ["tp", "tp=", "tp=x", "dp=4", "=4", "tp=-1"])
def test_invalid_layout_text_sets_no_override(text: str) -> None:
    assert answer(Answers(), "layout", text).overrides == Overrides()


def test_answers_of_a_run_with_a_custom_layout_give_its_selection(catalog: Catalog) -> None:
    chosen = replace(NEMOTRON, overrides=EVERY)
    assert selection(catalog, with_defaults(catalog, answers_from_selection(chosen))) == chosen


def test_the_layout_stays_when_an_earlier_answer_changes(catalog: Catalog) -> None:
    answers = answer(
        answers_from_selection(replace(NEMOTRON, overrides=Overrides(tp=4))), "workload", "llama3.1@25.04/8b"
    )
    chosen = selection(catalog, with_defaults(catalog, answers))
    assert chosen is not None
    assert chosen.overrides == Overrides(tp=4)


def test_the_command_has_a_flag_for_each_number() -> None:
    words = command(replace(NEMOTRON, overrides=EVERY), None)
    assert words.endswith("--scale 64 --tp 4 --pp 2 --cp 1 --ep 1 --vp 4 --mbs 1 --gbs 512 --seq-len 8192 --layers 16")
    assert "--tp" not in command(NEMOTRON, None)


def test_impossible_layout_flags_its_step(catalog: Catalog) -> None:
    answers = answers_from_selection(NEMOTRON)
    assert mark(state_of(catalog, answer(answers, "tp", "3")), StepId.SCALE) == "flagged"
    assert mark(state_of(catalog, answer(answers, "tp", "4")), StepId.SCALE) == "done"


def test_summary_names_a_custom_layout(catalog: Catalog) -> None:
    answers = answers_from_selection(NEMOTRON)
    assert summary(state_of(catalog, answer(answers, "tp", "4")), StepId.SCALE) == "64 GPUs · custom layout"
    assert summary(state_of(catalog, answers), StepId.SCALE) == "64 GPUs"


def test_difference_from_the_published_layout_names_both_values(catalog: Catalog) -> None:
    usual = planned(catalog)
    assert layout_difference(usual, planned(catalog, tp=4, seq_len=8192)) == (
        "differs from the published layout: TP 4, not 2; seq 8192, not 4096",
    )


def test_overrides_with_the_recipes_values_are_no_difference(catalog: Catalog) -> None:
    usual = planned(catalog)
    assert layout_difference(usual, planned(catalog, tp=2, pp=1, vp=1, mbs=2, gbs=256)) == ()
    assert layout_difference(usual, None) == ()
    assert layout_difference(None, usual) == ()


def test_layout_of_an_unpublished_scale_is_not_called_published(catalog: Catalog) -> None:
    chosen = replace(NEMOTRON, scale=96)
    words = layout_difference(plan(catalog, chosen), plan(catalog, replace(chosen, overrides=Overrides(tp=4))))
    assert words == ("differs from the recipe's layout: TP 4, not 2",)


def test_layout_problems_are_errors_and_notes_of_its_fields(catalog: Catalog) -> None:
    wrong = layout_problems(planned(catalog, tp=3))
    assert wrong
    assert all(problem.severity == "error" and problem.reason and problem.fix for problem in wrong)
    unusual = layout_problems(planned(catalog, cp=2))
    assert [(problem.field, problem.severity) for problem in unusual] == [("cp", "note")]
    assert layout_problems(planned(catalog)) == ()


def test_differing_readme_value_is_no_layout_problem(catalog: Catalog) -> None:
    run_plan = plan(catalog, Selection("nemotron4", "25.04", "340b", "h100", "bf16", 256))
    assert "vp" in {problem.field for problem in run_plan.problems}
    assert layout_problems(run_plan) == ()
