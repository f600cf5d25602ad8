"""What comes from the cluster while a run is watched: pieces of news, posted into one inbox.

The threads that post them may hang in a command for as long as its deadline; who watches never waits for them.
They end by themselves after they are told to stop, and hold up nobody's exit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from llmb_tui.cluster.failures import AuthenticationFailed, HostKeyChanged, HostKeyUnknown
from llmb_tui.cluster.slurm.job import Job
from llmb_tui.watch.state import Link

LOGIN_TROUBLE = (AuthenticationFailed, HostKeyChanged, HostKeyUnknown)
"""Nothing that another try without a person would mend."""


@dataclass(frozen=True, slots=True)
class LinkNews:
    """The state of the connection, as the log's channel finds it."""

    link: Link
    note: str = ""


@dataclass(frozen=True, slots=True)
class JobNews:
    """What Slurm says; None if it knows no such job. `gone`: it has not known it for long, and the job is over."""

    job: Job | None
    gone: bool = False


@dataclass(frozen=True, slots=True)
class LookFailed:
    """Slurm could not be asked. It says nothing about the job."""

    note: str
    slurm: bool = True
    """The link is well and Slurm did not answer; else it is the link that gives trouble."""


@dataclass(frozen=True, slots=True)
class LogNews:
    """The copy of this restart's log has grown or was chosen."""

    restart: int
    note: str = ""
    """What is to be said of the copy before it."""


@dataclass(frozen=True, slots=True)
class LogTrouble:
    """The log cannot be copied, for now or for good."""

    note: str


@dataclass(frozen=True, slots=True)
class BatchTail:
    """The last lines of the batch script's own output."""

    text: bytes


@dataclass(frozen=True, slots=True)
class Ended:
    """A thread has ended; nothing more comes from it."""

    thread: str


News = LinkNews | JobNews | LookFailed | LogNews | LogTrouble | BatchTail | Ended
Post = Callable[[News], None]
