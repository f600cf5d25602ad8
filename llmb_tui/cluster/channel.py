"""Exec channels of one SSH transport: their budget, their deadlines, and the bytes that go through them."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import paramiko

from llmb_tui.cluster.failures import DeadlinePassed, Disconnected
from llmb_tui.cluster.quoting import command_line
from llmb_tui.errors import Trouble
from llmb_tui.text import clean

LINK_ERRORS = (paramiko.SSHException, EOFError, OSError)
"""What paramiko raises when a link breaks or a server refuses."""

_MAX_CHANNELS = 8  # sshd's MaxSessions is 10 by default
_CHUNK = 1 << 20
_REFUSED_PAUSE_S = 0.1
_STDERR_KEPT = 4096

# sshd answers the opening of a channel by itself, without starting anything: silence this long is a dead link.
_SILENCE_S = 10.0


class Channels:
    """Opens exec channels, at most 8 at a time; one more waits for its turn."""

    def __init__(self, transport: paramiko.Transport, host: str) -> None:
        self._transport = transport
        self._host = host
        self._slots = threading.BoundedSemaphore(_MAX_CHANNELS)

    def open(self, argv: Sequence[str], ends: float) -> paramiko.Channel:
        """A channel on which `argv` was started, before the monotonic time `ends`; give it to `close` at the end.

        Raises DeadlinePassed, Disconnected, and Trouble when the server runs no commands.
        """
        command = command_line(argv)
        if not self._slots.acquire(timeout=max(0.0, ends - time.monotonic())):
            raise self.deadline_passed(argv, f"All {_MAX_CHANNELS} channels of the connection stayed busy.")
        channel = None
        try:
            channel = self._open_session(argv, ends)
            with closing_at(channel, ends):
                channel.exec_command(command)
        except LINK_ERRORS as error:
            self._give_up(channel)
            raise self._not_started(argv, ends, error) from error
        except BaseException:
            self._give_up(channel)
            raise
        return channel

    def close(self, channel: paramiko.Channel) -> None:
        """Close a channel that `open` gave; the command there may live on."""
        self._give_up(channel)

    def link_is_up(self) -> bool:
        """False once the transport has ended, or is just ending.

        Paramiko closes the channels a moment before it says that it is no longer active.
        """
        self._transport.join(0.05)
        return self._transport.is_active()

    def deadline_passed(self, argv: Sequence[str], why: str = "") -> DeadlinePassed:
        """The error for a command that got no answer in time."""
        return DeadlinePassed(
            f"No answer in time from {self._host} to {_name(argv)}.",
            why or "The login node is busy, or the connection hangs. The command may still be running there.",
            "Wait, or look at the login node in another terminal.",
        )

    def disconnected(self, argv: Sequence[str], *, may_have_run: bool) -> Disconnected:
        """The error for a link that broke before or while a command ran."""
        fate = "may have run" if may_have_run else "was not started"
        return Disconnected(
            f"The connection to {self._host} broke.",
            f"The network, a VPN or the login node cut it; {_name(argv)} {fate}.",
            "It is opened again with the next command.",
            may_have_run=may_have_run,
        )

    def _open_session(self, argv: Sequence[str], ends: float) -> paramiko.Channel:
        """A new session; a server that has no more to give is asked again until `ends`."""
        while True:
            started = time.monotonic()
            try:
                return self._transport.open_session(timeout=max(0.0, ends - started))
            except LINK_ERRORS as error:
                if not self.link_is_up():
                    raise self.disconnected(argv, may_have_run=False) from error
                if time.monotonic() + _REFUSED_PAUSE_S >= ends:
                    if not isinstance(error, paramiko.ChannelException) and ends - started >= _SILENCE_S:
                        self._transport.close()
                        raise self.disconnected(argv, may_have_run=False) from error
                    raise self.deadline_passed(argv, "It gave no further session on this connection.") from error
            time.sleep(_REFUSED_PAUSE_S)

    def _not_started(self, argv: Sequence[str], ends: float, error: Exception) -> Trouble:
        if not self.link_is_up():
            return self.disconnected(argv, may_have_run=True)
        if time.monotonic() >= ends:
            return self.deadline_passed(argv)
        return Trouble(
            f"{self._host} refused to run {_name(argv)}.",
            clean(str(error)) or "The server gave no reason.",
            "Ask the cluster's administrators whether commands may be run over SSH on this host.",
        )

    def _give_up(self, channel: paramiko.Channel | None) -> None:
        if channel is not None:
            _close_quietly(channel)
        self._slots.release()


class Stream:
    """The output of one long-running command. Its stdin stays open until `close`, or until the link breaks."""

    def __init__(self, channels: Channels, channel: paramiko.Channel, argv: Sequence[str]) -> None:
        self._channels = channels
        self._channel = channel
        self._argv = tuple(argv)
        self._errors = b""
        self._is_closed = False

    @property
    def stderr(self) -> str:
        """The end of what the command said on stderr so far: remote text, not cleaned."""
        return self._errors.decode(errors="replace")

    def read(self, timeout_s: float) -> bytes | None:
        """The next bytes, at most 1 MiB; None when none came within `timeout_s`; b"" when the command has ended.

        Raises Disconnected when the link broke. Bytes that had arrived may be lost with it: who goes on reads again
        from the last byte that was given.
        """
        self._channel.settimeout(timeout_s)
        try:
            data = self._channel.recv(_CHUNK)
            self._keep_errors()
        except TimeoutError:
            self._keep_errors()
            return None
        except LINK_ERRORS as error:  # paramiko acknowledges what it hands out, and that may be what fails
            raise self._channels.disconnected(self._argv, may_have_run=True) from error
        if not data and not self._channel.eof_received and not self._is_closed and not self._channels.link_is_up():
            raise self._channels.disconnected(self._argv, may_have_run=True)
        return data

    def close(self) -> None:
        """Close the channel. The remote command ends at its next write, or when it sees the end of its stdin."""
        if not self._is_closed:
            self._is_closed = True
            self._channels.close(self._channel)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _keep_errors(self) -> None:
        """Unread stderr would fill the window that stdout needs as well."""
        while self._channel.recv_stderr_ready():
            self._errors = (self._errors + self._channel.recv_stderr(_CHUNK))[-_STDERR_KEPT:]


class Feeder(threading.Thread):
    """Writes a command's stdin while its output is read, so that neither side waits for the other."""

    def __init__(self, channel: paramiko.Channel, data: bytes) -> None:
        super().__init__(name="ssh-stdin", daemon=True)
        self._channel = channel
        self._data = data

    def run(self) -> None:
        """Write everything, then the end. A command that ends earlier or a broken link ends it too."""
        with contextlib.suppress(*LINK_ERRORS):
            for start in range(0, len(self._data), _CHUNK):
                self._channel.sendall(self._data[start : start + _CHUNK])
            self._channel.shutdown_write()


def drain(channel: paramiko.Channel) -> tuple[bytes, bytes]:
    """Everything that comes on stdout and stderr until both end. Raises one of LINK_ERRORS when some of it is lost."""
    stderr: list[bytes] = []
    lost: list[Exception] = []

    def read_stderr() -> None:
        try:
            stderr.append(_read_all(channel.recv_stderr))
        except LINK_ERRORS as error:
            lost.append(error)

    reader = threading.Thread(target=read_stderr, name="ssh-stderr", daemon=True)
    reader.start()
    stdout = _read_all(channel.recv)
    reader.join()
    if lost:
        raise lost[0]
    return stdout, stderr[0]


@contextlib.contextmanager
def closing_at(channel: paramiko.Channel, ends: float) -> Iterator[threading.Event]:
    """Close the channel at the monotonic time `ends` if the block is not done by then; the event says that it was.

    Some of paramiko's waits have no timeout of their own; all of them end when the channel does.
    """
    closed = threading.Event()

    def close() -> None:
        closed.set()
        _close_quietly(channel)

    timer = threading.Timer(max(0.0, ends - time.monotonic()), close)
    timer.daemon = True
    timer.start()
    try:
        yield closed
    finally:
        timer.cancel()


def _close_quietly(channel: paramiko.Channel) -> None:
    with contextlib.suppress(*LINK_ERRORS):
        channel.close()


def _read_all(receive: Callable[[int], bytes]) -> bytes:
    chunks = []
    while chunk := receive(_CHUNK):
        chunks.append(chunk)
    return b"".join(chunks)


def _name(argv: Sequence[str]) -> str:
    return "a script" if argv[0] == "sh" else f"`{clean(argv[0])}`"
