"""The answers of the verbs that need no cluster: `plan`, `plan --layouts`, `list` and `accuracy`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llmb_tui.answers.accuracy import accuracy_answer
from llmb_tui.answers.answer import Answer
from llmb_tui.answers.layouts import layouts_answer, layouts_summary
from llmb_tui.answers.plan import plan_answer
from llmb_tui.answers.published import published_answer
from llmb_tui.answers.writers.rows import rows
from llmb_tui.plan.layouts import Layouts, layouts
from llmb_tui.plan.make import plan
from llmb_tui.plan.plan import Plan, Problem
from llmb_tui.plan.selection import Selection
from tests.kit.runs import CATALOG

SELECTION = Selection("nemotron4", "25.04", "15b", "h100", "fp8", 64)


def lines(answer: Answer) -> list[str]:
    return [row.text for row in rows(answer.make_blocks())]


def plan_at(scale: int) -> Plan:
    return plan(CATALOG, replace(SELECTION, scale=scale))


@pytest.mark.parametrize(("scale", "digits"), [(64, "1.98"), (96, "1.986")])
def test_a_step_time_has_the_same_digits_in_each_answer(scale: int, digits: str) -> None:
    """A published number has its own digits, an interpolated number at most four."""
    expected = plan_at(scale)
    assert expected.estimate is not None
    step_time = next(line for line in lines(plan_answer(expected)) if line.startswith("step time"))
    assert step_time.startswith(f"step time  {digits} s ")
    valid = layouts(CATALOG, expected.selection).best
    layout = next(layout for layout in valid if layout.parallelism == expected.parallelism)
    _, _, _, row, *_ = lines(layouts_answer(expected, Layouts((layout,), 1)))
    assert digits in row.split()
    assert digits in lines(published_answer([expected]))[1].split()


def test_warnings_come_before_notes_and_errors_are_left_to_stderr() -> None:
    problems = (
        Problem("mfu_pct", "note", "The README differs.", ""),
        Problem("scale", "error", "No 96 GPUs.", "Take 64."),
        Problem("gbs", "warning", "It is unusual.", "Leave it."),
    )
    assert lines(plan_answer(replace(plan_at(64), problems=problems)))[-3:] == [
        "",
        "! warning: It is unusual. Leave it.",
        "· note: The README differs.",
    ]


def test_the_number_of_valid_layouts_is_shown() -> None:
    all_of_them = layouts(CATALOG, SELECTION, 2000)
    assert layouts_summary(all_of_them) == f"all {all_of_them.valid:,} valid layouts"
    assert layouts_summary(replace(all_of_them, best=all_of_them.best[:3])).startswith("the fastest 3 of 1,")
    (nothing,) = lines(layouts_answer(plan_at(96), Layouts((), 0)))
    assert "no layout divides this number of GPUs" in nothing


def test_naive_predictions_are_below_the_estimate_of_their_case() -> None:
    errors = {"n": 9, "mean_pct": 1.25, "p90_pct": 4.0, "worst_pct": 10.0}
    case = {**errors, "coverage_pct": 97.5, "baselines": {"nearest_row": {**errors, "n": 8}}}
    _, heading, estimate, naive, *_ = lines(accuracy_answer({"one_row_out": case}))
    assert heading.split()[:3] == ["case", "predictor", "rows"]
    assert estimate.split() == ["one", "row", "out", "estimate", "9", "1.2", "4.0", "10.0", "97.5"]
    assert naive.split() == ["nearest", "row", "8", "1.2", "4.0", "10.0", "–"]
