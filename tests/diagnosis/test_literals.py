"""A required literal occurs in every match of its pattern, so that a text without it needs no match."""

from __future__ import annotations

import re

import pytest

from llmb_tui.diagnosis.literals import required_literal
from llmb_tui.diagnosis.load import builtin_rules_dir, load_rules


@pytest.mark.parametrize(
    ("pattern", "literal"),
    [
        ("DUE TO TIME LIMIT", "DUE TO TIME LIMIT"),
        (r"error: \S{1,255}: tasks? ", "error: "),
        (r"\[Errno 28\] No space", "[Errno 28] No space"),
        (r"a[bc]]def", "]def"),
        ("x(?:long text|y)z", "x"),
        ("one|two", ""),
        ("ab*cd+efg", "efg"),
        ("ab{2,3}?cde", "cde"),
        (r"a\x41bc", ""),
        (r"(?i)error", ""),
        (r"^\s+$", ""),
        (r"it isn.t here now", "t here now"),
    ],
)
def test_the_longest_text_outside_of_groups_is_required(pattern: str, literal: str) -> None:
    assert required_literal(pattern) == literal


RULES = [
    rule
    for file in load_rules([builtin_rules_dir()])
    for stage in ("any", "training", "install", "launch", "submit", "slurm", "job")
    for rule in file.rules.of(stage)
]


def test_each_match_of_a_built_in_rule_contains_its_literal() -> None:
    matches = [
        (pattern, match[0])
        for rule in RULES
        for pattern in rule.patterns
        for text in rule.fitting
        if (match := re.search(pattern, text, re.MULTILINE))
    ]
    assert len(matches) > 200
    assert [pair for pair in matches if required_literal(pair[0]) not in pair[1]] == []
