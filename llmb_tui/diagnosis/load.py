"""`load_rules`: reads, checks and compiles rule files."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from llmb_tui.diagnosis.rule import FACTS, PATTERN_ERRORS, STAGES, FailureStage, Rule, RuleFile, misplaced_flags
from llmb_tui.diagnosis.rule_set import Matcher, names_in
from llmb_tui.toml.lines import KeyPath
from llmb_tui.toml.read import TomlFileError, builtin_dir, read_toml, toml_files


class RuleError(TomlFileError):
    """An invalid file of failure rules. Exit code 1."""

    kind = "failure rule file"


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """A rule file with its compiled rules."""

    path: Path
    text: str
    rules: RuleFile
    matchers: dict[FailureStage, tuple[Matcher, ...]]


def load_rules(
    directories: Sequence[Path], on_problem: Callable[[RuleError], None] | None = None
) -> tuple[LoadedFile, ...]:
    """Every rule file of these directories, by name.

    An invalid file is reported to `on_problem` and skipped; without `on_problem`, `RuleError` is raised. The patterns
    of a user's file have a limit of time; one that exceeds it is reported in the same way when it is used.
    """
    loaded = []
    for path in toml_files(directories):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", FutureWarning)
                loaded.append(_load(path, on_problem))
        except RuleError as problem:
            if on_problem is None:
                raise
            on_problem(problem)
    return tuple(loaded)


def builtin_rules_dir() -> Path:
    """Directory of the built-in rules."""
    return builtin_dir() / "failures"


def example_problems(files: Sequence[LoadedFile]) -> Iterator[RuleError]:
    """Examples that their rule does not match, or not first, and counterexamples that it matches."""
    for stage in STAGES:
        matchers = [(file, *numbered) for file in files for numbered in enumerate(file.matchers.get(stage, ()))]
        for position, (file, index, matcher) in enumerate(matchers):
            for path, reason in _misfits(matcher, [earlier for *_, earlier in matchers[:position]]):
                yield RuleError.at(file.path, file.text, ((stage, index, *path), reason))


def _misfits(matcher: Matcher, earlier: Sequence[Matcher]) -> Iterator[tuple[KeyPath, str]]:
    key = "examples" if matcher.rule.examples else "words"
    for index, text in enumerate(matcher.rule.fitting):
        first = next((rule for rule in earlier if rule.groups(text) is not None), None)
        fits = matcher.groups(text) is not None
        if matcher.is_slow:  # has been reported
            return
        if not fits:
            yield (key, index), "the rule does not match it"
        elif first is not None:
            yield (key, index), f"an earlier rule matches it: {first.rule.reason or 'it is harmless'}"
    for index, text in enumerate(matcher.rule.counterexamples):
        if matcher.groups(text) is not None:
            yield ("counterexamples", index), "the rule matches it"


def _load(path: Path, on_problem: Callable[[RuleError], None] | None) -> LoadedFile:
    rules, text = read_toml(path, RuleFile, RuleError)
    faults = [((stage, index, *where), reason) for stage in STAGES for index, where, reason in _faults(rules, stage)]
    if faults:
        raise RuleError.at(path, text, *faults)

    def report(stage: FailureStage, rule: int, pattern: int) -> None:
        reason = "takes too long for some texts, as nested repetitions such as (a+)+ do, and is ignored"
        problem = RuleError.at(path, text, ((stage, rule, "patterns", pattern), reason))
        if on_problem is None:
            raise problem
        on_problem(problem)

    is_builtin = path.parent == builtin_rules_dir()
    matchers = {
        stage: tuple(
            Matcher(
                rule,
                stage,
                rules.say,
                f"{path.name}: {stage}[{index}]",
                on_slow=None if is_builtin else partial(report, stage, index),
            )
            for index, rule in enumerate(rules.of(stage))
        )
        for stage in STAGES
    }
    return LoadedFile(path, text, rules, matchers)


def _faults(rules: RuleFile, stage: FailureStage) -> Iterator[tuple[int, KeyPath, str]]:
    for index, rule in enumerate(rules.of(stage)):
        for where, reason in _rule_faults(rule, stage):
            yield index, where, reason


def _rule_faults(rule: Rule, stage: FailureStage) -> Iterator[tuple[KeyPath, str]]:
    """Faults of a rule, beyond the types of its fields."""
    if not rule.words and not rule.patterns:
        yield (), "words or patterns are missing"
    elif stage in ("any", "training") and not rule.words:
        yield (), "words are missing; a log is searched for words first"
    if "" in rule.words:
        yield ("words", rule.words.index("")), "is empty and would match every text"
    if not rule.examples and (stage != "pending" or rule.patterns):
        yield (), "examples are missing"
    if bool(rule.reason) == rule.harmless:
        yield ("reason",), "is missing" if not rule.harmless else "is not allowed for a harmless line"
    for flag in misplaced_flags(rule, stage):
        yield (flag,), f"has no meaning in {stage}"
    groups: list[set[str]] = []
    for position, pattern in enumerate(rule.patterns):
        try:
            compiled = re.compile(pattern)
        except PATTERN_ERRORS as error:
            yield ("patterns", position), f"is not a regular expression: {error}"
        else:
            groups.append(set(compiled.groupindex))
            if compiled.search(""):
                yield ("patterns", position), "matches every text"
    in_all = set.intersection(*groups) if groups else set()  # any of the patterns may match
    yield from _text_faults(rule, in_all | FACTS.get(stage, frozenset()))


def _text_faults(rule: Rule, names: set[str]) -> Iterator[tuple[KeyPath, str]]:
    for key in ("reason", "fix"):
        try:
            unknown = names_in(getattr(rule, key)) - names
        except ValueError as error:
            yield (key,), str(error)
        else:
            if unknown:
                among = f". Known: {', '.join(sorted(names))}" if names else ""
                yield (key,), f"{{{min(unknown)}}} is not a group of every pattern{among}"
