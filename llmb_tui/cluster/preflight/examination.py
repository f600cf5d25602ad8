"""What the checks of a preflight have in common. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from llmb_tui.cluster.batch import NO_ANSWER, Answer
from llmb_tui.cluster.preflight.report import Check
from llmb_tui.text import clean_line

Answers = Mapping[str, Answer]
"""By the name of the command."""

ADMINISTRATORS = "Ask the cluster's administrators."
TIMED_OUT = 124
"""Exit code of what `limited` had to end."""


@dataclass(frozen=True, slots=True)
class Examination:
    """Checks whose facts come with one remote call."""

    commands: Mapping[str, str]
    """sh snippets by name, for `run_batch`."""
    judge: Callable[[Answers], Iterable[Check]]
    deadline_s: float


def ok(name: str, title: str, found: str, needed: str) -> Check:
    """A check that passed."""
    return Check(name, title, "ok", found, needed, "")


def warning(name: str, title: str, found: str, needed: str, mend: str) -> Check:
    """A check that does not gate."""
    return Check(name, title, "warning", found, needed, mend)


def failed(name: str, title: str, found: str, needed: str, mend: str) -> Check:
    """A check that gates the next step."""
    return Check(name, title, "failed", found, needed, mend)


def cleaned(check: Check) -> Check:
    """The check with its texts made harmless."""
    found = clean_line(check.found).strip() or "no answer"
    return replace(check, found=found, needed=clean_line(check.needed), mend=clean_line(check.mend))


def said(answer: Answer) -> str:
    """The first line of what a command said."""
    if answer.exit_code in (TIMED_OUT, NO_ANSWER.exit_code):
        return "no answer in time"
    return answer.text.strip().partition("\n")[0]
