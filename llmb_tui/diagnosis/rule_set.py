"""`RuleSet`: the rules of one stage; the first rule that matches a text applies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from string import Formatter

from llmb_tui.diagnosis.literals import required_literal
from llmb_tui.diagnosis.rule import WEIGHTS, Diagnosis, FailureStage, Rule
from llmb_tui.language.text import clean_line

Say = Mapping[str, Mapping[str, str]]


class Matcher:
    """A compiled rule. Raises the errors of `re.compile` for an invalid pattern."""

    def __init__(self, rule: Rule, stage: FailureStage, say: Say, name: str) -> None:
        self.rule = rule
        self.name = name
        """File of the rule and its place there."""
        self._whole = stage == "pending"
        self._say = say
        flags = re.MULTILINE if stage in ("any", "training") else 0  # their texts are records of several lines
        self._patterns = [re.compile(pattern, flags) for pattern in rule.patterns]
        literals = [required_literal(pattern) for pattern in rule.patterns]
        self.literals = tuple(literals) if literals and all(literals) else rule.words
        """Each matching text contains one of these; empty if no such texts are known."""

    def groups(self, text: str) -> Mapping[str, str] | None:
        """Texts of the pattern's groups, as they are shown; None if the text does not match."""
        if self.rule.words and not self._has_word(text):
            return None
        return self.pattern_groups(text)

    def pattern_groups(self, text: str) -> Mapping[str, str] | None:
        """`groups` of a text that may lack the rule's words."""
        if not self._patterns:
            return {} if not self.rule.words or self._has_word(text) else None
        for pattern in self._patterns:
            if match := pattern.fullmatch(text) if self._whole else pattern.search(text):
                return {name: self._phrase(name, value or "") for name, value in match.groupdict().items()}
        return None

    def _has_word(self, text: str) -> bool:
        if self._whole:
            return text in self.rule.words
        for word in self.rule.words:  # noqa: SIM110 - `any` takes three times as long, and logs have many lines
            if word in text:
                return True
        return False

    def _phrase(self, name: str, value: str) -> str:
        return self._say.get(name, {}).get(value, clean_line(value))


@dataclass(frozen=True, slots=True)
class Match:
    """A rule that matches a text."""

    rule: Rule
    line: str
    order: int
    """Number of rules before it."""
    groups: Mapping[str, str]
    rule_name: str

    @property
    def weight(self) -> int:
        """Weight of the text; the greatest wins."""
        return WEIGHTS.index(self.rule.weight) + 1

    def diagnosis(self, facts: Mapping[str, str] | None = None) -> Diagnosis:
        """Reason and remedy in words; `facts`: values of `FACTS` for the rule's stage."""
        names = {**(facts or {}), **self.groups}
        reason, fix = self.rule.reason.format_map(names), self.rule.fix.format_map(names)
        return Diagnosis(self.line, reason, fix, self.weight, self.rule.key_would_help)


class RuleSet:
    """The rules of one stage."""

    def __init__(self, matchers: Iterable[Matcher]) -> None:
        self._matchers = tuple(matchers)
        numbered = list(enumerate(self._matchers))
        self._literals = [(literal, order) for order, matcher in numbered for literal in matcher.literals]
        self._always = [order for order, matcher in numbered if not matcher.literals]
        failures = [matcher.rule for matcher in self._matchers if not matcher.rule.harmless]
        self.search_words = _shortest(word for rule in failures for word in rule.words)
        """If all rules have words, each matching line contains one of these. Searching megabytes for words is much
        faster than matching patterns."""
        self.has_search_words = all(rule.words for rule in failures)
        words = "|".join(re.escape(word.decode()) for word in self.search_words) if self.has_search_words else ""
        self._has_word = re.compile(words)

    def match(self, text: str) -> Match | None:
        """The first rule that matches a clean text; None also for a harmless line."""
        for order in sorted({*self._always, *[order for literal, order in self._literals if literal in text]}):
            matcher = self._matchers[order]
            if (groups := matcher.groups(text)) is not None:
                return None if matcher.rule.harmless else Match(matcher.rule, text, order, groups, matcher.name)
        return None

    def may_match(self, text: str) -> bool:
        """Whether a text has a word that every text has which a rule with words matches."""
        return self._has_word.search(text) is not None

    def fits(self, order: int, text: str) -> bool:
        """Whether a part of a record fits the rule with this number of rules before it."""
        return self._matchers[order].pattern_groups(text) is not None


def names_in(text: str) -> set[str]:
    """The names in a reason or a remedy. Raises ValueError for other braces."""
    names = set[str]()
    for _, name, form, conversion in Formatter().parse(text):
        if name is not None:
            if form or conversion or not name.isidentifier():
                raise ValueError(f"{{{name}}} is not a name; write a literal brace twice")
            names.add(name)
    return names


def _shortest(words: Iterable[str]) -> tuple[bytes, ...]:
    """The words, without those that contain another one."""
    different = set(words)
    shortest = [word for word in different if not any(other in word for other in different - {word})]
    return tuple(word.encode() for word in sorted(shortest))
