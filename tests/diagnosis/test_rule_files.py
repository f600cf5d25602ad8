"""Every rule of the program matches its example lines, and no earlier rule matches them."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

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


PATTERNS = [(stage, pattern) for stage, rule in RULES for pattern in rule.patterns]
_PARSER: Any = importlib.import_module("re._parser")
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT")
_MANY = 250
"""A repetition that may be as long as a word or a line."""


def _operations(parts: Any) -> Iterator[tuple[str, Any]]:
    return ((str(operation), value) for operation, value in parts)


def _parts_within(operation: str, value: Any) -> list[Any]:
    if operation in (*_REPEATS, "POSSESSIVE_REPEAT"):
        return [value[2]]
    if operation in ("ASSERT", "ASSERT_NOT"):
        return [value[1]]
    if operation == "BRANCH":
        return list(value[1])
    if operation == "SUBPATTERN":
        return [value[-1]]
    return [value] if operation == "ATOMIC_GROUP" else []


def _nested_repeats(parts: Any, *, is_repeated: bool = False) -> Iterator[str]:
    """Repetitions of many characters inside repetitions: the ways to match them double with each character."""
    for operation, value in _operations(parts):
        is_long = operation in _REPEATS and value[1] > _MANY
        if is_long and is_repeated:
            yield operation
        repeats = is_repeated or (operation in _REPEATS and value[1] > 9)
        for part in _parts_within(operation, value):
            yield from _nested_repeats(part, is_repeated=repeats)


def _begins_with_repeat(parts: Any) -> bool:
    """Whether a search tries a long repetition from every character of a text."""
    for operation, value in _operations(parts):
        if operation in ("AT", "ASSERT"):
            return False
        if operation == "ASSERT_NOT":
            continue
        if operation in _REPEATS and value[0] == 0 and value[1] <= _MANY:
            continue  # may be empty, so the next part counts too
        if operation in _REPEATS:
            return bool(value[1] > _MANY)
        return any(_begins_with_repeat(part) for part in _parts_within(operation, value))
    return False


@pytest.mark.parametrize(("stage", "pattern"), PATTERNS, ids=lambda value: value[:50])
def test_a_pattern_reads_a_long_word_once(stage: FailureStage, pattern: str) -> None:
    parts = _PARSER.parse(pattern, re.MULTILINE)
    assert list(_nested_repeats(parts)) == []
    assert stage == "pending" or not _begins_with_repeat(parts)  # texts of `pending` are matched as a whole


@pytest.mark.parametrize("pattern", [r"\w+: x", r"(?i)\w*(?:A|B)\w*C", r"(?:x|\S+) y", r"(?P<what>.*)z", r"a?\w+"])
def test_a_pattern_that_reads_a_long_word_from_each_letter_is_noticed(pattern: str) -> None:
    assert _begins_with_repeat(_PARSER.parse(pattern))


@pytest.mark.parametrize("pattern", [r"x(a+)+$", r"x(?:.*,)*y", r"x(?:(?:a|b)+c?){1,20}"])
def test_a_pattern_with_nested_repetitions_is_noticed(pattern: str) -> None:
    assert list(_nested_repeats(_PARSER.parse(pattern)))


@pytest.mark.parametrize("before", [0, 1_990, 5_000, 100_000])
@pytest.mark.parametrize("after", [0, 5_000, 100_000])
def test_words_of_a_rule_are_found_anywhere_in_a_long_line(before: int, after: int) -> None:
    message = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB"
    failure = worst(f"3: {'x' * before} {message} {'y' * after}\n".encode())
    assert failure is not None
    assert failure.reason == "A GPU ran out of memory."
    assert failure.rank == (3 if before < 16_000 else None)  # a prefix farther away is not read
    assert len(failure.line) <= 600


def test_the_last_words_of_a_traceback_with_very_long_lines_are_found() -> None:
    frames = "".join(f'  File "x.py", line {line}\n    {"y" * 30_000}\n' for line in range(30))
    log = f"Traceback (most recent call last):\n{frames}RuntimeError: CUDA out of memory\n"
    failure = worst(log.encode())
    assert failure is not None
    assert failure.reason == "A GPU ran out of memory."


def test_a_long_message_of_sbatch_is_explained_and_shown_in_part() -> None:
    words = f"Batch job submission failed: {'x' * 60_000} QOSMaxWallDurationPerJobLimit"
    error = launch_failure(f"{words} TP: unbound variable")
    assert "it has no TP" in error.what
    assert len(str(error)) < 1_200
