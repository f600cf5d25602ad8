"""`Connection`: one authenticated SSH connection to a login node, and commands on it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass

import paramiko

from llmb_tui.cluster.channel import LINK_ERRORS, Channels, Feeder, Stream, closing_at, drain
from llmb_tui.errors import Trouble
from llmb_tui.text import clean

_STUCK_S = 1.0

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


class Connection:
    """One live connection. Its methods may be called from several threads."""

    def __init__(self, transport: paramiko.Transport, host: str, banner: str = "") -> None:
        self._transport = transport
        self._host = clean(host)
        self._channels = Channels(transport, self._host)
        self.banner = clean(banner.replace("\r\n", "\n"))

    @property
    def alive(self) -> bool:
        """False once it is known to be broken or closed. A link that hangs silently still counts as alive."""
        return self._transport.is_active()

    def close(self) -> None:
        """End the connection and every channel on it; remote commands may live on."""
        self._transport.close()

    def run(self, argv: Sequence[str], *, stdin: bytes = b"", deadline_s: float = 20.0) -> Completed:
        """Run one command to its end, within `deadline_s` seconds for everything.

        Raises DeadlinePassed (the command may still be running there), Disconnected, and Trouble when the server
        runs no commands.
        """
        ends = time.monotonic() + deadline_s
        channel = self._channels.open(argv, ends)
        feeder = Feeder(channel, stdin)
        feeder.start()
        try:
            with closing_at(channel, ends) as cut_off:
                stdout, stderr = drain(channel)
                exit_code = channel.recv_exit_status()
        except LINK_ERRORS as error:  # paramiko acknowledges what it hands out, and that may be what fails
            raise self._channels.disconnected(argv, may_have_run=True) from error
        finally:
            self._channels.close(channel)
            self._end(feeder)
        # sshd may tell the exit code before the last output, and answers a channel closed by us with an end of its own.
        if exit_code == -1 or cut_off.is_set() or not channel.eof_received:
            self._explain(argv, ends)
        return Completed(tuple(argv), exit_code, stdout.decode(errors="replace"), stderr.decode(errors="replace"))

    def run_script(
        self, script: str, args: Sequence[str] = (), *, stdin: bytes = b"", deadline_s: float = 20.0
    ) -> Completed:
        """Run a POSIX sh script, whatever the login shell is; `args` are its $1, $2 and so on. Raises as `run`."""
        return self.run(["sh", "-c", script, "sh", *args], stdin=stdin, deadline_s=deadline_s)

    def stream(self, argv: Sequence[str], *, deadline_s: float = 20.0) -> Stream:
        """Start one long-running command, within `deadline_s`, and read its output as it comes. Raises as `run`."""
        return Stream(self._channels, self._channels.open(argv, time.monotonic() + deadline_s), argv)

    def write_file(self, path: str, data: bytes, mode: int = 0o600, *, deadline_s: float = 60.0) -> None:
        """Replace the file at the absolute path by `data`, all of it or none; its directory must exist.

        Raises Trouble when it cannot be written, and as `run` does.
        """
        temporary = f"{path}.{secrets.token_hex(4)}.part"
        args = [path, temporary, f"{mode:o}", str(len(data))]
        done = self.run_script(_WRITE_FILE, args, stdin=data, deadline_s=deadline_s)
        if done.exit_code != 0:
            raise Trouble(
                f"Could not write {clean(path)} on {self._host}.",
                clean(done.stderr.strip()) or "The file was cut short.",
                "Check the directory's permissions, and the free space and quota there.",
            )

    def _end(self, feeder: Feeder) -> None:
        """A writer that outlives its channel sits in the socket, and everyone else behind it: the link is dead."""
        feeder.join(_STUCK_S)
        if feeder.is_alive():
            self._transport.close()

    def _explain(self, argv: Sequence[str], ends: float) -> None:
        """Raise what explains a missing exit code or end; return when it was the command's own doing."""
        if not self._channels.link_is_up():
            raise self._channels.disconnected(argv, may_have_run=True)
        if time.monotonic() >= ends:
            raise self._channels.deadline_passed(argv)
