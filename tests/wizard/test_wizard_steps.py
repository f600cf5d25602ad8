from __future__ import annotations

import pytest

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.plan.make import plan
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.selection import RunOptions
from llmb_tui.wizard.answers import Answers, answer, selection
from llmb_tui.wizard.steps import TITLES, Facts, StepId, confirm, following, mark, preceding, problems, summary

READY = Facts(connected=True, failed_checks=(), install="done")


def planned(catalog: Catalog, answers: Answers) -> Plan:
    chosen = selection(catalog, answers)
    assert chosen is not None
    return plan(catalog, chosen)


def test_there_are_seven_steps_and_review_is_the_last_before_run() -> None:
    assert [TITLES[step] for step in StepId] == [
        "Workload",
        "Hardware",
        "Scale, options",
        "Cluster",
        "Install",
        "Review",
        "Run",
    ]


def test_going_back_is_never_blocked() -> None:
    assert [preceding(step) for step in StepId] == [StepId.WORKLOAD, *list(StepId)[:-1]]


def test_a_ready_cluster_and_a_whole_install_are_passed_by(catalog: Catalog) -> None:
    made = planned(catalog, Answers())

    assert following(Answers(), made, READY, StepId.SCALE) is StepId.REVIEW
    assert following(Answers(), made, None, StepId.SCALE) is StepId.CLUSTER
    missing = Facts(connected=True, failed_checks=(), install="missing")
    assert following(Answers(), made, missing, StepId.SCALE) is StepId.INSTALL


@pytest.mark.parametrize(
    "facts",
    [
        None,
        Facts(),
        Facts(connected=True),
        Facts(connected=True, failed_checks=("partition",)),
        Facts(link_note="no route"),
    ],
)
def test_a_cluster_is_ticked_only_when_it_answers_and_every_check_passed(facts: Facts | None) -> None:
    assert mark(Answers(), None, facts, StepId.CLUSTER) != "done"
    assert mark(Answers(), None, READY, StepId.CLUSTER) == "done"


def test_what_failed_on_the_cluster_flags_its_step() -> None:
    assert mark(Answers(), None, Facts(link_note="no route"), StepId.CLUSTER) == "flagged"
    checked = Facts(connected=True, failed_checks=("partition", "disk"))
    assert [problem.reason for problem in problems(Answers(), None, checked, StepId.CLUSTER)] == ["partition", "disk"]
    broken = Facts(connected=True, install="failed", install_note="no space left")
    assert [problem.reason for problem in problems(Answers(), None, broken, StepId.INSTALL)] == ["no space left"]


def test_a_step_left_forward_is_answered_with_what_it_showed(catalog: Catalog) -> None:
    answers = Answers()
    for step in (StepId.WORKLOAD, StepId.HARDWARE, StepId.SCALE):
        made = planned(catalog, answers)
        assert mark(answers, made, None, step) == "open"
        answers = confirm(catalog, answers, step)
        assert mark(answers, made, None, step) == "done"

    assert selection(catalog, answers) == selection(catalog, Answers())


def test_an_impossible_later_answer_flags_its_own_step(catalog: Catalog) -> None:
    answers = answer(answer(Answers(), "workload", "nemotron4-340b@25.12/340b"), "gpu", "gb200")
    answers = answer(answers, "workload", "nemotron4@25.04/15b")
    made = planned(catalog, answers)

    assert mark(answers, made, None, StepId.WORKLOAD) == "done"
    assert mark(answers, made, None, StepId.HARDWARE) == "flagged"
    assert all(problem.reason for problem in problems(answers, made, None, StepId.HARDWARE))


def test_an_unlisted_scale_flags_the_scale_step(catalog: Catalog) -> None:
    answers = answer(answer(Answers(), "workload", "nemotron4@25.04/15b"), "scale", "96")
    made = planned(catalog, answers)

    assert mark(answers, made, None, StepId.SCALE) == "flagged"
    assert mark(answers, made, None, StepId.HARDWARE) != "flagged"


def test_problems_come_worst_first(catalog: Catalog) -> None:
    order = ("error", "warning", "note")
    for workload in ("grok1@25.02/314b", "nemotron4@25.04/15b"):
        answers = answer(answer(Answers(), "workload", workload), "scale", "96")
        found = problems(answers, planned(catalog, answers), None, StepId.SCALE)
        assert [p.severity for p in found] == sorted((p.severity for p in found), key=order.index)


def test_summaries_show_answers_not_defaults(catalog: Catalog) -> None:
    assert all(summary(Answers(), None, step) == "" for step in StepId)
    answers = confirm(catalog, answer(Answers(), "workload", "nemotron4@25.04/15b"), StepId.HARDWARE)

    assert summary(answers, None, StepId.WORKLOAD) == "nemotron4 15b"
    assert summary(answers, None, StepId.HARDWARE) == "H100 · bf16"
    assert summary(answers, None, StepId.SCALE) == ""
    assert summary(answers, READY, StepId.INSTALL) == "installed"


def test_the_summary_of_the_scale_names_what_is_switched_on() -> None:
    options = RunOptions(profile=True, save_checkpoint=True)
    assert summary(Answers(scale=64, strong=True, options=options), None, StepId.SCALE) == (
        "64 GPUs · strong · profile · save"
    )


def test_an_option_that_the_recipe_does_not_have_flags_the_scale_step(catalog: Catalog) -> None:
    answers = Answers(recipe="nemotron4@25.04", size="15b", options=RunOptions(nccl_trace=True))
    chosen = selection(catalog, answers)
    assert chosen is not None
    made = plan(catalog, chosen)
    assert mark(answers, made, None, StepId.SCALE) == "flagged"
    assert [one.field for one in problems(answers, made, None, StepId.SCALE) if one.severity == "error"] == [
        "nccl_trace"
    ]
