"""`Link`: one connection to a login node, over SSH or on this machine, which runs commands there."""

from __future__ import annotations

import secrets
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from llmb_tui.cluster.failures import AnswerTooLongError
from llmb_tui.errors import LlmbError, remedy_in
from llmb_tui.language.quantities import duration
from llmb_tui.language.redact import server_words
from llmb_tui.language.states import LinkState
from llmb_tui.language.text import clean

LONGEST_ANSWER = 1 << 24
"""Bytes of stdout, and as many of stderr: longer output is not an answer, and would fill the memory here."""

# A shorter delay is normal on a slow line, and is not shown.
_LATE_S = 3.0
_STDERR_KEPT = 4096
_WRITE_DEADLINE_S = 60.0

# The file is written completely or not at all. The script compares the size because a cut connection ends stdin like a
# complete input. It also removes what killed writers of this file left: files of its name that belong to the user and
# have not grown for ten times as long as a write may take.
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
    """Result of a command. Its output is remote text: `clean` it before it is shown."""

    exit_code: int
    """-1 if a signal ended the command."""
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class Pulse:
    """Response times of a link. The link to this machine has the default values."""

    round_trip_s: float | None = None
    """Round trip of the last heartbeat; None before the first."""
    silent_s: float = 0.0
    """Seconds since the last byte was received."""
    awaited_s: float = 0.0
    """Seconds since the link began to wait for an answer without receiving a byte; 0.0 if no answer is due."""


@dataclass(frozen=True, slots=True)
class LinkHealth:
    """Health of a connection at one moment. It does not show a Slurm controller that hangs behind a live link."""

    state: LinkState
    round_trip_s: float | None
    """Round trip of the last heartbeat; None before the first, and on this machine."""
    note: str
    """The problem or the present retry, in words; empty for a connection without problems."""


def note(state: LinkState, pulse: Pulse, *, trying_again: bool, next_try_s: float | None) -> str:
    """Text for a state. `next_try_s`: seconds until the automatic retry of a lost link; None: there is none."""
    if state == "live" and pulse.awaited_s >= _LATE_S:
        return f"no answer for {duration(pulse.silent_s)}"
    if state == "needs-login":
        return "needs you to log in again"
    if state == "connecting" and trying_again:
        return "trying again"
    if state == "lost":
        if next_try_s is None:
            return "reconnects at the next use"
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
        """End of the command's stderr so far: remote text, not cleaned."""
        return self._errors.decode(errors="replace")

    @abstractmethod
    def read(self, timeout_s: float) -> bytes | None:
        """The next bytes, at most 1 MiB; None if none came within `timeout_s`; b"" after the end of the command.

        Raises DisconnectedError if the link broke, and its subclass StreamPreemptedError if another command needed the
        session. Both may lose bytes that had arrived: to continue, read again from the last byte that `read` returned.
        """

    @abstractmethod
    def send_keepalive(self) -> None:
        """Send a line end to the command's stdin if that does not block: it shows that the reader is still there."""

    def close(self) -> None:
        """Close the stream. The command ends at its next write, or when it reads the end of its stdin."""
        with self._closing:
            was_closed, self._is_closed = self._is_closed, True
        if not was_closed:
            self._end()

    @abstractmethod
    def _end(self) -> None:
        """Close the stream; called once."""

    def _keep_errors(self, data: bytes) -> None:
        self._errors = (self._errors + data)[-_STDERR_KEPT:]

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Commands(ABC):
    """Base class for running commands and scripts on a login node. Its methods may be called from several threads."""

    @abstractmethod
    def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", deadline_s: float = 20.0, only_looks: bool = False
    ) -> Completed:
        """Run one command to its end, in at most `deadline_s` seconds including all waiting.

        `only_looks`: the command changes nothing and reads no stdin. Such a command may take a faster way, on which a
        dead link is noticed only after it was sent. It may be killed after its deadline, and if the link breaks.
        Raises DeadlineError, AnswerTooLongError, DisconnectedError, and LlmbError if the server runs no commands.
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
        """Run a POSIX sh script under any login shell; `args` are its $1, $2 and so on.

        Raises the errors of `run`.
        """
        return self.run(["sh", "-c", script, "sh", *args], stdin=stdin, deadline_s=deadline_s, only_looks=only_looks)


class Link(Commands):
    """One connection to a login node."""

    host: str
    """Name of the login node in errors, clean of control characters."""
    banner: str = ""
    """Greeting of the login node, clean of control characters."""
    asks_nobody: bool = True
    """True if the link can be made again without a question to the user."""

    @property
    @abstractmethod
    def alive(self) -> bool:
        """False if the link is closed or known to be broken."""

    @property
    @abstractmethod
    def pulse(self) -> Pulse:
        """Present response times."""

    @abstractmethod
    def stream(self, argv: Sequence[str]) -> Stream:
        """Start one long-running command, in at most 20 seconds, and return the stream of its output.

        Raises DeadlineError, DisconnectedError, and LlmbError if the server runs no commands.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the link: all waiting callers get DisconnectedError. Commands there may continue, streams end."""

    def write_file(self, path: str, data: bytes) -> None:
        """Replace the file at the absolute path by `data`, completely or not at all; mode 0600.

        Its directory must exist. Raises LlmbError if the file cannot be written, DeadlineError and DisconnectedError.
        """
        temporary = f"{path}.{secrets.token_hex(4)}.part"
        args = [path, temporary, str(len(data))]
        result = self.run_script(_WRITE_FILE, args, stdin=data, deadline_s=_WRITE_DEADLINE_S)
        if result.exit_code != 0:
            raise LlmbError(
                f"Could not write {clean(path)} on {self.host}.",
                server_words(result.stderr) or "Not all of the file arrived.",
                remedy_in(result.stderr),
            )


def answer_too_long(argv: Sequence[str], host: str) -> AnswerTooLongError:
    """Make the error for a command whose output is too long."""
    return AnswerTooLongError(
        f"The output of {command_name(argv)} on {host} is longer than {LONGEST_ANSWER >> 20} MiB.",
        "A start file of the login shell may print without end, or another program may have this name.",
        "Run it on the login node in another terminal, and look at the first lines of the output.",
    )


def command_name(argv: Sequence[str]) -> str:
    """Name of a command in errors, without its arguments."""
    return "a script" if argv[0] == "sh" else f"`{clean(argv[0])}`"
