"""The two procedures: as an answer, as choices, in the copied command, on the rail."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.launch.prepared import LaunchPreview
from llmb_tui.launch.procedure_loader import recipe_preview
from llmb_tui.launch.procedures import procedures_on
from llmb_tui.plan.plan import Problem
from llmb_tui.plan.selection import ProcedureId
from llmb_tui.wizard.answers import Answers, answer, answers_of, command, value_of
from llmb_tui.wizard.choices import Choice, procedures
from llmb_tui.wizard.gates import command_line, summary
from llmb_tui.wizard.steps import StepId
from tests.kit.runs import NEMOTRON
from tests.launch.runai.workload_cases import NEMOTRON_340B, PROFILE
from tests.wizard.wizard_states import EOS, Wizard

ON_BOTH = answers_of(NEMOTRON_340B)
"""What both kinds of cluster can run."""


def test_direct_is_meant_until_the_other_is_chosen() -> None:
    assert value_of(Answers(), "procedure") == "direct"
    assert value_of(answer(Answers(), "procedure", "upstream"), "procedure") == "upstream"


@pytest.mark.parametrize("value", ["direct", "", "published"])
def test_whatever_is_not_the_published_one_is_direct(value: str) -> None:
    answers = answer(answer(Answers(), "procedure", "upstream"), "procedure", value)
    assert answers == Answers()


def test_another_workload_keeps_the_procedure() -> None:
    answers = answer(answer(Answers(), "procedure", "upstream"), "workload", "grok1@25.02/314b")
    assert answers.procedure == "upstream"
    assert answers_of(NEMOTRON, "eos", "upstream").procedure == "upstream"


def shown(catalog: Catalog, **problems: tuple[Problem, ...]) -> tuple[Choice, ...]:
    """The choices with these problems, each of a procedure."""
    rules = Wizard(catalog).state.rules
    return procedures(rules, {name: LaunchPreview(problems=problems.get(name, ())) for name in ("direct", "upstream")})


def test_both_are_offered_and_the_published_one_names_its_release(catalog: Catalog) -> None:
    rules = Wizard(catalog).state.rules
    for recipe in catalog.recipes:
        assert recipe.upstream is not None
        direct, published = procedures(rules, {name: recipe_preview(name, recipe) for name in procedures_on(None)})
        assert (direct.value, published.value) == ("direct", "upstream")
        assert direct.disabled_reason is published.disabled_reason is None
        assert recipe.upstream.tag in published.detail


def test_an_error_disables_the_published_one_with_its_reason_and_a_warning_does_not(catalog: Catalog) -> None:
    against = (
        Problem("vboost", "warning", "launch.sh gives no more power.", "Leave it."),
        Problem("steps", "error", "launch.sh takes no number of steps.", "Give none."),
    )
    direct, published = shown(catalog, upstream=against)
    assert direct.disabled_reason is None
    assert published.disabled_reason == "launch.sh takes no number of steps."
    assert shown(catalog, upstream=against[:1])[1].disabled_reason is None


def test_a_recipe_of_ones_own_need_not_have_it(catalog: Catalog) -> None:
    lean = replace(catalog.recipes[0], upstream=None)
    rules = Wizard(catalog).state.rules
    direct, published = procedures(rules, {name: recipe_preview(name, lean) for name in procedures_on(None)})
    assert direct.disabled_reason is None
    assert published.disabled_reason is not None
    assert published.detail == ""


def test_the_command_names_the_published_one() -> None:
    assert command(NEMOTRON, "eos", "upstream").endswith(" --cluster eos --procedure upstream")
    assert "--procedure" not in command(NEMOTRON, "eos")
    assert "--procedure" not in command(NEMOTRON, None, "upstream")  # `plan` has no procedure


@pytest.mark.parametrize(("chosen", "cluster"), [("upstream", PROFILE.name), ("runai", EOS.name)])
def test_rail_and_command_name_no_procedure_that_the_cluster_does_not_have(
    catalog: Catalog, chosen: ProcedureId, cluster: str
) -> None:
    """It was chosen while another cluster was, and the usual one of this cluster would run."""
    wizard = Wizard(catalog, replace(ON_BOTH, procedure=chosen), cluster, profiles=(EOS, PROFILE))
    assert wizard.state.procedure == procedures_on(wizard.state.proposal.profile)[0]
    assert summary(wizard.state, StepId.SCALE) == "256 GPUs"
    assert command_line(wizard.state).endswith(f"--scale 256 --cluster {cluster}")


def test_rail_and_command_name_the_published_one_where_it_would_run(catalog: Catalog) -> None:
    wizard = Wizard(catalog, replace(ON_BOTH, procedure="upstream"))
    assert summary(wizard.state, StepId.SCALE) == "256 GPUs · NVIDIA's scripts"
    assert command_line(wizard.state).endswith("--cluster eos --procedure upstream")
