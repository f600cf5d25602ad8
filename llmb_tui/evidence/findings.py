"""`Finding`: what was checked of an archive, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from llmb_tui.language.states import FindingOutcome


@dataclass(frozen=True, slots=True)
class Finding:
    """One check."""

    run: str
    """Id of the run; empty: of the archive as a whole."""
    what: str
    """What was checked, in a few words."""
    outcome: FindingOutcome
    words: str = ""
    """What was found; may be remote text."""


def compared(run: str, what: str, wrong: Iterable[str], otherwise: str, agrees: str) -> Finding:
    """It agrees, in these words, unless something is `wrong`, which `otherwise` introduces."""
    if said := ", ".join(wrong):
        return Finding(run, what, "differs", f"{otherwise}: {said}.")
    return Finding(run, what, "agrees", agrees)
