"""Text of other programs, made safe and short for display."""

from __future__ import annotations

import pytest

from llmb_tui.language.text import count_in, short_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("12 %\b\b\b\b34 %", "34 %"),
        ("\b\babc", "abc"),
        ("a\b\b\bbc\bd", "bd"),
        ("abc\b\b", "a"),
        ("no backspaces", "no backspaces"),
        ("x" * 200, "x" * 159 + "…"),
    ],
)
def test_what_backspaces_overwrite_is_not_shown(text: str, shown: str) -> None:
    assert short_line(text) == shown


def test_an_answer_full_of_backspaces_takes_one_pass() -> None:
    half = 4_000_000  # took an hour when each pass over the text deleted one layer
    assert short_line("a" * half + "\b" * half + "the end") == "the end"


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("007", 7), ("9" * 18, 10**18 - 1), ("9" * 19, None), ("9" * 5000, None), ("", None), ("²", None),
     ("٣", None), ("-1", None), ("1 ", None)],
)  # fmt: skip
def test_a_count_has_at_most_18_ascii_digits(text: str, number: int | None) -> None:
    assert count_in(text) == number
