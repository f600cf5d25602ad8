"""`Link`: one live way to a login node, over SSH or on this very machine, and the commands that go over it."""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from llmb_tui.errors import Trouble
from llmb_tui.text import clean

# Complete or not at all: the size is compared because a cut connection ends stdin as a complete one does.
_WRITE_FILE = """
umask 077
if cat > "$2" && [ "$(wc -c < "$2")" -eq "$4" ] && chmod "$3" "$2" && [ ! -d "$1" ] && mv -f "$2" "$1"; then exit 0; fi
rm -f "$2"
exit 1
"""


@dataclass(frozen=True, slots=True)
class Completed:
    """What a command answered. Its output is remote text: `clean` it before it is shown."""

    argv: tuple[str, ...]
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


class Stream(ABC):
    """The output of one long-running command. Its stdin stays open until `close`, or until the link breaks."""

    @property
    @abstractmethod
    def stderr(self) -> str:
        """The end of what the command said on stderr so far: remote text, not cleaned."""

    @abstractmethod
    def read(self, timeout_s: float) -> bytes | None:
        """The next bytes, at most 1 MiB; None when none came within `timeout_s`; b"" when the command has ended.

        Raises Disconnected when the link broke, and GaveWay, which is one, when another command needed the place.
        Bytes that had arrived may be lost with it: who goes on reads again from the last byte that was given.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of the command. It ends at its next write, or when it sees the end of its stdin."""

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Link(ABC):
    """One live link. Its methods may be called from several threads."""

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
    def run(self, argv: Sequence[str], *, stdin: bytes = b"", deadline_s: float = 20.0) -> Completed:
        """Run one command to its end, within `deadline_s` seconds for everything.

        Raises DeadlinePassed, Disconnected, and Trouble when the server runs no commands.
        """

    @abstractmethod
    def stream(self, argv: Sequence[str], *, deadline_s: float = 20.0) -> Stream:
        """Start one long-running command, within `deadline_s`, and read its output as it comes. Raises as `run`."""

    @abstractmethod
    def close(self) -> None:
        """End the link: whoever waits on it gets Disconnected. Commands may live on there, streams do not."""

    def run_script(
        self, script: str, args: Sequence[str] = (), *, stdin: bytes = b"", deadline_s: float = 20.0
    ) -> Completed:
        """Run a POSIX sh script, whatever the login shell is; `args` are its $1, $2 and so on. Raises as `run`."""
        return self.run(["sh", "-c", script, "sh", *args], stdin=stdin, deadline_s=deadline_s)

    def write_file(self, path: str, data: bytes, mode: int = 0o600, *, deadline_s: float = 60.0) -> None:
        """Replace the file at the absolute path by `data`, all of it or none; its directory must exist.

        Raises Trouble when it cannot be written, and as `run` does.
        """
        temporary = f"{path}.{secrets.token_hex(4)}.part"
        args = [path, temporary, f"{mode:o}", str(len(data))]
        done = self.run_script(_WRITE_FILE, args, stdin=data, deadline_s=deadline_s)
        if done.exit_code != 0:
            raise Trouble(
                f"Could not write {clean(path)} on {self.host}.",
                clean(done.stderr.strip()) or "The file was cut short.",
                "Check the directory's permissions, and the free space and quota there.",
            )


def command_name(argv: Sequence[str]) -> str:
    """How a command is named in errors: never with its arguments."""
    return "a script" if argv[0] == "sh" else f"`{clean(argv[0])}`"
