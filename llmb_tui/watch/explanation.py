"""`explain_log`: why a log ended as it did, whoever wrote it; read once, in pieces, with bounded memory."""

from __future__ import annotations

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
from llmb_tui.watch.parse import StepParser
from llmb_tui.watch.state import Step

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
    last_lines: tuple[str, ...]
    """Last lines of the log, without prefixes."""


class _Steps:
    """Counts the steps of a log in one format."""

    def __init__(self, log_format: LogFormatId) -> None:
        self.format = log_format
        self.parser = StepParser(log_format, counts_lines=True)
        self.count = self.starts = 0
        self.has_times = False

    def add(self, steps: list[Step]) -> None:
        """Count further steps."""
        for step in steps:
            self.starts += not self.count or step.starts_again
            self.count += 1
            self.has_times = self.has_times or step.step_time_s is not None


def explain_log(file: BinaryIO, name: str, stage: LogStage = "training") -> Explanation:
    """Read a log to its end. Raises OSError."""
    formats, other = [_Steps(log_format) for log_format in LOG_FORMATS], LogCauses(stage)
    number, tail = 1, b""
    for piece in _pieces(file):
        if stage == "training":
            for steps in formats:
                steps.add(steps.parser.feed(piece))
        else:
            other.feed(piece, number)
            number += piece.count(b"\n")
        tail = (tail + piece)[-_TAIL:]
    for steps in formats:
        steps.add(steps.parser.close())
    best = max(formats, key=lambda steps: steps.count)
    causes = best.parser.causes if stage == "training" else other.causes()
    log_format = best.format if best.count else None
    whole = best.parser.complete and not causes
    return Explanation(
        name, stage, log_format, best.count, best.starts, whole, best.has_times, causes, tuple(_last_lines(tail))
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
