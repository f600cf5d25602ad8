"""Every rule of the program matches its example lines, and no earlier rule matches them."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from llmb_tui.cluster.batch import Answer
from llmb_tui.cluster.job_words import pending_reason
from llmb_tui.cluster.runai.values import Event, Workload, reason_of
from llmb_tui.cluster.slurm.errors import slurm_error
from llmb_tui.diagnosis.load import builtin_rules_dir, example_problems, load_rules
from llmb_tui.diagnosis.prefixes import split_prefix
from llmb_tui.diagnosis.rule import LOG_STAGES, STAGES, WEIGHTS, FailureStage, Rule
from llmb_tui.diagnosis.rules import log_rules, rules
from llmb_tui.launch.step_state import explain as explain_step
from llmb_tui.launch.upstream.output import launch_failure
from llmb_tui.watch.failure import worst

FILES = load_rules([builtin_rules_dir()])


class Case(NamedTuple):
    stage: FailureStage
    rule: Rule
    text: str


RULES = [(stage, rule) for file in FILES for stage in STAGES for rule in file.rules.of(stage)]
CASES = [Case(stage, rule, text) for stage, rule in RULES for text in rule.fitting]
COUNTER = [Case(stage, rule, text) for stage, rule in RULES for text in rule.counterexamples]


def of(stage: FailureStage, harmless: bool = False) -> pytest.MarkDecorator:
    cases = [case for case in CASES if case.stage == stage and case.rule.harmless == harmless]
    assert cases
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.text[:40])


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.stage}: {case.text[:40]}")
def test_each_example_is_spoken_of_by_its_rule(case: Case) -> None:
    match = (log_rules if case.stage in LOG_STAGES else rules)(case.stage).match(case.text)
    if case.rule.harmless:
        assert match is None
    else:
        assert match is not None
        assert match.rule == case.rule


@pytest.mark.parametrize("case", COUNTER, ids=lambda case: f"{case.stage}: {case.text[:40]}")
def test_a_line_that_only_resembles_a_failure_matches_no_rule(case: Case) -> None:
    assert rules(case.stage).match(case.text) is None


def test_our_rule_files_pass_config_validate() -> None:
    assert [problem.what for problem in example_problems(FILES)] == []


@of("training")
def test_a_line_of_a_log_is_picked_out_and_quoted(case: Case) -> None:
    failure = worst(f"before\n{case.text}\nafter\n".encode())
    assert failure is not None
    assert failure.line in {split_prefix(line).text.strip() for line in case.text.splitlines()}
    assert failure.weight == WEIGHTS.index(case.rule.weight) + 1


@of("training", harmless=True)
def test_a_harmless_line_of_a_log_is_passed_over(case: Case) -> None:
    assert worst(f"{case.text}\n".encode()) is None


@of("install")
def test_the_line_that_stopped_a_step_is_found_in_its_log(case: Case) -> None:
    failure = explain_step(["[INFO] Fetching image manifest", case.text, "enroot made no image."])
    match = rules("install").match(case.text)
    assert match
    assert failure.line == case.text.strip()
    assert failure.reason == match.diagnosis().reason
    assert match.rule == case.rule
    assert failure.key_would_help == case.rule.key_would_help
    assert failure.fix


@of("pending")
def test_a_reason_for_waiting_is_a_sentence(case: Case) -> None:
    words = pending_reason(f"({case.text})")
    assert words[0].isupper()
    assert words.endswith(".")
    assert "{" not in words


@of("slurm")
def test_a_failed_slurm_command_has_its_words_their_meaning_and_a_fix(case: Case) -> None:
    code, _, answer = case.text.partition("\n")
    error = slurm_error("squeue", Answer(int(code.removeprefix("exit code ")), answer))
    quoted, _, meaning = error.why.partition(". ") if ". " in error.why else ("", "", "")
    assert any(line.strip().removesuffix(".").startswith(quoted) for line in answer.split("\n"))
    assert meaning
    assert error.why.endswith(case.rule.reason)
    assert error.fix == case.rule.fix


@of("workload")
def test_the_explanation_of_a_waiting_workload_precedes_the_clusters_message(case: Case) -> None:
    assert case.rule.reason.endswith(".")
    reason, _, message = case.text.partition(" ")
    at = "2026-01-01T00:00:00Z"
    waiting = {"id": "w", "name": "n", "type": "Training", "phase": "Pending", "createdAt": at, "phaseUpdatedAt": at}
    event = {"createdAt": at, "type": "Warning", "reason": reason, "message": message}
    explained = reason_of(Workload.model_validate(waiting), [Event.model_validate(event)])
    assert explained == f"{case.rule.reason[:-1]}: {message}"


@of("launch")
def test_a_failed_launch_is_reported_as_not_submitted_with_its_reason(case: Case) -> None:
    error = launch_failure(case.text)
    assert error.what.startswith("The job was not submitted: ")
    assert case.text in error.why


def test_a_log_is_searched_for_few_words() -> None:
    """Each search word costs a pass over the whole log."""
    assert len(rules("training").search_words) <= 24
