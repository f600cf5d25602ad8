"""Lines that say why a run failed, in plain words with what to do; and the ones that only look like it.

A log holds thousands of lines with the word error in them. Only what is named in `failure_rules` counts, the most
telling line wins, and among equals the first one: the ranks that follow only report that another died.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from llmb_tui.watch.failure_rules import NOISE, RULES, WORDS
from llmb_tui.watch.lines import shown

# How far a line is looked at on either side of the word that was found: a line can have many megabytes.
_REACH = 2000


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a run failed, as far as one line of its log says."""

    line: str
    """The line itself, clean."""
    reason: str
    fix: str
    weight: int
    """How telling the line is; the greater wins."""


def explain(line: bytes) -> Failure | None:
    """What one raw line says about a failure, or None."""
    if NOISE.search(line):
        return None
    for rule in RULES:
        if rule.pattern.search(line):
            return Failure(shown(line), rule.reason, rule.fix, rule.weight)
    return None


def worst(data: bytes, start: int = 0, end: int | None = None) -> Failure | None:
    """The most telling failure line of `data[start:end]`, which holds whole lines."""
    found: Failure | None = None
    for line in _suspects(data, start, len(data) if end is None else end):
        failure = explain(line)
        if failure and (found is None or failure.weight > found.weight):
            found = failure
    return found


def _suspects(data: bytes, start: int, end: int) -> Iterator[bytes]:
    """The lines with a word that failures have, in order, each once."""
    hits = set[int]()
    for word in WORDS:
        at = data.find(word, start, end)
        while at >= 0:
            hits.add(at)
            at = data.find(word, at + len(word), end)
    beyond = start
    for at in sorted(hits):
        if at < beyond:
            continue
        low = max(start, at - _REACH)
        first = max(data.rfind(b"\n", low, at), data.rfind(b"\r", low, at)) + 1 or low
        ends = [where for mark in (b"\n", b"\r") if (where := data.find(mark, at, min(end, at + _REACH))) >= 0]
        beyond = min(ends, default=min(end, at + _REACH))
        yield data[first:beyond]
