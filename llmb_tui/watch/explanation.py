"""`explain_log`: why a log ended as it did, whoever wrote it; read once, in pieces, with bounded memory."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from llmb_tui.catalog.recipe import LogFormatId
from llmb_tui.diagnosis.causes import Cause
from llmb_tui.diagnosis.prefixes import split_prefix
from llmb_tui.diagnosis.rule import LogStage
from llmb_tui.watch.failure import LogCauses
from llmb_tui.watch.lines import display_text
from llmb_tui.watch.log_formats.registry import LOG_FORMATS
from llmb_tui.watch.log_reader import last_start
from llmb_tui.watch.parse import StepParser
from llmb_tui.watch.remarks import log_remarks
from llmb_tui.watch.state import Step
from llmb_tui.watch.statements import add_slow_signs

_PIECE = 1 << 20
_TAIL = 1 << 16
_LAST_LINES = 10


@dataclass(frozen=True, slots=True)
class Explanation:
    """The causes that a log names. All texts are clean."""

    file: str
    stage: LogStage
    format: LogFormatId | None
    """Format of the step lines; None without a step."""
    steps: int
    starts: int
    whole: bool
    """Whether the last step of the training was reached."""
    has_times: bool
    """Whether the step lines have step times."""
    causes: tuple[Cause, ...]
    """The most likely first. Empty if the run is whole or the cause is unknown."""
    notes: tuple[str, ...]
    """Sentences about the steps, such as that they trained nothing. Empty if the log names a cause."""
    last_lines: tuple[str, ...]
    """Last lines of the log, without prefixes."""


def explain_log(file: BinaryIO, name: str, stage: LogStage = "training") -> Explanation:
    """Read a log to its end. Raises OSError."""
    parsers = {log_format: StepParser(log_format, counts_lines=True) for log_format in LOG_FORMATS}
    found: dict[LogFormatId, list[Step]] = {log_format: [] for log_format in LOG_FORMATS}
    slow_signs, other = dict[int, str](), LogCauses(stage)
    number, tail = 1, b""
    for piece in _pieces(file):
        if stage == "training":
            for log_format, parser in parsers.items():
                found[log_format] += parser.feed(piece)
            add_slow_signs(slow_signs, io.BytesIO(piece), len(piece))
        else:
            other.feed(piece, number)
            number += piece.count(b"\n")
        tail = (tail + piece)[-_TAIL:]
    for log_format, parser in parsers.items():
        found[log_format] += parser.close()
    best = max(found, key=lambda log_format: len(found[log_format]))
    steps, starts, again_at = last_start(found[best])
    causes = parsers[best].causes if stage == "training" else other.causes()
    return Explanation(
        name,
        stage,
        best if steps else None,
        len(steps),
        starts,
        whole=parsers[best].complete and not causes,
        has_times=any(step.step_time_s is not None for step in steps),
        causes=causes,
        notes=() if causes else tuple(log_remarks(steps, again_at, tuple(slow_signs.values()))),
        last_lines=tuple(_last_lines(tail)),
    )


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    """Complete lines of a file, or frames of a bar. A line longer than a piece is cut; the last line gets its end."""
    rest = b""
    while data := file.read(_PIECE):
        text = rest + data
        end = text.rfind(b"\n") + 1 or text.rfind(b"\r") + 1
        rest = text[end : end + _PIECE]
        if end:
            yield text[:end]
    if rest:
        yield rest + b"\n"


def _last_lines(tail: bytes) -> list[str]:
    lines = (split_prefix(display_text(line)).text.strip() for line in tail.split(b"\n"))
    return [line for line in lines if line][-_LAST_LINES:]
