"""Launch methods: as an answer, as choices, in the copied command and in the rail."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.launch.prepared import LaunchPreview
from llmb_tui.launch.procedure_loader import recipe_preview
from llmb_tui.launch.procedures import procedures_on
from llmb_tui.plan.plan import Problem
from llmb_tui.plan.selection import ProcedureId
from llmb_tui.wizard.answers import Answers, answer, answers_from_selection, command, value_of
from llmb_tui.wizard.choices import Choice, procedures
from llmb_tui.wizard.gates import command_line, summary
from llmb_tui.wizard.steps import StepId
from tests.kit.runs import NEMOTRON
from tests.launch.runai.workload_cases import NEMOTRON_340B, PROFILE
from tests.wizard.wizard_states import EOS, Wizard

ON_BOTH = answers_from_selection(NEMOTRON_340B)
"""Answers that both kinds of cluster can run."""


def test_direct_is_the_default_procedure() -> None:
    assert value_of(Answers(), "procedure") == "direct"
    assert value_of(answer(Answers(), "procedure", "upstream"), "procedure") == "upstream"


@pytest.mark.parametrize("value", ["direct", "", "published"])
def test_unknown_procedure_is_replaced_by_direct(value: str) -> None:
    answers = answer(answer(Answers(), "procedure", "upstream"), "procedure", value)
    assert answers == Answers()


def test_another_workload_keeps_the_procedure() -> None:
    answers = answer(answer(Answers(), "procedure", "upstream"), "workload", "grok1@25.02/314b")
    assert answers.procedure == "upstream"
    assert answers_from_selection(NEMOTRON, "eos", "upstream").procedure == "upstream"


def shown(catalog: Catalog, **problems: tuple[Problem, ...]) -> tuple[Choice, ...]:
    """The choices, given the problems of each procedure."""
    rules = Wizard(catalog).state.rules
    return procedures(rules, {name: LaunchPreview(problems=problems.get(name, ())) for name in ("direct", "upstream")})


def test_both_procedures_are_offered_and_upstream_names_its_release(catalog: Catalog) -> None:
    rules = Wizard(catalog).state.rules
    for recipe in catalog.recipes:
        assert recipe.upstream is not None
        direct, published = procedures(rules, {name: recipe_preview(name, recipe) for name in procedures_on(None)})
        assert (direct.value, published.value) == ("direct", "upstream")
        assert direct.disabled_reason is published.disabled_reason is None
        assert recipe.upstream.tag in published.detail


def test_error_but_no_warning_disables_a_procedure_with_its_reason(catalog: Catalog) -> None:
    against = (
        Problem("vboost", "warning", "launch.sh gives no more power.", "Leave it."),
        Problem("steps", "error", "launch.sh takes no number of steps.", "Give none."),
    )
    direct, published = shown(catalog, upstream=against)
    assert direct.disabled_reason is None
    assert published.disabled_reason == "launch.sh takes no number of steps."
    assert shown(catalog, upstream=against[:1])[1].disabled_reason is None


def test_custom_recipe_may_lack_upstream(catalog: Catalog) -> None:
    lean = replace(catalog.recipes[0], upstream=None)
    rules = Wizard(catalog).state.rules
    direct, published = procedures(rules, {name: recipe_preview(name, lean) for name in procedures_on(None)})
    assert direct.disabled_reason is None
    assert published.disabled_reason is not None
    assert published.detail == ""


def test_command_names_the_upstream_procedure() -> None:
    assert command(NEMOTRON, "eos", "upstream").endswith(" --cluster eos --procedure upstream")
    assert "--procedure" not in command(NEMOTRON, "eos")
    assert "--procedure" not in command(NEMOTRON, None, "upstream")  # `plan` has no procedure


@pytest.mark.parametrize(("chosen", "cluster"), [("upstream", PROFILE.name), ("runai", EOS.name)])
def test_rail_and_command_omit_a_procedure_that_the_cluster_lacks(
    catalog: Catalog, chosen: ProcedureId, cluster: str
) -> None:
    """The method was chosen for another cluster; the default method of this cluster is used."""
    wizard = Wizard(catalog, replace(ON_BOTH, procedure=chosen), cluster, profiles=(EOS, PROFILE))
    assert wizard.state.procedure == procedures_on(wizard.state.proposal.profile)[0]
    assert summary(wizard.state, StepId.SCALE) == "256 GPUs"
    assert command_line(wizard.state).endswith(f"--scale 256 --cluster {cluster}")


def test_rail_and_command_name_the_chosen_upstream_procedure(catalog: Catalog) -> None:
    wizard = Wizard(catalog, replace(ON_BOTH, procedure="upstream"))
    assert summary(wizard.state, StepId.SCALE) == "256 GPUs · NVIDIA's scripts"
    assert command_line(wizard.state).endswith("--cluster eos --procedure upstream")
