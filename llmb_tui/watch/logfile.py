"""`measure`: the step time of any training log, whoever started the run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import median

from llmb_tui.catalog.recipe import LogFormat
from llmb_tui.errors import Trouble
from llmb_tui.watch.parse import StepParser
from llmb_tui.watch.progress import after_warm_up
from llmb_tui.watch.state import Step

_PIECE = 1 << 20
_FORMATS: tuple[LogFormat, ...] = ("nemo2", "hydra")

# Logs of other jobs that lie beside the training logs: NeMo-Run's batch output, the boost slider, traces.
_NOT_TRAINING = ("sbatch_", "vboost", "nccltrace")


@dataclass(frozen=True, slots=True)
class LogSummary:
    """What one log says. Step times are None where it has no step with one."""

    path: Path
    steps_done: int
    steps_total: int | None
    last_s: float | None
    """Time of the last step, seconds."""
    median_s: float | None
    """Median of the steps after warm-up, seconds."""


def log_files(path: Path) -> list[Path]:
    """A log file itself, or the training logs (`*.out`) below a folder, by name."""
    if path.is_file():
        return [path]
    files = (file for file in path.rglob("*.out") if file.is_file())
    return sorted(file for file in files if not any(word in file.name for word in _NOT_TRAINING))


def measure(path: Path) -> LogSummary:
    """Read a log whole, in pieces. Raises Trouble when it cannot be read."""
    parsers = [StepParser(log_format) for log_format in _FORMATS]
    steps: list[list[Step]] = [[] for _ in parsers]
    try:
        with path.open("rb") as file:
            while data := file.read(_PIECE):
                for parser, of_parser in zip(parsers, steps, strict=True):
                    of_parser.extend(parser.feed(data))
    except OSError as error:
        raise Trouble(f"{path} cannot be read.", f"{error.strerror}.", "Name a training log.", exit_code=1) from error
    for parser, of_parser in zip(parsers, steps, strict=True):
        of_parser.extend(parser.close())
    return _summary(path, max(steps, key=len))


def _summary(path: Path, steps: list[Step]) -> LogSummary:
    if not steps:
        return LogSummary(path, 0, None, None, None)
    times = [(step.index, step.step_time_s) for step in steps if step.step_time_s is not None]
    warm = after_warm_up(times) if times else []
    last = steps[-1]
    return LogSummary(path, last.index + 1, last.total, last.step_time_s, median(warm) if warm else None)
