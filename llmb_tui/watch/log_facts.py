"""`LogFacts`: the facts of one training log that a result needs, for any run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from llmb_tui.catalog.recipe import LogFormatId
from llmb_tui.watch.state import Statement, Step


@dataclass(frozen=True, slots=True)
class CheckpointTime:
    """One checkpoint that was saved or loaded."""

    kind: Literal["save", "load"]
    iteration: int | None
    """Iteration number of the log; None if the log does not give it."""
    seconds: float


@dataclass(frozen=True, slots=True)
class LogFacts:
    """What one log says."""

    format: LogFormatId
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
    again_at: tuple[int, ...] = ()
    """Of its starts, as in `Progress`."""
    statements: tuple[Statement, ...] = ()
    """As in `Progress`."""

    @property
    def step_times_s(self) -> tuple[tuple[int, float], ...]:
        """(step index, time) of the steps that say theirs."""
        return tuple((step.index, step.step_time_s) for step in self.steps if step.step_time_s is not None)

    @property
    def versions_by_name(self) -> dict[str, str]:
        """Version by name; versions of several nodes are joined by commas."""
        found: dict[str, list[str]] = {}
        for name, value in self.versions:
            found.setdefault(name, []).append(value)
        return {name: ", ".join(sorted(values)) for name, values in found.items()}
