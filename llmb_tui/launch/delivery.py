"""`Delivery`: how one procedure submits a run. `launch.submit` has the shared part, which submits at most once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from llmb_tui.cluster.job_log import JobLog
from llmb_tui.errors import LlmbError
from llmb_tui.language.states import Submission
from llmb_tui.launch.run import Run

OnStatus = Callable[[str], None]
"""Receives the progress of a submission, one clean line per call."""


@dataclass(frozen=True, slots=True)
class Jobs:
    """The jobs of a run, as far as they are known."""

    ids: tuple[str, ...] = ()
    """Job ids; the watched job comes last."""
    log: JobLog | None = None
    """Log of the watched job, if the run's record does not have it yet."""
    question: str = ""
    """Why the job ids are still uncertain, one or two sentences; empty if they are known or there are none."""
    note: str = ""
    """A remark for the user about the submitted run."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a submission, as far as it is known."""

    submission: Submission
    note: str = ""
    jobs: Jobs = Jobs()
    """The jobs, if the state is `submitted`."""
    age_s: float = 0.0
    """Seconds since the submission."""


class Delivery(Protocol):
    """Submits one run to its cluster. A method that raised may be called again."""

    def was_sent(self) -> bool:
        """True if the cluster has any trace of the run. Called for a stored intent only. Raises LlmbError."""

    def prepare(self, script: str) -> None:
        """Prepare everything that the run needs, without starting anything. `script` is the confirmed script.

        Raises LlmbError if the cluster lacks something that the run needs.
        """

    def begin(self) -> None:
        """Start the submission. Raises LlmbError, which has `may_have_run` if the connection was lost."""

    def answer(self, on_progress: OnStatus) -> Outcome:
        """Wait for the outcome, a few minutes at most. Raises LlmbError if the cluster cannot be queried.

        A lost request is sent again only if at most one of the two can take effect.
        """

    def look_up(self, *, withdraw: bool) -> Outcome:
        """Look up the outcome. With `withdraw`, a submission that has not started never will. Raises like `answer`."""

    def refusal(self, run: Run) -> LlmbError:
        """The error to show for a rejected run, from the note in its record."""
