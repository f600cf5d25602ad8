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
    format: LogFormatId
    steps: tuple[Step, ...]
    """Steps in order, each once; of several starts, the last one's steps after those it continues."""
    checkpoints: tuple[CheckpointTime, ...]
    starts: int
    """Number of starts of the training in this log; 0 without a step."""
    versions: tuple[tuple[str, str], ...] = ()
    """(library, version) pairs of the log, clean; several nodes may have reported several values."""
    settings: tuple[tuple[str, str], ...] = ()
    """(field of NeMo's recipe, value) pairs, as our entry script prints them; empty for any other log."""
    simulated: bool = False
    """Whether the log states that nothing was trained."""
    again_at: tuple[int, ...] = ()
    """Steps at which further starts began, as in `Progress`."""
    statements: tuple[Statement, ...] = ()
    """Facts that the log states, as in `Progress`."""

    @property
    def step_times_s(self) -> tuple[tuple[int, float], ...]:
        """(step index, step time) of the steps that have a time."""
        return tuple((step.index, step.step_time_s) for step in self.steps if step.step_time_s is not None)

    @property
    def versions_by_name(self) -> dict[str, str]:
        """Version by name; versions of several nodes are joined by commas."""
        found: dict[str, list[str]] = {}
        for name, value in self.versions:
            found.setdefault(name, []).append(value)
        return {name: ", ".join(sorted(values)) for name, values in found.items()}
