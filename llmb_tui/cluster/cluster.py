"""`Cluster`: everything in which kinds of cluster differ for who looks after a job; a kind is a folder.

`AsksOnce` is what does not repeat its questions.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import copy
from typing import Any, Protocol, TypeVar

from llmb_tui.cluster.failures import Disconnected, ObserverMode, Unreachable
from llmb_tui.cluster.job import Job
from llmb_tui.cluster.job_log import JobLog
from llmb_tui.cluster.link import LinkHealth
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.remote_file import JobOutput
from llmb_tui.errors import Trouble
from llmb_tui.language.states import LinkState

T = TypeVar("T")
Asked = TypeVar("Asked", bound="AsksOnce")
_ASKED_AGAIN = 2


class Cluster(Protocol):
    """One cluster that is always there, asked from any thread; the base of each kind.

    Nothing is connected before the first question.

    Questions raise Disconnected, Unreachable, LoginNeeded and DeadlinePassed. Only `connect` asks a person anything.
    """

    profile: ClusterProfile
    """How it is reached, and what is asked of it."""
    read_only: bool
    """Observer mode: whatever would change the cluster is refused."""

    @property
    def state(self) -> LinkState:
        """Of the connection."""

    @property
    def banner(self) -> str:
        """What it greets with, clean; empty before the first connection, and for a kind that does not greet."""
        return ""

    @property
    def health(self) -> LinkHealth:
        """What is known of the connection at this moment. Never waits."""

    def connect(self, prompter: Prompter | None = None) -> None:
        """Connect unless that is done. `prompter` answers what that asks; None: nobody, and such a question fails."""

    def asking_once(self) -> Cluster:
        """The same cluster for checks that follow each other at once: what was answered is not asked again."""

    def ping(self) -> None:
        """A question that shows whether it answers at all."""

    def require_changes(self) -> None:
        """Raise `ObserverMode` where the cluster is only looked at: called by whatever would change it."""
        if self.read_only:
            raise ObserverMode(self.profile)

    def patiently(self, ask: Callable[[], T]) -> T:
        """What `ask` answers, which only looks: asked again, twice at most, where the connection breaks meanwhile.

        Raises what `ask` raises.
        """
        for _ in range(_ASKED_AGAIN):
            try:
                return ask()
            except (Disconnected, Unreachable):
                if self.state == "closed":
                    raise
        return ask()

    def close(self) -> None:
        """Close the connections for good."""

    def look(self, job_ids: Sequence[str]) -> dict[str, Job]:
        """What the scheduler knows of these jobs, by id; a job that it does not know is absent.

        Raises SchedulerTrouble when it cannot say, HalfAnswer when it knows only what has not ended.
        """

    def bad_nodes(self, node_list: str) -> tuple[str, ...]:
        """Those of these nodes that do not work, each with the reason. Raises SchedulerTrouble when it cannot say."""

    def cancel(self, job_id: str) -> bool:
        """Cancel a job; False for one that has ended already.

        Raises CancelOpen where that may be done although nobody has said so, SchedulerTrouble when it is refused, and
        `ObserverMode`.
        """

    def suspend(self, job_id: str) -> None:
        """Let a job give its nodes back; it stays, and can be resumed.

        Raises SchedulerTrouble where that is refused, and where its profile's `can_suspend` is False; and
        `ObserverMode`.
        """

    def resume(self, job_id: str) -> None:
        """Let a suspended job begin again. Raises as `suspend` does."""

    def accounting(self, job_ids: Sequence[str]) -> str:
        """What is written down of jobs that are over, as the scheduler says it, clean and without a secret.

        Empty as long as not all of it is there. Raises SchedulerTrouble when it cannot say.
        """

    def output(self, log: JobLog, job_id: str) -> JobOutput:
        """What a job writes."""


class AsksOnce:
    """Answers questions, each time anew unless it is one that is `asking_once`."""

    answers: dict[Hashable, Any] | None = None
    """What was answered so far; None: nothing is kept."""

    def asking_once(self: Asked) -> Asked:
        """The same for checks that follow each other at once: a question that was answered is not asked again."""
        once = copy(self)
        once.answers = {}
        return once

    def once(self, question: Hashable, ask: Callable[[], T]) -> T:
        """What `ask` answers to a question, or has answered."""
        if self.answers is None:
            return ask()
        if question not in self.answers:
            self.answers[question] = ask()
        answer: T = self.answers[question]
        return answer


class SchedulerTrouble(Trouble):
    """The scheduler of a cluster could not answer, or refused."""


class HalfAnswer(SchedulerTrouble):
    """Of jobs that have ended nothing is known at the moment."""

    queued: Mapping[str, Job]
    """The jobs that have not, by id."""


class CancelOpen(SchedulerTrouble):
    """The scheduler was asked to cancel a job, and its answer was lost."""

    def __init__(self, scheduler: str, job_id: str, lost: Trouble) -> None:
        super().__init__(
            f"It is not known whether job {job_id} will be cancelled.",
            f"{scheduler} was asked to, and its answer was lost: {lost.what} {lost.why}".rstrip(),
            "It may still do so: look at the run again, and cancel again if the job goes on.",
        )
