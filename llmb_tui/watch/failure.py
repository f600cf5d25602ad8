"""Why a run failed: by the lines of its log, or by the words of its scheduler.

A log has thousands of lines with the word error, and most of its bytes are about something else. So the bytes are
searched for the words of the rules, and only the lines around these are read as records (`diagnosis/causes.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from llmb_tui.cluster.job import Job
from llmb_tui.diagnosis.causes import Cause, CauseFinder
from llmb_tui.diagnosis.rule import Diagnosis, LogStage
from llmb_tui.diagnosis.rules import log_rules, rules
from llmb_tui.language.text import clean_line

_BEFORE, _AFTER = 1 << 14, 1 << 12
"""Number of bytes around a matching word that are read as records: a traceback is above its last words."""


class LogCauses:
    """Finds the causes in a log that is read in pieces of complete lines."""

    def __init__(self, stage: LogStage = "training") -> None:
        self._rules = log_rules(stage)
        self._finder = CauseFinder(self._rules, stage)

    def feed(self, data: bytes, first_line: int = 1) -> None:
        """Read complete lines; `first_line`: number of the first one."""
        end, number = 0, first_line
        for low, high in self._windows(data):
            number += data.count(b"\n", end, low)
            self._finder.feed(_numbered(data[low:high], number))
            number += data.count(b"\n", low, high)
            end = high

    def causes(self) -> tuple[Cause, ...]:
        """The causes so far, the most likely first."""
        return self._finder.causes()

    def _windows(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Ranges of lines around the words that occur in failures, in order; everything if a rule has no words."""
        words = self._rules.search_words
        if not self._rules.has_search_words:
            yield 0, len(data)
            return
        hits = set[int]()
        for word in words:
            at = data.find(word)
            while at >= 0:
                hits.add(at)
                at = data.find(word, at + _AFTER)
        low = high = -1
        for at in sorted(hits):
            if at < high - _AFTER // 2:
                continue
            first, last = _line_start(data, max(0, at - _BEFORE)), _line_end(data, min(len(data), at + _AFTER))
            if first <= high:
                high = last
                continue
            if low >= 0:
                yield low, high
            low, high = first, last
        if low >= 0:
            yield low, high


def worst(data: bytes) -> Diagnosis | None:
    """The most likely cause in `data`, which contains complete lines."""
    log = LogCauses()
    log.feed(data)
    return next((cause.diagnosis() for cause in log.causes()), None)


def job_cause(job: Job, scheduler: str) -> Cause | None:
    """Reason of a failed job by the words of its scheduler, as a cause; None if they give none."""
    known = job_failure(job, scheduler)
    if known is None:
        return None
    return Cause(known.reason, known.line, known.fix, "job", known.line, 0, None, None, "job", known.weight)


def job_failure(job: Job, scheduler: str) -> Diagnosis | None:
    """Reason of a failed job by the words of its scheduler; None if they give none."""
    code = f"exit code {job.exit_code}" if job.exit_code and job.exit_code != "0:0" else ""
    text, rule_set = ", ".join(filter(None, (job.state, code, job.reason, *job.bad_nodes))), rules("job")
    # Rules for one scheduler begin with its name; the other rules apply to every scheduler.
    match = rule_set.match(f"{scheduler}: {text}") or rule_set.match(text)
    line = clean_line(f"{scheduler}: {', '.join(filter(None, (job.state, code, *job.bad_nodes)))}")
    return replace(match.diagnosis(), line=line) if match else None


def _numbered(data: bytes, number: int) -> Iterator[tuple[int, str]]:
    """(number, displayable text) of each line; frames of a progress bar have the number of their line."""
    for line in data.split(b"\n"):
        for frame in line.split(b"\r"):
            if frame.strip():
                yield number, clean_line(frame.decode("utf-8", "replace"))
        number += 1


def _line_start(data: bytes, at: int) -> int:
    """Start of the line at an offset; the offset itself if the line is very long."""
    low = max(0, at - _AFTER)
    return max(low, data.rfind(b"\n", low, at) + 1)


def _line_end(data: bytes, at: int) -> int:
    """End of the line at an offset; the offset itself if the line is very long."""
    end = data.find(b"\n", at, at + _AFTER)
    return end + 1 if end >= 0 else min(at + _AFTER, len(data))
