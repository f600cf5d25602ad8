"""`required_literal`: a text that every match of a regular expression contains, for a search before matching."""

from __future__ import annotations

import re

_QUANTIFIER = re.compile(r"[*+?]|\{\d*(?:,\d*)?\}")
_FLAGS = re.compile(r"\(\?[aiLmsux]+\)")
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]")
_OPAQUE = frozenset("xuUN0123456789")
"""Characters after a backslash that begin an escape of several characters."""


def required_literal(pattern: str) -> str:
    """The longest plain text in every match of a valid pattern; empty if this simple reading finds none.

    It reads only what stands outside of groups, classes and alternatives.
    """
    if _FLAGS.search(pattern):
        return ""
    runs, run, at, depth = [""], "", 0, 0
    while at < len(pattern):
        char, is_literal = pattern[at], False
        if char == "\\":
            char = pattern[at + 1]
            if char in _OPAQUE:
                return ""
            at, is_literal = at + 2, not char.isalnum()
        elif char == "[" and (found := _CLASS.match(pattern, at)):
            at = found.end()
        else:
            at += 1
            depth += (char == "(") - (char == ")")
            if char == "|" and depth == 0:
                return ""
            is_literal = char not in ".^$|()[{"
        quantifier = _QUANTIFIER.match(pattern, at)
        if is_literal and depth == 0 and quantifier is None:
            run += char
            continue
        runs.append(run)
        run = ""
        if quantifier is not None:
            at = quantifier.end()
            if pattern[at : at + 1] in ("?", "+"):  # lazy or possessive
                at += 1
    return max([*runs, run], key=len)
