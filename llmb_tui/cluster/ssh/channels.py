"""Exec channels of one SSH connection: sharing of its sessions, and errors of channels."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import paramiko

from llmb_tui.cluster.failures import DeadlineError, DisconnectedError, StreamPreemptedError
from llmb_tui.cluster.link import LONGEST_ANSWER, Stream, command_name
from llmb_tui.cluster.quoting import command_line
from llmb_tui.cluster.ssh.channel_slots import ChannelSlots
from llmb_tui.errors import LlmbError
from llmb_tui.language.text import clean

LINK_ERRORS = (paramiko.SSHException, EOFError, OSError)
"""Errors of paramiko if a link breaks or a server refuses."""
SHARED_WINDOW = 1 << 19
"""Bytes in flight on one channel. Answers of commands wait behind them: at 2 MB/s a quarter of a second."""

_REFUSED_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 1.0
_CHUNK = 1 << 20

# Abandoned commands that hang on the server may hold every session of a connection without limit.
_HELD_S = 3.0


def feed(channel: paramiko.Channel, data: bytes) -> None:
    """Write a command's stdin and its end in a thread, while its output is read: neither side waits for the other."""

    def write() -> None:
        with contextlib.suppress(*LINK_ERRORS):  # the command may end earlier, or the link may break
            for start in range(0, len(data), _CHUNK):
                channel.sendall(data[start : start + _CHUNK])
            channel.shutdown_write()

    threading.Thread(target=write, name="ssh-stdin", daemon=True).start()


def drain(channel: paramiko.Channel) -> tuple[bytes, bytes] | None:
    """Read stdout and stderr to their ends; if one is too long, close the channel and return None.

    Raises one of LINK_ERRORS if output is lost.
    """
    stderr: list[bytes | None] = []
    lost: list[Exception] = []

    def read_stderr() -> None:
        try:
            stderr.append(_read_all(channel, channel.recv_stderr))
        except LINK_ERRORS as error:
            lost.append(error)

    reader = threading.Thread(target=read_stderr, name="ssh-stderr", daemon=True)
    reader.start()
    stdout = _read_all(channel, channel.recv)
    reader.join()
    if lost:
        raise lost[0]
    return (stdout, stderr[0]) if stdout is not None and stderr[0] is not None else None


@contextlib.contextmanager
def closing_at(channel: paramiko.Channel, ends: float) -> Iterator[threading.Event]:
    """Close the channel at the monotonic time `ends` if the block has not finished; the event is set if it was closed.

    Some of paramiko's waits have no timeout; all of them end if the channel is closed.
    """
    closed = threading.Event()

    def close() -> None:
        closed.set()
        close_quietly(channel)

    timer = threading.Timer(max(0.0, ends - time.monotonic()), close)
    timer.daemon = True
    timer.start()
    try:
        yield closed
    finally:
        timer.cancel()


def close_quietly(channel: paramiko.Channel) -> None:
    """Close a channel, even if its link is broken."""
    with contextlib.suppress(*LINK_ERRORS):
        channel.close()


class Channels:
    """Opens exec channels, which take turns if the server has too few sessions."""

    def __init__(self, transport: paramiko.Transport, host: str, *, asks_nobody: bool) -> None:
        self._transport = transport
        self._host = host
        self._asks_nobody = asks_nobody
        self._slots = ChannelSlots()
        self._has_worked = False

    def open(self, argv: Sequence[str], ends: float, window: int = SHARED_WINDOW) -> paramiko.Channel:
        """Start `argv` on a new channel before the monotonic time `ends`; pass the channel to `close` after use.

        Raises DeadlineError, DisconnectedError, and LlmbError if the server runs no commands.
        """
        command = command_line(argv)
        channel = self._session(argv, ends, window)
        try:
            with closing_at(channel, ends):
                channel.exec_command(command)
        except LINK_ERRORS as error:
            self.close(channel)
            raise self._not_started(argv, ends, error) from error
        except BaseException:
            self.close(channel)
            raise
        self._has_worked = True
        return channel

    @property
    def are_short(self) -> bool:
        """True if the server has refused a session: it has too few to keep an unused one open."""
        return self._slots.were_refused

    def stream(
        self, argv: Sequence[str], ends: float, window: int = SHARED_WINDOW, *, turn_s: float | None = None
    ) -> ChannelStream:
        """Start a command as `open` does, and return a stream, which may be ended for another command.

        `turn_s`: seconds for which the stream keeps its session; None: the usual turn.
        """
        stream = ChannelStream(self, self.open(argv, ends, window), argv)
        self._slots.register_stream(stream.give_way, turn_s)
        return stream

    def close(self, channel: paramiko.Channel) -> None:
        """Close a channel that `open` returned; its command may continue on the server."""
        close_quietly(channel)
        self._slots.release()

    def close_stream(self, stream: ChannelStream, channel: paramiko.Channel) -> None:
        self._slots.unregister_stream(stream.give_way)
        self.close(channel)

    def link_is_up(self) -> bool:
        """False if the transport has ended, or is just ending.

        Paramiko closes the channels shortly before `is_active` becomes false.
        """
        self._transport.join(0.05)
        return self._transport.is_active()

    def deadline_passed(self, argv: Sequence[str], why: str = "") -> DeadlineError:
        """Make the error for a command without an answer in time."""
        return DeadlineError(
            f"No answer in time from {self._host} to {command_name(argv)}.",
            why or "The login node is busy, or the connection hangs. The command may still be running there.",
            "Try again later, or look at the login node in another terminal.",
        )

    def disconnected(self, argv: Sequence[str], *, may_have_run: bool) -> DisconnectedError:
        """Make the error for a link that broke before or during a command."""
        outcome = "may have run" if may_have_run else "was not started"
        return DisconnectedError(
            f"The connection to {self._host} broke.",
            f"The network, a VPN or the login node closed it; {command_name(argv)} {outcome}.",
            "The next command connects again; if that needs a password or code, connect again yourself.",
            may_have_run=may_have_run,
        )

    def gave_way(self, argv: Sequence[str]) -> StreamPreemptedError:
        """Make the error for a stream that was ended because another command needed its session."""
        return StreamPreemptedError(
            f"{command_name(argv)} on {self._host} was interrupted for another command.",
            "All sessions that the server allows on one connection were in use.",
            "It continues with its next turn.",
        )

    def _session(self, argv: Sequence[str], ends: float, window: int) -> paramiko.Channel:
        """Take a slot and open a session. If the server refuses, ask again until `ends`."""
        pause = _REFUSED_PAUSE_S
        alone_since = None
        while self._slots.acquire(ends):
            now = time.monotonic()
            try:
                return self._transport.open_session(window_size=window, timeout=max(0.0, ends - now))
            except LINK_ERRORS as error:
                if not self.link_is_up():
                    self._slots.release()
                    raise self.disconnected(argv, may_have_run=False) from error
                if time.monotonic() >= ends:
                    self._slots.release()
                    raise self.deadline_passed(argv) from error
                alone_since = (alone_since or now) if self._slots.release_refused() else None
                if alone_since is not None and now - alone_since > _HELD_S and self._has_worked and self._asks_nobody:
                    self._transport.close()
                    raise self.disconnected(argv, may_have_run=False) from error
            except BaseException:
                self._slots.release()
                raise
            time.sleep(max(0.0, min(pause, ends - time.monotonic())))
            pause = min(pause * 2, _LONGEST_PAUSE_S)
        raise self.deadline_passed(argv, "No session of the connection became free.")

    def _not_started(self, argv: Sequence[str], ends: float, error: Exception) -> LlmbError:
        if not self.link_is_up():
            return self.disconnected(argv, may_have_run=True)
        if time.monotonic() >= ends:
            return self.deadline_passed(argv)
        return LlmbError(
            f"{self._host} refused to run {command_name(argv)}.",
            clean(str(error)) or "The server gave no reason.",
            "Ask the cluster's administrators whether this host allows commands over SSH.",
        )


class ChannelStream(Stream):
    """A `Stream` over one channel."""

    def __init__(self, channels: Channels, channel: paramiko.Channel, argv: Sequence[str]) -> None:
        super().__init__()
        self._channels = channels
        self._channel = channel
        self._argv = tuple(argv)
        self.gave_way = False
        """Whether the stream was ended because another command needed its session."""

    def read(self, timeout_s: float) -> bytes | None:
        """The next bytes, as `Stream.read`."""
        self._channel.settimeout(timeout_s)
        try:
            data = self._channel.recv(_CHUNK)
            self._read_errors()
        except TimeoutError:
            self._read_errors()
            return None
        except (
            LINK_ERRORS
        ) as error:  # paramiko acknowledges the bytes that it returns, and the acknowledgement may fail
            raise self._channels.disconnected(self._argv, may_have_run=True) from error
        if not data and self.gave_way:
            raise self._channels.gave_way(self._argv)
        if not data and not self._channel.eof_received and not self._is_closed and not self._channels.link_is_up():
            raise self._channels.disconnected(self._argv, may_have_run=True)
        return data

    def send_keepalive(self) -> None:
        """Send a line end to the command's stdin, as `Stream.send_keepalive`."""
        with contextlib.suppress(*LINK_ERRORS):  # `read` reports that the link broke
            if self._channel.send_ready():
                self._channel.send(b"\n")

    def send(self, data: bytes, ends: float) -> None:
        """Send data to the command's stdin, until the monotonic time `ends` at most."""
        with contextlib.suppress(*LINK_ERRORS):  # `read` reports a broken link, or a missing answer
            self._channel.settimeout(max(0.0, ends - time.monotonic()))
            self._channel.sendall(data)

    def give_way(self) -> None:
        """End the stream to free its session for another command."""
        self.gave_way = True
        self.close()

    def _end(self) -> None:
        self._channels.close_stream(self, self._channel)

    def _read_errors(self) -> None:
        """Read stderr, because unread bytes would fill the window that stdout shares."""
        while self._channel.recv_stderr_ready():
            self._keep_errors(self._channel.recv_stderr(_CHUNK))


def _read_all(channel: paramiko.Channel, receive: Callable[[int], bytes]) -> bytes | None:
    data = bytearray()
    while chunk := receive(_CHUNK):
        data += chunk
        if len(data) > LONGEST_ANSWER:
            close_quietly(channel)
            return None
    return bytes(data)
