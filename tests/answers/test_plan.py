"""The answers of the verbs that need no cluster: `plan`, `plan --layouts`, `list` and `accuracy`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llmb_tui.answers.accuracy import accuracy_answer
from llmb_tui.answers.answer import Answer
from llmb_tui.answers.layouts import layouts_answer, layouts_summary
from llmb_tui.answers.plan import plan_answer
from llmb_tui.answers.published import published
from llmb_tui.answers.writers.rows import rows
from llmb_tui.plan.layouts import Layouts, layouts
from llmb_tui.plan.make import plan
from llmb_tui.plan.plan import Plan, Problem
from llmb_tui.plan.selection import Selection
from tests.kit.runs import CATALOG

SELECTION = Selection("nemotron4", "25.04", "15b", "h100", "fp8", 64)


def lines(answer: Answer) -> list[str]:
    return [row.text for row in rows(answer.make_blocks())]


def of(scale: int) -> Plan:
    return plan(CATALOG, replace(SELECTION, scale=scale))


@pytest.mark.parametrize(("scale", "digits"), [(64, "1.98"), (96, "1.986")])
def test_a_step_time_has_the_same_digits_in_each_answer(scale: int, digits: str) -> None:
    """A printed number as it was printed, an interpolated one in four digits at most."""
    expected = of(scale)
    assert expected.estimate is not None
    said = lines(plan_answer(expected))
    step_time = next(line for line in said if line.startswith("step time"))
    assert step_time.startswith(f"step time  {digits} s ")
    own = next(one for one in layouts(CATALOG, expected.selection).best if one.parallelism == expected.parallelism)
    _, _, _, row, *_ = lines(layouts_answer(expected, Layouts((own,), 1)))
    assert digits in row.split()
    assert digits in lines(published([expected]))[1].split()


def test_warnings_come_before_notes_and_errors_are_left_to_stderr() -> None:
    problems = (
        Problem("mfu_pct", "note", "The README differs.", ""),
        Problem("scale", "error", "No 96 GPUs.", "Take 64."),
        Problem("gbs", "warning", "It is unusual.", "Leave it."),
    )
    assert lines(plan_answer(replace(of(64), problems=problems)))[-3:] == [
        "",
        "! warning: It is unusual. Leave it.",
        "· note: The README differs.",
    ]


def test_layouts_say_how_many_there_are() -> None:
    all_of_them = layouts(CATALOG, SELECTION, 2000)
    assert layouts_summary(all_of_them) == f"every valid layout: {all_of_them.valid:,}"
    assert layouts_summary(replace(all_of_them, best=all_of_them.best[:3])).startswith("the fastest 3 of 1,")
    (nothing,) = lines(layouts_answer(of(96), Layouts((), 0)))
    assert "no layout divides these GPUs" in nothing


def test_naive_ways_stand_under_the_estimate_of_their_case() -> None:
    errors = {"n": 9, "mean_pct": 1.25, "p90_pct": 4.0, "worst_pct": 10.0}
    case = {**errors, "coverage_pct": 97.5, "baselines": {"nearest_row": {**errors, "n": 8}}}
    _, heading, estimate, naive, *_ = lines(accuracy_answer({"one_row_out": case}))
    assert heading.split()[:3] == ["case", "way", "rows"]
    assert estimate.split() == ["one", "row", "out", "estimate", "9", "1.2", "4.0", "10.0", "97.5"]
    assert naive.split() == ["nearest", "row", "8", "1.2", "4.0", "10.0", "–"]
