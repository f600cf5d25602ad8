"""`Link`: one live way to a login node, over SSH or on this very machine, and the commands that go over it."""

from __future__ import annotations

import secrets
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from llmb_tui.cluster.failures import AnswerTooLong
from llmb_tui.errors import Trouble
from llmb_tui.language.quantities import duration
from llmb_tui.language.states import LinkState
from llmb_tui.language.text import clean

LONGEST_ANSWER = 1 << 24
"""Bytes on stdout, and as many on stderr: what passes it is no answer, and would fill the memory here."""

# An answer that is this late is worth a word; one that takes as long as a slow line does is not.
_LATE_S = 3.0
_STDERR_KEPT = 4096
_WRITE_DEADLINE_S = 60.0

# Complete or not at all: the size is compared because a cut connection ends stdin as a complete one does. What writers
# of this file left when they were killed goes: of its name, the user's own, and without a byte for ten times as long as
# a write may take.
_WRITE_FILE = """
umask 077
for left in "$1".????????.part; do
    [ ! -f "$left" ] || find "$left" -prune -type f -user "$(id -u)" -mmin +10 -exec rm -f {} \\;
done
if cat > "$2" && [ "$(wc -c < "$2")" -eq "$3" ] && chmod 600 "$2" && [ ! -d "$1" ] && mv -f "$2" "$1"; then exit 0; fi
rm -f "$2"
exit 1
"""


@dataclass(frozen=True, slots=True)
class Completed:
    """What a command answered. Its output is remote text: `clean` it before it is shown."""

    exit_code: int
    """-1 when a signal ended it."""
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class Pulse:
    """How well a link answers. On this machine there is nothing to measure."""

    round_trip_s: float | None = None
    """Of the last heartbeat; None before the first."""
    silent_s: float = 0.0
    """Seconds since anything was received."""
    awaited_s: float = 0.0
    """Seconds for which an answer is owed and nothing at all has come; 0.0 when none is owed."""


@dataclass(frozen=True, slots=True)
class LinkHealth:
    """A snapshot. A Slurm controller that hangs behind a live link does not show in it."""

    state: LinkState
    round_trip_s: float | None
    """Of the last heartbeat; None before the first, and on this machine."""
    note: str
    """What is wrong, or is being done about it, in words; empty when all is well."""


def note(state: LinkState, pulse: Pulse, *, trying_again: bool, next_try_s: float | None) -> str:
    """The words for a state. `next_try_s`: seconds until a lost link is tried again by itself; None: it is not."""
    if state == "live" and pulse.awaited_s >= _LATE_S:
        return f"no answer for {duration(pulse.silent_s)}"
    if state == "needs-login":
        return "needs you to log in again"
    if state == "connecting" and trying_again:
        return "trying again"
    if state == "lost":
        if next_try_s is None:
            return "tried again when it is next used"
        return f"trying again in {duration(next_try_s)}" if next_try_s >= 1 else "trying again"
    return ""


class Stream(ABC):
    """The output of one long-running command. Its stdin stays open until `close`, or until the link breaks."""

    def __init__(self) -> None:
        self._errors = b""
        self._closing = threading.Lock()
        self._is_closed = False

    @property
    def stderr(self) -> str:
        """The end of what the command said on stderr so far: remote text, not cleaned."""
        return self._errors.decode(errors="replace")

    @abstractmethod
    def read(self, timeout_s: float) -> bytes | None:
        """The next bytes, at most 1 MiB; None when none came within `timeout_s`; b"" when the command has ended.

        Raises Disconnected when the link broke, and GaveWay, which is one, when another command needed the place.
        Bytes that had arrived may be lost with it: who goes on reads again from the last byte that was given.
        """

    @abstractmethod
    def speak(self) -> None:
        """Send a line end to its stdin, where that can be done at once: who reads its output is still there."""

    def close(self) -> None:
        """Let go of the command. It ends at its next write, or when it sees the end of its stdin."""
        with self._closing:
            was_closed, self._is_closed = self._is_closed, True
        if not was_closed:
            self._end()

    @abstractmethod
    def _end(self) -> None:
        """What closes it; called once."""

    def _keep_errors(self, data: bytes) -> None:
        self._errors = (self._errors + data)[-_STDERR_KEPT:]

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Commands(ABC):
    """What runs commands on a login node, and so scripts. Its methods may be called from several threads."""

    @abstractmethod
    def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", deadline_s: float = 20.0, only_looks: bool = False
    ) -> Completed:
        """Run one command to its end, within `deadline_s` seconds for everything.

        `only_looks`: it changes nothing and reads no stdin. Such a command may go a quicker way, on which it is not
        known before it is sent that the link is dead; and past its deadline, or without the link, it may be killed.
        Raises DeadlinePassed, AnswerTooLong, Disconnected, and Trouble when the server runs no commands.
        """

    def run_script(
        self,
        script: str,
        args: Sequence[str] = (),
        *,
        stdin: bytes = b"",
        deadline_s: float = 20.0,
        only_looks: bool = False,
    ) -> Completed:
        """Run a POSIX sh script, whatever the login shell is; `args` are its $1, $2 and so on.

        Raises what `run` raises.
        """
        return self.run(["sh", "-c", script, "sh", *args], stdin=stdin, deadline_s=deadline_s, only_looks=only_looks)


class Link(Commands):
    """One live link."""

    host: str
    """How the login node is named in errors, clean of control characters."""
    banner: str = ""
    """What the login node greets with, clean of control characters."""
    asks_nobody: bool = True
    """True when making the link again would ask no person anything."""

    @property
    @abstractmethod
    def alive(self) -> bool:
        """False once it is known to be broken or closed."""

    @property
    @abstractmethod
    def pulse(self) -> Pulse:
        """How well it answers at this moment."""

    @abstractmethod
    def stream(self, argv: Sequence[str]) -> Stream:
        """Start one long-running command, within 20 seconds, and read its output as it comes.

        Raises DeadlinePassed, Disconnected, and Trouble when the server runs no commands.
        """

    @abstractmethod
    def close(self) -> None:
        """End the link: whoever waits on it gets Disconnected. Commands may live on there, streams do not."""

    def write_file(self, path: str, data: bytes) -> None:
        """Replace the file at the absolute path by `data`, all of it or none; mode 0600. Its directory must exist.

        Raises Trouble when it cannot be written, DeadlinePassed and Disconnected.
        """
        temporary = f"{path}.{secrets.token_hex(4)}.part"
        args = [path, temporary, str(len(data))]
        result = self.run_script(_WRITE_FILE, args, stdin=data, deadline_s=_WRITE_DEADLINE_S)
        if result.exit_code != 0:
            raise Trouble(
                f"Could not write {clean(path)} on {self.host}.",
                clean(result.stderr.strip()) or "The file was cut short.",
                "Check the directory's permissions, and the free space and quota there.",
            )


def answer_too_long(argv: Sequence[str], host: str) -> AnswerTooLong:
    """The error for a command that does not stop to answer."""
    return AnswerTooLong(
        f"The answer of {command_name(argv)} on {host} has more than {LONGEST_ANSWER >> 20} MiB.",
        "A login shell's start file may print without end there, or the program is not what its name says.",
        "Run it on the login node in another terminal, and look at what comes first.",
    )


def command_name(argv: Sequence[str]) -> str:
    """How a command is named in errors: never with its arguments."""
    return "a script" if argv[0] == "sh" else f"`{clean(argv[0])}`"
