"""Lines that say why a run failed, in plain words with what to do; and the ones that only look like it.

A log holds thousands of lines with the word error in them. Only what a rule knows counts, the most telling line wins,
and among equals the first one: the ranks that follow only report that another died.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from llmb_tui.cluster.job import Job
from llmb_tui.diagnosis.rule import Diagnosis
from llmb_tui.diagnosis.rules import rules
from llmb_tui.language.text import clean_line
from llmb_tui.watch.lines import display_text

# How far a line is looked at on either side of the word that was found: a line can have many megabytes.
_REACH = 2000


def worst(data: bytes) -> Diagnosis | None:
    """The most telling failure line of `data`, which holds whole lines."""
    rule_set = rules("training")
    matches = ((line, match) for line in _suspects(data) if (match := rule_set.match(line.decode("utf-8", "replace"))))
    line, match = max(matches, key=lambda pair: pair[1].weight, default=(b"", None))
    return replace(match.diagnosis(), line=display_text(line)) if match else None


def of_job(job: Job, scheduler: str) -> Diagnosis | None:
    """Why a job failed as far as its scheduler's own words for its end say; None of one that did not."""
    code = f"exit code {job.exit_code}" if job.exit_code and job.exit_code != "0:0" else ""
    told, rule_set = ", ".join(filter(None, (job.state, code, job.reason, *job.bad_nodes))), rules("job")
    # What is said of one scheduler alone names it; the rest is said of every one.
    match = rule_set.match(f"{scheduler}: {told}") or rule_set.match(told)
    line = clean_line(f"{scheduler}: {', '.join(filter(None, (job.state, code, *job.bad_nodes)))}")
    return replace(match.diagnosis(), line=line) if match else None


def _suspects(data: bytes) -> Iterator[bytes]:
    """The lines with a word that failures have, in order, each once."""
    hits = set[int]()
    for word in rules("training").search_words:
        at = data.find(word)
        while at >= 0:
            hits.add(at)
            at = data.find(word, at + len(word))
    beyond = 0
    for at in sorted(hits):
        if at < beyond:
            continue
        low = max(0, at - _REACH)
        first = max(data.rfind(b"\n", low, at), data.rfind(b"\r", low, at)) + 1 or low
        ends = [where for mark in (b"\n", b"\r") if (where := data.find(mark, at, at + _REACH)) >= 0]
        beyond = min(ends, default=min(len(data), at + _REACH))
        yield data[first:beyond]
