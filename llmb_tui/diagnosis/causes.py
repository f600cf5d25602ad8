"""`CauseFinder`: the causes that a log names for a failure, the most likely first.

A cause leads if it says what broke. Then come, in the order of time, what noticed it, the last words of programs and
the reason why the run stopped; causes on the rank that torchrun names first precede all others. Errors that were
caught or retried come after them, and at the end lines that only say that something ended.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from llmb_tui.diagnosis.records import Record, RecordReader, last_words
from llmb_tui.diagnosis.rule import WEIGHTS, Diagnosis, FailureStage, place_words
from llmb_tui.diagnosis.rule_set import Match, RuleSet
from llmb_tui.language.redact import without_secrets
from llmb_tui.language.text import capital, count_in, quotation

_TIERS = {"cause": 0, "symptom": 1, "last words": 1, "stopped": 1, "end": 3}
_CAUGHT = 2
_RETRIED = re.compile(r"\b[Rr]etrying\b|\bwill retry\b|\b[Rr]etry \d{1,4}(?: of |/)\d|\b[Aa]ttempt \d{1,4}(?: of |/)\d")
_MOST_FOUND = 200
_MOST_KEPT = 1000
_SAME = 40
"""Number of last characters by which a quotation of another line is recognised."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause of a failure. All texts are clean, without the prefixes of the log."""

    what: str
    why: str
    """Quotation, with the place it comes from."""
    fix: str
    """Remedy; empty if the words carry none."""
    stage: FailureStage
    line: str
    line_number: int
    rank: int | None
    node: str | None
    rule: str
    """Name of the rule: its file and its place there."""
    weight: int

    def diagnosis(self) -> Diagnosis:
        """The cause as it is shown and stored with a run."""
        return Diagnosis(self.line, self.what, self.fix, self.weight, rank=self.rank, node=self.node)


@dataclass(frozen=True, slots=True)
class _Found:
    """The first record that a rule matches."""

    match: Match
    line: str
    record: Record


class CauseFinder:
    """Collects causes from the lines of a log, in order. Memory does not grow with the log."""

    def __init__(self, rules: RuleSet, stage: FailureStage = "training") -> None:
        self._rules, self._stage = rules, stage
        self._reader = RecordReader()
        self._found: dict[tuple[int, str], _Found] = {}
        self._first_failures: dict[str, Record] = {}
        self._no_match: set[str] = set()
        """Single lines that no rule matches: thousands of ranks print the same warnings."""

    def feed(self, lines: Iterable[tuple[int, str]]) -> None:
        """Read clean lines, each with its number."""
        for number, line in lines:
            for record in self._reader.feed(self._rules.excerpt(line), number):
                if record.text in self._no_match:
                    continue
                is_known = _add(record, self._rules, self._found, self._first_failures)
                if not is_known and record.kind == "line" and len(self._no_match) < _MOST_KEPT:
                    self._no_match.add(record.text)

    def causes(self) -> tuple[Cause, ...]:
        """The causes that the lines so far name."""
        found, first_failures = dict(self._found), dict(self._first_failures)
        for record in self._reader.unfinished():
            _add(record, self._rules, found, first_failures)
        first = first_failures[min(first_failures)] if first_failures else None

        def order(item: _Found) -> tuple[int, int, bool, int]:
            record = item.record
            is_first = first is not None and record.rank == first.rank
            by_order = item.match.order if self._stage != "training" else 0
            return self._tier(item), by_order, not is_first, record.line_number

        return tuple(self._cause(item) for item in sorted(found.values(), key=order))

    def _tier(self, item: _Found) -> int:
        tier, record = _TIERS[item.match.rule.weight], item.record
        is_caught = record.kind == "exception" and record.line_number in self._reader.caught
        is_retried = record.kind == "line" and _RETRIED.search(item.line)
        return _CAUGHT if (tier == 1 and is_caught) or (tier < _CAUGHT and is_retried) else tier

    def _cause(self, item: _Found) -> Cause:
        match, record = item.match, item.record
        diagnosis = match.diagnosis()
        line, reason, fix = map(without_secrets, (item.line, diagnosis.reason, diagnosis.fix))
        line = quotation(line)
        named = count_in(match.groups.get("rank") or "")
        rank = record.rank if named is None else named
        node = match.groups.get("node") or record.node
        place = place_words(rank, node)
        weight = WEIGHTS.index("end") + 1 if self._tier(item) == _CAUGHT else match.weight
        why = f"{capital(place)}: {line}" if place else line
        number = record.line_number + _offset(record, item.line)
        return Cause(reason, why, fix, self._stage, line, number, rank, node, match.rule_name, weight)


def _add(
    record: Record, rules: RuleSet, found: dict[tuple[int, str], _Found], first_failures: dict[str, Record]
) -> bool:
    """Add a record to `found`; return False if no rule matches it."""
    if record.first_failure_at:
        first_failures.setdefault(record.first_failure_at, record)
    if not rules.may_match(record.text) or (match := rules.match(record.text)) is None:
        return False
    line = _matched_line(record, rules, match)
    key = match.order, line if match.rule.weight == "last words" else match.diagnosis().reason
    earlier = found.get(key)
    if earlier is None:
        if len(found) < _MOST_FOUND:
            found[key] = _Found(match, line, record)
        return True
    kept, rank, node = earlier.record, earlier.record.rank, earlier.record.node
    if rank is None and node is None:
        found[key] = _Found(match, line, record) if (record.rank, record.node) != (None, None) else earlier
    elif line[-_SAME:] in earlier.line or earlier.line[-_SAME:] in line:
        kept = replace(kept, rank=record.rank if rank is None else rank, node=record.node if node is None else node)
        found[key] = replace(earlier, record=kept)
    return True


def _matched_line(record: Record, rules: RuleSet, match: Match) -> str:
    """The line of a record that its rule matches; its last words if the rule matches several lines together."""
    if record.kind == "line":
        return record.text
    words = last_words(record)
    if rules.fits(match.order, words):
        return words
    lines = (line.strip() for line in record.text.splitlines())
    return next((line for line in lines if rules.fits(match.order, line)), words)


def _offset(record: Record, line: str) -> int:
    """Number of lines of a record before this one. Lines of other writers between them are not counted."""
    lines = [one.strip() for one in record.text.splitlines()]
    return lines.index(line) if line in lines else 0
