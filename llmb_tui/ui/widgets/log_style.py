"""Which parts of a log line stand out, and how a line is cut into pieces for it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Literal

Mark = Literal["value", "warning", "error", "match", "here", "selected"]
Span = tuple[int, int, Mark]

# Words that a program uses for its own errors; `num_errors`, `error_rate` and the like are none.
ERROR = re.compile(
    r"\b(?:[A-Z]\w*(?:Error|Exception)|ERROR|FATAL|CRITICAL|Traceback|Segmentation fault|Killed)\b"
    r"|\berror:|\b[Oo]ut of memory\b|\bDUE TO (?:TIME LIMIT|NODE FAILURE|PREEMPTION)\b"
)
_WARNING = re.compile(r"\bWARN(?:ING)?\b|\bWarning\b|\b[A-Z]\w*Warning\b|\bwarning:|\[NeMo W\b")
_VALUE = re.compile(r"(?:train_step_timing in s|reduced_train_loss|iteration)[:=]? ?(\d[\d./e+-]*)")


def standing_out(text: str) -> list[Span]:
    """The figures of the training's progress, and error and warning words."""
    spans: list[Span] = [(*found.span(1), "value") for found in _VALUE.finditer(text)]
    spans += [(*found.span(), "warning") for found in _WARNING.finditer(text)]
    spans += [(*found.span(), "error") for found in ERROR.finditer(text)]
    return spans


def pieces(text: str, spans: Iterable[Span]) -> list[tuple[str, tuple[Mark, ...]]]:
    """The text in pieces, each with the marks that lie over it, in the order of `spans`. Nothing is lost."""
    spans = [(max(0, start), min(end, len(text)), mark) for start, end, mark in spans]
    cuts = sorted({0, len(text), *(cut for start, end, _ in spans if start < end for cut in (start, end))})
    return [
        (text[start:end], tuple(mark for first, last, mark in spans if first <= start and end <= last))
        for start, end in pairwise(cuts)
    ]
