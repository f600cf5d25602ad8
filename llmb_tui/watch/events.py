"""What happens to a run that is watched, event by event; those from the cluster are posted into one inbox.

The threads that post them may hang in a command for as long as its deadline; who watches never waits for them.
They end by themselves after they are told to stop, and hold up nobody's exit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from llmb_tui.cluster.failures import AuthenticationFailed, HostKeyChanged, HostKeyUnknown
from llmb_tui.cluster.job import Job
from llmb_tui.language.states import RunLink
from llmb_tui.watch.logcopy import LogCopy
from llmb_tui.watch.state import Progress

LOGIN_TROUBLE = (AuthenticationFailed, HostKeyChanged, HostKeyUnknown)
"""Nothing that another try without a person would mend."""


@dataclass(frozen=True, slots=True)
class LinkChanged:
    """The state of the connection, as the log's channel finds it."""

    link: RunLink
    note: str = ""


@dataclass(frozen=True, slots=True)
class JobUpdated:
    """What Slurm says; None if it knows no such job. `gone`: it has not known it for long, and the job is over."""

    job: Job | None
    gone: bool = False


@dataclass(frozen=True, slots=True)
class PollFailed:
    """Slurm could not be asked. It says nothing about the job."""

    note: str
    slurm: bool = True
    """The link is well and Slurm did not answer; else it is the link that gives trouble."""


@dataclass(frozen=True, slots=True)
class LogGrown:
    """A copy of the log has grown or was chosen."""

    copy: LogCopy
    note: str = ""
    """What is to be said of the copy before it."""


@dataclass(frozen=True, slots=True)
class LogRead:
    """What a run's log says, as far as its local copy was read."""

    name: str = "log"
    """File name of the copy."""
    size: int = 0
    """Bytes that were read."""
    grew_at: float = 0.0
    """When the copy last grew, Unix time."""
    read_at: float = 0.0
    """When it was read, Unix time."""
    started: bool = False
    """It has a line that is not the container's own."""
    progress: Progress = field(default_factory=Progress)
    removed: bool = False
    """The copy was taken away since, and this is what was read of it."""


@dataclass(frozen=True, slots=True)
class LogTrouble:
    """The log cannot be copied, for now or for good."""

    note: str
    for_good: bool = False
    given_up: bool = False
    """The job is over and it was tried for long; a later look tries again."""


@dataclass(frozen=True, slots=True)
class BatchTail:
    """The job is over and its log copied to its end; the last lines of the batch script's own output."""

    text: bytes


@dataclass(frozen=True, slots=True)
class Ended:
    """A thread has ended; nothing more comes from it."""

    thread: str


WatchEvent = LinkChanged | JobUpdated | PollFailed | LogGrown | LogRead | LogTrouble | BatchTail | Ended
EventSink = Callable[[WatchEvent], None]
