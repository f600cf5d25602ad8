"""Problems and marks of steps, the next step, and what a submission lacks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.plan.selection import RunOptions
from llmb_tui.wizard.answers import Answers, answer
from llmb_tui.wizard.events import ActionRequested
from llmb_tui.wizard.gates import mark, next_step, problems, statuses, submit_blocker, summary, unfinished_step
from llmb_tui.wizard.state import ClusterState, Launch, WizardState
from llmb_tui.wizard.steps import TITLES, StepId
from llmb_tui.wizard.transitions import with_step_confirmed
from llmb_tui.wizard.update import update
from tests.wizard.wizard_states import (
    BROKEN,
    EOS,
    INSTALLED,
    LOST,
    MISSING,
    NEMOTRON,
    PASSED,
    REFUSING,
    Wizard,
    draft_of,
    state_of,
)

READY = ClusterState(link="connected", preflight=PASSED, steps=INSTALLED)


def on_eos(catalog: Catalog, cluster: ClusterState, step: StepId = StepId.SCALE) -> WizardState:
    return replace(state_of(catalog, NEMOTRON, EOS.name), cluster=cluster, step=step)


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


def test_going_back_is_never_blocked(catalog: Catalog) -> None:
    before = [update(on_eos(catalog, ClusterState(), step), ActionRequested("back"))[0].step for step in StepId]
    assert before == [StepId.WORKLOAD, *list(StepId)[:-1]]


def test_steps_of_a_ready_cluster_and_a_complete_install_are_skipped(catalog: Catalog) -> None:
    assert next_step(on_eos(catalog, READY)) is StepId.REVIEW
    assert next_step(on_eos(catalog, ClusterState())) is StepId.CLUSTER
    assert next_step(on_eos(catalog, replace(READY, steps=MISSING))) is StepId.INSTALL


@pytest.mark.parametrize(
    "cluster",
    [
        ClusterState(),
        ClusterState(link="connected"),
        ClusterState(link="connected", preflight=REFUSING),
        ClusterState(link="connecting", preflight=PASSED),
        ClusterState(link="connected", checked=PASSED),
        ClusterState(link="failed", unreachable=LOST),
    ],
)
def test_cluster_step_is_done_only_when_connected_and_every_check_passed(
    catalog: Catalog, cluster: ClusterState
) -> None:
    assert mark(on_eos(catalog, cluster), StepId.CLUSTER) != "done"
    assert mark(on_eos(catalog, READY), StepId.CLUSTER) == "done"


def test_failures_on_the_cluster_flag_their_steps(catalog: Catalog) -> None:
    lost = on_eos(catalog, ClusterState(link="failed", unreachable=LOST))
    assert [problem.reason for problem in problems(lost, StepId.CLUSTER)] == [LOST.what]
    checked = on_eos(catalog, ClusterState(link="connected", preflight=REFUSING))
    assert [problem.reason for problem in problems(checked, StepId.CLUSTER)] == ["Time limit"]
    broken = on_eos(catalog, replace(READY, steps=BROKEN))
    assert [problem.reason for problem in problems(broken, StepId.INSTALL)] == ["No space left on device"]
    assert [mark(state, step) for state, step in ((lost, StepId.CLUSTER), (broken, StepId.INSTALL))] == ["flagged"] * 2


def test_active_install_is_not_flagged(catalog: Catalog) -> None:
    state = on_eos(catalog, replace(READY, steps=BROKEN, tasks=frozenset({"install"})))
    assert (mark(state, StepId.INSTALL), summary(state, StepId.INSTALL)) == ("open", "installing")


def test_leaving_a_step_forward_confirms_its_defaults(catalog: Catalog) -> None:
    answers = Answers()
    for step in (StepId.WORKLOAD, StepId.HARDWARE, StepId.SCALE):
        state = state_of(catalog, answers)
        assert mark(state, step) == "open"
        answers = with_step_confirmed(replace(state, step=step)).answers
        assert mark(state_of(catalog, answers), step) == "done"

    assert state_of(catalog, answers).proposal.selection == state_of(catalog).proposal.selection


def test_a_later_answer_that_became_invalid_flags_its_step(catalog: Catalog) -> None:
    answers = answer(answer(Answers(), "workload", "nemotron4-340b@25.12/340b"), "gpu", "gb200")
    state = state_of(catalog, answer(answers, "workload", "nemotron4@25.04/15b"))

    assert mark(state, StepId.WORKLOAD) == "done"
    assert mark(state, StepId.HARDWARE) == "flagged"
    assert all(problem.reason for problem in problems(state, StepId.HARDWARE))


def test_an_unlisted_scale_flags_the_scale_step(catalog: Catalog) -> None:
    state = state_of(catalog, replace(NEMOTRON, scale=96))
    assert mark(state, StepId.SCALE) == "flagged"
    assert mark(state, StepId.HARDWARE) != "flagged"


def test_most_severe_problem_comes_first(catalog: Catalog) -> None:
    order = ("error", "warning", "note")
    for workload in ("grok1@25.02/314b", "nemotron4@25.04/15b"):
        answers = answer(answer(Answers(), "workload", workload), "scale", "96")
        result = problems(state_of(catalog, answers), StepId.SCALE)
        assert [p.severity for p in result] == sorted((p.severity for p in result), key=order.index)


def test_an_option_that_the_recipe_does_not_have_flags_the_scale_step(catalog: Catalog) -> None:
    state = state_of(catalog, replace(NEMOTRON, options=RunOptions(nccl_trace=True)))
    errors = [problem.field for problem in problems(state, StepId.SCALE) if problem.severity == "error"]
    assert (mark(state, StepId.SCALE), errors) == ("flagged", ["nccl_trace"])


def test_summaries_show_answers_not_defaults(catalog: Catalog) -> None:
    assert all(status.summary == "" for status in statuses(state_of(catalog)))
    answered = state_of(catalog, replace(NEMOTRON, scale=None))

    assert summary(answered, StepId.WORKLOAD) == "nemotron4 15b"
    assert summary(answered, StepId.HARDWARE) == "H100 · bf16"
    assert summary(answered, StepId.SCALE) == ""
    ready = on_eos(catalog, READY)
    assert [summary(ready, step) for step in (StepId.CLUSTER, StepId.INSTALL)] == ["eos", "installed"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "64 GPUs"),
        (
            {"strong": True, "options": RunOptions(profile=True, save_checkpoint=True)},
            "64 GPUs · strong · profile · save",
        ),
        ({"procedure": "upstream"}, "64 GPUs · NVIDIA's scripts"),
    ],
)
def test_summary_of_the_scale_names_options_and_launch_method(
    catalog: Catalog, changes: dict[str, object], words: str
) -> None:
    answers = replace(NEMOTRON, scale=64, **changes)  # type: ignore[arg-type]  # fields of it
    assert summary(state_of(catalog, answers), StepId.SCALE) == words


def test_cluster_is_required_before_the_install(catalog: Catalog) -> None:
    assert unfinished_step(on_eos(catalog, ClusterState())) == "The cluster is not ready. Finish step 4 first."
    missing = on_eos(catalog, replace(READY, steps=MISSING))
    assert unfinished_step(missing) == "The installation is incomplete. Finish step 5 first."
    assert unfinished_step(on_eos(catalog, READY)) == ""


def test_plan_error_or_active_submission_blocks_a_submission(catalog: Catalog) -> None:
    assert submit_blocker(on_eos(catalog, READY)) == ""
    assert "96" in submit_blocker(state_of(catalog, replace(NEMOTRON, scale=96), EOS.name))
    wizard = Wizard(catalog)
    launch = Launch(draft_of(wizard.request).run, 0.0)
    assert "Another run is being submitted" in submit_blocker(replace(wizard.state, launch=launch))
