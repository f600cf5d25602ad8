"""`Cluster`: the interface to a cluster's connection and jobs, which each kind of cluster implements.

`AnswerCache` keeps the answers of a cluster, so that checks do not ask the same question twice.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import copy
from typing import Any, Protocol, TypeVar

from llmb_tui.cluster.failures import DisconnectedError, ReadOnlyError, UnreachableError
from llmb_tui.cluster.job import Job
from llmb_tui.cluster.job_log import JobLog
from llmb_tui.cluster.link import LinkHealth
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.remote_file import JobOutput
from llmb_tui.errors import LlmbError
from llmb_tui.language.states import LinkState

T = TypeVar("T")
Cached = TypeVar("Cached", bound="AnswerCache")
_RETRIES = 2


class Cluster(Protocol):
    """One cluster; the base class of each kind. Its methods may be called from any thread.

    The first question connects. A question to the cluster raises DisconnectedError, Unreachable, LoginNeededError or
    DeadlineError. Only `connect` asks the user anything.
    """

    profile: ClusterProfile
    """Saved settings: the route to the cluster, and what jobs use there."""
    read_only: bool
    """Read-only: everything that would change the cluster is refused."""

    @property
    def state(self) -> LinkState:
        """State of the connection."""

    @property
    def banner(self) -> str:
        """The cluster's greeting, clean; empty before the first connection, and for a kind without a greeting."""
        return ""

    @property
    def health(self) -> LinkHealth:
        """Present health of the connection. Never waits."""

    def connect(self, prompter: Prompter | None = None) -> None:
        """Connect unless connected. `prompter` answers questions of the login; without one, a question is an error."""

    def with_answer_cache(self) -> Cluster:
        """Return this cluster with a cache of answers, for a series of checks."""

    def ping(self) -> None:
        """Ask the shortest question. Raises an error unless the cluster answers."""

    def require_changes(self) -> None:
        """Raise `ReadOnlyError` if the cluster is read-only. Call this before every change."""
        if self.read_only:
            raise ReadOnlyError(self.profile)

    def retry_after_disconnect(self, ask: Callable[[], T]) -> T:
        """Call `ask`, which must be read-only, and return its result. Retry twice if the connection breaks.

        Raises the errors of `ask`.
        """
        for _ in range(_RETRIES):
            try:
                return ask()
            except (DisconnectedError, UnreachableError):
                if self.state == "closed":
                    raise
        return ask()

    def close(self) -> None:
        """Close the connections for good."""

    def query_jobs(self, job_ids: Sequence[str]) -> dict[str, Job]:
        """Read the state of these jobs from the scheduler, by id; a job that it does not know is absent.

        Raises PartialAnswerError if it answers only for jobs that have not ended, SchedulerError if it does not answer.
        """

    def bad_nodes(self, node_list: str) -> tuple[str, ...]:
        """The broken ones of these nodes, each with the reason. Raises SchedulerError if there is no answer."""

    def cancel(self, job_id: str) -> bool:
        """Cancel a job; False for one that has ended already.

        Raises CancelUnconfirmedError if the answer was lost, SchedulerError if the scheduler refuses, and
        `ReadOnlyError`.
        """

    def suspend(self, job_id: str) -> None:
        """Suspend a job: its nodes are released, and it can be resumed.

        Raises SchedulerError if the scheduler refuses or the profile's `can_suspend` is False, and `ReadOnlyError`.
        """

    def resume(self, job_id: str) -> None:
        """Resume a suspended job. Raises the errors of `suspend`."""

    def accounting(self, job_ids: Sequence[str]) -> str:
        """Accounting of jobs that have ended, in the scheduler's own form, clean and without secrets.

        Empty until all of it is recorded. Raises SchedulerError if there is no answer.
        """

    def output(self, log: JobLog, job_id: str) -> JobOutput:
        """Open the files that a job writes."""


class AnswerCache:
    """Base class of a cluster that keeps its answers in the copy that `with_answer_cache` makes."""

    answers: dict[Hashable, Any] | None = None
    """Answers so far, by question; None: answers are not kept."""

    def with_answer_cache(self: Cached) -> Cached:
        """Return a copy with an empty cache of answers, for a series of checks."""
        cached = copy(self)
        cached.answers = {}
        return cached

    def once(self, question: Hashable, ask: Callable[[], T]) -> T:
        """Return the cached answer to a question; without one, call `ask` and cache its result."""
        if self.answers is None:
            return ask()
        if question not in self.answers:
            self.answers[question] = ask()
        answer: T = self.answers[question]
        return answer


class SchedulerError(LlmbError):
    """The cluster's scheduler did not answer, or refused a request."""


class PartialAnswerError(SchedulerError):
    """The scheduler answered for queued jobs only: accounting, which has the ended jobs, did not answer."""

    queued: Mapping[str, Job]
    """Jobs that have not ended, by id."""


class CancelUnconfirmedError(SchedulerError):
    """The scheduler was asked to cancel a job, and its answer was lost."""

    def __init__(self, scheduler: str, job_id: str, lost: LlmbError) -> None:
        super().__init__(
            f"It is unknown whether job {job_id} will be cancelled.",
            f"The answer of {scheduler} to the request was lost: {lost.what} {lost.why}".rstrip(),
            "It may still be cancelled: look at the run again, and cancel again if the job is still active.",
        )
