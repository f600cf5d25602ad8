"""`read_log`: all facts that one training log provides for a result, whoever started the run; read once, completely."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from llmb_tui.catalog.recipe import LogFormatId
from llmb_tui.errors import LlmbError
from llmb_tui.language.text import clean_line
from llmb_tui.store import documents
from llmb_tui.watch.log_facts import CheckpointTime, LogFacts
from llmb_tui.watch.log_formats.registry import LOG_FORMATS
from llmb_tui.watch.parse import StepParser
from llmb_tui.watch.state import Step
from llmb_tui.watch.statements import versions as versions_in

_PIECE = 1 << 20
_KEPT = "facts.json"
# The longest line that is searched for anything except steps.
_LINE = 4000

# NeMo's and Megatron's own words, of the recipes' versions (upstream.md, 3.3).
_CHECKPOINT = re.compile(
    rb"Global Checkpoint (Save|Load) : Rank ?: ?\d+ : (?:Iteration ?: ?(\d{1,15}) : )?Start time ?: ?[\d.]+s : "
    rb"(?:Save duration|Time spent in load_checkpoint) ?: ?(\d{1,12}(?:\.\d{1,20})?)s"
)
_SETTING = re.compile(rb"^((?:model|data|trainer|log|resume|optim)(?:[.\[][\w.\[\]]*)?) = (.*?)\r?$", re.MULTILINE)
_SIMULATED = b"simulated: no training happens"
"""First line of a log of the demo cluster."""
_MOST_FACTS = 4000
"""Maximum number of facts of one kind and log: the longest recipe prints some two hundred settings."""


def read_log(path: Path, log_format: LogFormatId | None = None) -> LogFacts:
    """Read a log; None as its format means the format in which most steps are found.

    Raises UnreadableLogError (exit code 1).
    """
    return facts_of(lambda: path.open("rb"), str(path), log_format)


def facts_of(opened: Callable[[], BinaryIO], name: str, log_format: LogFormatId | None) -> LogFacts:
    """Read a log through any open function, in the way of `read_log`; `name`: name of the log in an error."""
    try:
        with opened() as file:
            return _facts(file, log_format)
    except OSError as error:
        raise unreadable(name, error) from error


class UnreadableLogError(LlmbError):
    """One log cannot be read; other logs may still be readable."""


def unreadable(name: str, error: OSError) -> UnreadableLogError:
    """The error for a log that cannot be read."""
    return UnreadableLogError(
        f"{name} cannot be read.", f"{error.strerror}.", "Make it readable, or name another log.", exit_code=1
    )


def _facts(file: BinaryIO, log_format: LogFormatId | None) -> LogFacts:
    parsers = {name: StepParser(name) for name in LOG_FORMATS if log_format in (None, name)}
    steps: dict[LogFormatId, list[Step]] = {name: [] for name in parsers}
    checkpoints: list[CheckpointTime] = []
    versions: dict[tuple[str, str], None] = {}
    settings: dict[str, str] = {}
    begins = False
    tail = b""
    head = file.read(_LINE)
    simulated = _SIMULATED in head
    for data in chain((head,), iter(partial(file.read, _PIECE), b"")):
        for name, parser in parsers.items():
            steps[name].extend(parser.feed(data))
        text = tail + data
        whole = text.rfind(b"\n") + 1
        lines = text[:whole]
        checkpoints.extend(_checkpoints(lines))
        if len(versions) < _MOST_FACTS:
            versions.update(dict.fromkeys((name, value) for name, value, _ in versions_in(lines)))
        continues, begins = begins, b"\nmodel.config" in lines  # settings may continue in the next piece
        if (continues or begins) and len(settings) < _MOST_FACTS:
            settings.update(_settings(lines))
        tail = text[whole:][-_LINE:]
    checkpoints.extend(_checkpoints(tail))
    versions.update(dict.fromkeys((name, value) for name, value, _ in versions_in(tail)))
    for name, parser in parsers.items():
        steps[name].extend(parser.close())
    best = max(steps, key=lambda name: len(steps[name]))
    last, starts, again_at = last_start(steps[best])
    limited = tuple(versions)[:_MOST_FACTS], tuple(settings.items())[:_MOST_FACTS]
    stated = parsers[best].statements
    return LogFacts(best, tuple(last), tuple(checkpoints), starts, *limited, simulated, again_at, stated)


def _settings(text: bytes) -> Iterator[tuple[str, str]]:
    for match in _SETTING.finditer(text):
        yield clean_line(match[1].decode()), clean_line(match[2].decode(errors="replace"))


def keep_facts(folder: Path, facts: LogFacts) -> None:
    """Save the facts of a log in a run's folder, for use after the log is removed. Raises LlmbError."""
    documents.save(folder / _KEPT, facts)


def kept_facts(folder: Path) -> LogFacts | None:
    """Saved facts; None if there are none, or if they cannot be read."""
    with contextlib.suppress(LlmbError):
        return documents.load(folder / _KEPT, LogFacts)
    return None


def _checkpoints(text: bytes) -> Iterator[CheckpointTime]:
    for match in _CHECKPOINT.finditer(text):
        kind, iteration, seconds = match.groups()
        yield CheckpointTime(
            "save" if kind == b"Save" else "load", int(iteration) if iteration else None, float(seconds)
        )


def last_start(steps: list[Step]) -> tuple[list[Step], int, tuple[int, ...]]:
    """Steps that count, number of starts, and the steps at which the remaining starts after the first one began.

    The first step of a further start replaces the step of the same index, and all later steps.
    """
    kept: list[Step] = []
    again_at: list[int] = []
    starts = 1 if steps else 0
    for step in steps:
        if kept and (step.starts_again or step.index <= kept[-1].index):
            starts += 1
            while kept and kept[-1].index >= step.index:
                kept.pop()
            again_at = [*(at for at in again_at if at < step.index), step.index]
        kept.append(step)
    return kept, starts, tuple(again_at)
