"""`LogFormat`: all properties in which formats of training logs differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from llmb_tui.catalog.recipe import LogFormatId
from llmb_tui.watch.state import Step


@dataclass(frozen=True, slots=True)
class LogFormat:
    """One format. A recipe names it; otherwise the format with the most steps in the log is chosen."""

    id: LogFormatId
    records: Callable[[bytes, int], Iterator[tuple[int, Step]]]
    """(text, begin) → (end, step) for each complete record from `begin` on, in order."""
    title: str = ""
    """Name of the format for people; empty: its id."""
    repaints: bool = False
    """Whether a record of the same step may be repeated, as by a progress bar; then the last one counts."""
    counts_only_samples: bool = False
    """Whether records lack the global batch size; it is then checked by the rounded total at the last step."""
    upstream_framework: str = ""
    """Framework of such a log in the words of llmb-run; empty: llmb-run detects it by the lines."""
