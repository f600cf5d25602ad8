"""Events of a watched run; events from the cluster are posted into one inbox.

The threads that post them may hang in a command until its deadline; the watching thread never waits for them. After a
request to stop they end on their own, and they do not delay the exit of the program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from llmb_tui.cluster.failures import AuthenticationError, HostKeyChangedError, HostKeyUnknownError
from llmb_tui.cluster.job import Job
from llmb_tui.language.states import RunLink
from llmb_tui.watch.logcopy import LogCopy
from llmb_tui.watch.state import Progress

LOGIN_ERRORS = (AuthenticationError, HostKeyChangedError, HostKeyUnknownError)
"""Errors that another login attempt without a user cannot fix."""


@dataclass(frozen=True, slots=True)
class LinkChanged:
    """The connection changed its state, as seen by the channel of the log."""

    link: RunLink
    note: str = ""


@dataclass(frozen=True, slots=True)
class JobUpdated:
    """Slurm's answer about a job; None if unknown. `gone`: not in the queue for so long that the job has ended."""

    job: Job | None
    gone: bool = False


@dataclass(frozen=True, slots=True)
class PollFailed:
    """Slurm could not be asked; the state of the job is unknown."""

    note: str
    slurm: bool = True
    """True if the connection works and Slurm did not answer; False if the connection failed."""


@dataclass(frozen=True, slots=True)
class LogGrown:
    """A copy of the log grew, or became the current copy."""

    copy: LogCopy
    note: str = ""
    """Message about the previous copy; may be empty."""


@dataclass(frozen=True, slots=True)
class LogRead:
    """Facts read from the local copy of a run's log."""

    name: str = "log"
    """File name of the copy."""
    size: int = 0
    """Number of bytes read."""
    grew_at: float = 0.0
    """Unix time at which the copy last grew."""
    read_at: float = 0.0
    """Unix time at which it was read."""
    started: bool = False
    """Whether the log has a line that the container did not print."""
    progress: Progress = field(default_factory=Progress)
    removed: bool = False
    """Whether the copy was removed after these facts had been read from it."""


@dataclass(frozen=True, slots=True)
class LogProblem:
    """The log cannot be copied, temporarily or permanently."""

    note: str
    for_good: bool = False
    given_up: bool = False
    """The job has ended and the log stayed unreadable for long; a later query tries again."""


@dataclass(frozen=True, slots=True)
class BatchTail:
    """Last lines of the batch script's own output. Posted when the job has ended and its log is copied to its end."""

    text: bytes


@dataclass(frozen=True, slots=True)
class Ended:
    """A thread has ended and posts no more events."""

    thread: str


WatchEvent = LinkChanged | JobUpdated | PollFailed | LogGrown | LogRead | LogProblem | BatchTail | Ended
EventSink = Callable[[WatchEvent], None]
