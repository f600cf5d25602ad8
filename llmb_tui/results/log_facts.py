"""`read_log`: everything that one training log says for a result, whoever started the run; read once, whole."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Literal

from llmb_tui.catalog.recipe import LogFormat
from llmb_tui.errors import Trouble
from llmb_tui.store import documents
from llmb_tui.text import clean_line
from llmb_tui.watch.parse import StepParser
from llmb_tui.watch.state import Step

_PIECE = 1 << 20
_KEPT = "facts.json"
_FORMATS: tuple[LogFormat, ...] = ("nemo2", "hydra")
# The longest line that is looked at for anything but steps.
_LINE = 4000

# NeMo's and Megatron's own words, of the versions of the recipes (upstream.md, 3.3).
_SAVE = re.compile(
    rb"Global Checkpoint Save : Rank ?: ?\d+ : (?:Iteration ?: ?(\d+) : )?Start time ?: ?[\d.]+s : "
    rb"Save duration ?: ?([\d.]+)s"
)
_LOAD = re.compile(
    rb"Global Checkpoint Load : Rank ?: ?\d+ : (?:Iteration ?: ?(\d+) : )?Start time ?: ?[\d.]+s : "
    rb"Time spent in load_checkpoint ?: ?([\d.]+)s"
)
# (what must be in a piece of the log, name, its value), in the words of who prints it: our entry script; the recipes of
# 24.11 to 25.02 (upstream.md, 3.2); NCCL, where NCCL_DEBUG asks for it (NVIDIA/nccl issue 1212); the entry script of
# NVIDIA's containers, where the driver is too old for them (NVIDIA/nvidia-docker issue 1479).
_VERSIONS = (
    (b"NeMo ", "NeMo", re.compile(rb"^NeMo (\d\S*)\r?$", re.MULTILINE)),
    (b"Megatron Core ", "Megatron Core", re.compile(rb"^Megatron Core (\d\S*)\r?$", re.MULTILINE)),
    (b"PyTorch ", "PyTorch", re.compile(rb"^PyTorch (\d\S*)\r?$", re.MULTILINE)),
    (b"CUDA ", "CUDA", re.compile(rb"^CUDA (\d\S*)\r?$", re.MULTILINE)),
    (b"NCCL ", "NCCL", re.compile(rb"^NCCL (\d\S*)\r?$", re.MULTILINE)),
    (b"Transformer Engine ", "Transformer Engine", re.compile(rb"^Transformer Engine (\d\S*)\r?$", re.MULTILINE)),
    (b"NVIDIA driver ", "driver", re.compile(rb"^NVIDIA driver (\d\S*)\r?$", re.MULTILINE)),
    (b"GSW: MODEL=", "container", re.compile(rb"^GSW: MODEL=.* IMAGE='([^'\n]*)'", re.MULTILINE)),
    (b"GSW: MODEL=", "framework", re.compile(rb"^GSW: MODEL=.* FW_VERSION=(\S+)", re.MULTILINE)),
    (b"GSW: MODEL=", "recipe", re.compile(rb"^GSW: MODEL=.* GSW_VERSION=(\S+)", re.MULTILINE)),
    (b"NCCL version ", "NCCL", re.compile(rb"\bNCCL version (\d+\.\d+\.\d+\+cuda\d+\.\d+)")),
    (b"cudaDriverVersion ", "CUDA of the driver", re.compile(rb"\bcudaDriverVersion (\d{4,6})\b")),
    (
        b" was detected",
        "driver",
        re.compile(rb"\bNVIDIA Driver Release \S+ or later, but\s+version (\d\S+) was detected"),
    ),
)
_SETTING = re.compile(rb"^((?:model|data|trainer|log|resume|optim)(?:[.\[][\w.\[\]]*)?) = (.*?)\r?$", re.MULTILINE)
_SIMULATED = b"simulated: no training happens"
"""What the demo cluster's training says first."""
_MOST_FACTS = 4000
"""Of one log: the longest recipe prints some two hundred settings."""


@dataclass(frozen=True, slots=True)
class CheckpointTime:
    """One checkpoint that was saved or loaded."""

    kind: Literal["save", "load"]
    iteration: int | None
    """As the log counts; None where it does not say."""
    seconds: float


@dataclass(frozen=True, slots=True)
class LogFacts:
    """What one log says."""

    format: LogFormat
    steps: tuple[Step, ...]
    """In order, each once; of a log with several starts those of the last one, after what it went on from."""
    checkpoints: tuple[CheckpointTime, ...]
    starts: int
    """How often the training began in this log; 0 without a step."""
    versions: tuple[tuple[str, str], ...] = ()
    """(what, which) as far as the log says it, clean; several nodes may have said several values."""
    settings: tuple[tuple[str, str], ...] = ()
    """(field of NeMo's recipe, value) as our entry script prints what it trains with; none of any other log."""
    simulated: bool = False
    """It says that nothing was trained."""

    @property
    def versions_by_name(self) -> dict[str, str]:
        """What it says of each thing, several nodes' with commas."""
        found: dict[str, list[str]] = {}
        for name, value in self.versions:
            found.setdefault(name, []).append(value)
        return {name: ", ".join(sorted(values)) for name, values in found.items()}


def read_log(path: Path, log_format: LogFormat | None = None) -> LogFacts:
    """Read a log; None: its format is the one in which most steps are found.

    Raises Trouble (exit code 1) when it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return facts_of(file, log_format)
    except OSError as error:
        raise Trouble(f"{path} cannot be read.", f"{error.strerror}.", "Name a training log.", exit_code=1) from error


def facts_of(file: BinaryIO, log_format: LogFormat | None = None) -> LogFacts:
    """The same of an open file, in pieces. Raises OSError."""
    parsers = {name: StepParser(name) for name in _FORMATS if log_format in (None, name)}
    steps: dict[LogFormat, list[Step]] = {name: [] for name in parsers}
    checkpoints: list[CheckpointTime] = []
    versions: dict[tuple[str, str], None] = {}
    settings: dict[str, str] = {}
    tail = b""
    simulated: bool | None = None
    while data := file.read(_PIECE):
        if simulated is None:
            simulated = _SIMULATED in data[:_LINE]
        for name, parser in parsers.items():
            steps[name].extend(parser.feed(data))
        text = tail + data
        whole = text.rfind(b"\n") + 1
        lines = text[:whole]
        checkpoints.extend(_checkpoints(lines))
        if len(versions) < _MOST_FACTS:
            versions.update(dict.fromkeys(_versions(lines)))
        if len(settings) < _MOST_FACTS:
            settings.update(_settings(lines))
        tail = text[whole:][-_LINE:]
    checkpoints.extend(_checkpoints(tail))
    versions.update(dict.fromkeys(_versions(tail)))
    for name, parser in parsers.items():
        steps[name].extend(parser.close())
    best = max(steps, key=lambda name: len(steps[name]))
    last, starts = _last_start(steps[best])
    return LogFacts(
        best, tuple(last), tuple(checkpoints), starts, _first(versions), _first(settings.items()), bool(simulated)
    )


def _versions(text: bytes) -> Iterator[tuple[str, str]]:
    for marker, name, pattern in _VERSIONS:
        if marker in text:
            for match in pattern.finditer(text):
                value = clean_line(match[1].decode(errors="replace"))
                yield name, _cuda(value) if name == "CUDA of the driver" else value


def _cuda(number: str) -> str:
    """`12.2` of 12020."""
    return f"{int(number) // 1000}.{int(number) % 1000 // 10}"


def _settings(text: bytes) -> Iterator[tuple[str, str]]:
    if b"\nmodel.config" in text:
        for match in _SETTING.finditer(text):
            yield clean_line(match[1].decode()), clean_line(match[2].decode(errors="replace"))


def _first(pairs: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """No more than a log can say in earnest."""
    return tuple(islice(pairs, _MOST_FACTS))


def keep_facts(folder: Path, facts: LogFacts) -> None:
    """Keep what a log says in a run's folder, for when the log is removed. Raises Trouble."""
    documents.save(folder / _KEPT, facts)


def kept_facts(folder: Path) -> LogFacts | None:
    """What was kept; None where nothing was, or it cannot be read."""
    path = folder / _KEPT
    if path.is_file():
        with contextlib.suppress(Trouble):
            return documents.load(path, LogFacts)
    return None


def _checkpoints(text: bytes) -> Iterator[CheckpointTime]:
    """In the order in which they stand."""
    if b"Global Checkpoint " not in text:
        return
    found = [(match.start(), _checkpoint("save", match)) for match in _SAVE.finditer(text)]
    found += [(match.start(), _checkpoint("load", match)) for match in _LOAD.finditer(text)]
    yield from (checkpoint for _, checkpoint in sorted(found, key=lambda pair: pair[0]))


def _checkpoint(kind: Literal["save", "load"], match: re.Match[bytes]) -> CheckpointTime:
    iteration, seconds = match.groups()
    return CheckpointTime(kind, int(iteration) if iteration else None, float(seconds))


def _last_start(steps: list[Step]) -> tuple[list[Step], int]:
    """The steps as they were made last, and how many starts there were.

    A step that comes again replaces what it and all later ones were.
    """
    kept: list[Step] = []
    starts = 1 if steps else 0
    for step in steps:
        if kept and step.index <= kept[-1].index:
            starts += 1
            while kept and kept[-1].index >= step.index:
                kept.pop()
        kept.append(step)
    return kept, starts
