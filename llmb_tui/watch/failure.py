"""Log lines that explain why a run failed, and the remedies for them.

A log has thousands of lines with the word error. Only lines that a rule matches count. The most specific line wins, and
and among equals the first one, because later ranks only report that another one failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from llmb_tui.cluster.job import Job
from llmb_tui.diagnosis.rule import Diagnosis
from llmb_tui.diagnosis.rules import rules
from llmb_tui.language.text import clean_line
from llmb_tui.watch.lines import display_text

# Number of bytes of a line that are read before and after a matching word: a line can have many megabytes.
_REACH = 2000


def worst(data: bytes) -> Diagnosis | None:
    """The most specific failure line of `data`, which contains complete lines."""
    rule_set = rules("training")
    matches = ((line, match) for line in _suspects(data) if (match := rule_set.match(line.decode("utf-8", "replace"))))
    line, match = max(matches, key=lambda pair: pair[1].weight, default=(b"", None))
    return replace(match.diagnosis(), line=display_text(line)) if match else None


def job_failure(job: Job, scheduler: str) -> Diagnosis | None:
    """Reason of a failed job by the words of its scheduler; None if they give none."""
    code = f"exit code {job.exit_code}" if job.exit_code and job.exit_code != "0:0" else ""
    text, rule_set = ", ".join(filter(None, (job.state, code, job.reason, *job.bad_nodes))), rules("job")
    # Rules for one scheduler begin with its name; the other rules apply to every scheduler.
    match = rule_set.match(f"{scheduler}: {text}") or rule_set.match(text)
    line = clean_line(f"{scheduler}: {', '.join(filter(None, (job.state, code, *job.bad_nodes)))}")
    return replace(match.diagnosis(), line=line) if match else None


def _suspects(data: bytes) -> Iterator[bytes]:
    """Lines with a word that occurs in failures, in order, each once."""
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
        ends = [end for mark in (b"\n", b"\r") if (end := data.find(mark, at, at + _REACH)) >= 0]
        beyond = min(ends, default=min(len(data), at + _REACH))
        yield data[first:beyond]
