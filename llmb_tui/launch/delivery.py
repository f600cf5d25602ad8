"""`Delivery`: in what ways of submitting differ. What they share, at most once, is in `launch.submit`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from llmb_tui.cluster.job_log import JobLog
from llmb_tui.errors import Trouble
from llmb_tui.language.states import Submission
from llmb_tui.launch.run import Run

Tell = Callable[[str], None]
"""Told what a submission is doing, a clean line each."""


@dataclass(frozen=True, slots=True)
class Jobs:
    """What is known of a run's jobs."""

    ids: tuple[str, ...] = ()
    """The one that is watched comes last."""
    log: JobLog | None = None
    """Where that one writes, if that was not known before."""
    question: str = ""
    """Why it cannot be said yet which they are, a sentence or two; empty where there are none, or they are known."""
    note: str = ""
    """What a person should know of a run that is submitted."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is known of a submission."""

    submission: Submission
    note: str = ""
    jobs: Jobs = Jobs()
    """Of one that is `submitted`."""
    age_s: float = 0.0
    """Seconds since then."""


class Delivery(Protocol):
    """One run on its way to its cluster. Whatever raises may be called again."""

    def sent_before(self) -> bool:
        """Whether the cluster has anything of it: asked of an intent that was stored already. Raises Trouble."""

    def prepare(self, script: str) -> None:
        """Make sure of everything that is wanted; nothing is started. `script` is what a person has agreed to.

        Raises Trouble where something is missing there.
        """

    def begin(self) -> None:
        """Start it. Raises Trouble; of a connection that broke, that says whether it may have begun."""

    def answer(self, tell: Tell) -> Outcome:
        """Wait for what comes of it, some minutes at most. Raises Trouble where the cluster cannot be asked.

        What was lost on the way is sent again, where only one of the two can count.
        """

    def look(self, *, withdraw: bool) -> Outcome:
        """What has become of it; `withdraw`: where it has not begun by now, it never will. Raises as `answer` does."""

    def refusal(self, run: Run) -> Trouble:
        """The error for a person, from the note that a refused run remembers."""
