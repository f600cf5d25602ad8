"""`LogFormat`: everything in which formats of training logs differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from llmb_tui.catalog.recipe import LogFormatId
from llmb_tui.watch.state import Step


@dataclass(frozen=True, slots=True)
class LogFormat:
    """One format. It is chosen by a recipe, or by how many steps it finds in a log."""

    id: LogFormatId
    records: Callable[[bytes, int], Iterator[tuple[int, Step]]]
    """(text, begin) → (end, step) for each whole record from `begin` on, in order."""
    repaints: bool = False
    """A record of the same step may come again, as a progress bar is painted: the last one counts."""
    counts_only_samples: bool = False
    """A record has no global batch size; the total of samples at the last step, rounded, has to do."""
    upstream_framework: str = ""
    """The framework of such a log in the words of llmb-run; empty: llmb-run tells it by the lines."""
