"""`Finding`: one check of an archive with its result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from llmb_tui.language.states import FindingOutcome


@dataclass(frozen=True, slots=True)
class Finding:
    """One check with its result."""

    run: str
    """Id of the run; empty for the archive as a whole."""
    what: str
    """Short name of the check."""
    outcome: FindingOutcome
    words: str = ""
    """Result as a sentence; may contain remote text."""


def compared(run: str, what: str, wrong: Iterable[str], headline: str, agrees: str) -> Finding:
    """A finding with the text `agrees`, or with `headline` and the differences if any of `wrong` is not empty."""
    if differences := ", ".join(wrong):
        return Finding(run, what, "differs", f"{headline}: {differences}.")
    return Finding(run, what, "agrees", agrees)
