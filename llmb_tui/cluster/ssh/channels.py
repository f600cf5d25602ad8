"""Exec channels of one SSH connection: taking turns with its sessions, and what it means when one fails."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import paramiko

from llmb_tui.cluster.failures import DeadlinePassed, Disconnected, GaveWay
from llmb_tui.cluster.link import LONGEST_ANSWER, Stream, command_name
from llmb_tui.cluster.quoting import command_line
from llmb_tui.cluster.ssh.channel_slots import ChannelSlots
from llmb_tui.errors import Trouble
from llmb_tui.language.text import clean

LINK_ERRORS = (paramiko.SSHException, EOFError, OSError)
"""What paramiko raises when a link breaks or a server refuses."""
SHARED_WINDOW = 1 << 19
"""Bytes on their way on one channel. What a command answers waits behind them: at 2 MB/s a quarter of a second."""

_REFUSED_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 1.0
_CHUNK = 1 << 20

# Commands that were given up here, and hang there, may hold every session of a connection for as long as they like.
_HELD_S = 3.0


def feed(channel: paramiko.Channel, data: bytes) -> None:
    """Write a command's stdin, then the end of it, while its output is read: neither side waits for the other."""

    def write() -> None:
        with contextlib.suppress(*LINK_ERRORS):  # the command may end earlier, or the link break
            for start in range(0, len(data), _CHUNK):
                channel.sendall(data[start : start + _CHUNK])
            channel.shutdown_write()

    threading.Thread(target=write, name="ssh-stdin", daemon=True).start()


def drain(channel: paramiko.Channel) -> tuple[bytes, bytes] | None:
    """Everything that comes on stdout and stderr until both end; None, and the channel closed, where it is too much.

    Raises one of LINK_ERRORS when some of it is lost.
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
    """Close the channel at the monotonic time `ends` if the block is not done by then; the event says that it was.

    Some of paramiko's waits have no timeout of their own; all of them end when the channel does.
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
    """Close a channel, on whatever is left of its link."""
    with contextlib.suppress(*LINK_ERRORS):
        channel.close()


class Channels:
    """Opens exec channels, in turn where the server has too few sessions."""

    def __init__(self, transport: paramiko.Transport, host: str, *, asks_nobody: bool) -> None:
        self._transport = transport
        self._host = host
        self._asks_nobody = asks_nobody
        self._slots = ChannelSlots()
        self._has_worked = False

    def open(self, argv: Sequence[str], ends: float, window: int = SHARED_WINDOW) -> paramiko.Channel:
        """A channel on which `argv` was started, before the monotonic time `ends`; give it to `close` at the end.

        Raises DeadlinePassed, Disconnected, and Trouble when the server runs no commands.
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
        """The server has refused a session: it has too few of them to keep one that is not in use."""
        return self._slots.were_refused

    def stream(
        self, argv: Sequence[str], ends: float, window: int = SHARED_WINDOW, *, turn_s: float | None = None
    ) -> ChannelStream:
        """As `open`, for a command whose output is read as it comes and which may have to make room.

        `turn_s`: how long it has its session to itself before it must; None: as long as other streams.
        """
        stream = ChannelStream(self, self.open(argv, ends, window), argv)
        self._slots.may_give_way(stream.give_way, turn_s)
        return stream

    def close(self, channel: paramiko.Channel) -> None:
        """Close a channel that `open` gave; the command there may live on."""
        close_quietly(channel)
        self._slots.release()

    def close_stream(self, stream: ChannelStream, channel: paramiko.Channel) -> None:
        """Close the channel of a stream."""
        self._slots.no_longer(stream.give_way)
        self.close(channel)

    def link_is_up(self) -> bool:
        """False once the transport has ended, or is just ending.

        Paramiko closes the channels a moment before it says that it is no longer active.
        """
        self._transport.join(0.05)
        return self._transport.is_active()

    def deadline_passed(self, argv: Sequence[str], why: str = "") -> DeadlinePassed:
        """The error for a command that got no answer in time."""
        return DeadlinePassed(
            f"No answer in time from {self._host} to {command_name(argv)}.",
            why or "The login node is busy, or the connection hangs. The command may still be running there.",
            "Wait, or look at the login node in another terminal.",
        )

    def disconnected(self, argv: Sequence[str], *, may_have_run: bool) -> Disconnected:
        """The error for a link that broke before or while a command ran."""
        fate = "may have run" if may_have_run else "was not started"
        return Disconnected(
            f"The connection to {self._host} broke.",
            f"The network, a VPN or the login node cut it; {command_name(argv)} {fate}.",
            "It is opened again with the next command, or when you log in again.",
            may_have_run=may_have_run,
        )

    def gave_way(self, argv: Sequence[str]) -> GaveWay:
        """The error for a stream that was ended because another command needed its session."""
        return GaveWay(
            f"{command_name(argv)} on {self._host} made room for another command.",
            "All sessions that the server gives on one connection were taken.",
            "It goes on with its next turn.",
        )

    def _session(self, argv: Sequence[str], ends: float, window: int) -> paramiko.Channel:
        """A new session, with a turn taken; a server that has no more to give is asked again until `ends`."""
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
                alone_since = (alone_since or now) if self._slots.refused() else None
                if alone_since is not None and now - alone_since > _HELD_S and self._has_worked and self._asks_nobody:
                    self._transport.close()
                    raise self.disconnected(argv, may_have_run=False) from error
            except BaseException:
                self._slots.release()
                raise
            time.sleep(max(0.0, min(pause, ends - time.monotonic())))
            pause = min(pause * 2, _LONGEST_PAUSE_S)
        raise self.deadline_passed(argv, "No session of the connection came free.")

    def _not_started(self, argv: Sequence[str], ends: float, error: Exception) -> Trouble:
        if not self.link_is_up():
            return self.disconnected(argv, may_have_run=True)
        if time.monotonic() >= ends:
            return self.deadline_passed(argv)
        return Trouble(
            f"{self._host} refused to run {command_name(argv)}.",
            clean(str(error)) or "The server gave no reason.",
            "Ask the cluster's administrators whether commands may be run over SSH on this host.",
        )


class ChannelStream(Stream):
    """A `Stream` over one channel."""

    def __init__(self, channels: Channels, channel: paramiko.Channel, argv: Sequence[str]) -> None:
        super().__init__()
        self._channels = channels
        self._channel = channel
        self._argv = tuple(argv)
        self.gave_way = False
        """It was ended because another command needed its session."""

    def read(self, timeout_s: float) -> bytes | None:
        """As `Stream.read`."""
        self._channel.settimeout(timeout_s)
        try:
            data = self._channel.recv(_CHUNK)
            self._read_errors()
        except TimeoutError:
            self._read_errors()
            return None
        except LINK_ERRORS as error:  # paramiko acknowledges what it hands out, and that may be what fails
            raise self._channels.disconnected(self._argv, may_have_run=True) from error
        if not data and self.gave_way:
            raise self._channels.gave_way(self._argv)
        if not data and not self._channel.eof_received and not self._is_closed and not self._channels.link_is_up():
            raise self._channels.disconnected(self._argv, may_have_run=True)
        return data

    def send_keepalive(self) -> None:
        """As `Stream.send_keepalive`."""
        with contextlib.suppress(*LINK_ERRORS):  # reading says that it broke
            if self._channel.send_ready():
                self._channel.send(b"\n")

    def say(self, data: bytes, ends: float) -> None:
        """Send data to its stdin, until the monotonic time `ends` at most."""
        with contextlib.suppress(*LINK_ERRORS):  # reading says that it broke, or that nothing is answered
            self._channel.settimeout(max(0.0, ends - time.monotonic()))
            self._channel.sendall(data)

    def give_way(self) -> None:
        """Make room for another command."""
        self.gave_way = True
        self.close()

    def _end(self) -> None:
        self._channels.close_stream(self, self._channel)

    def _read_errors(self) -> None:
        """Unread stderr would fill the window that stdout needs as well."""
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
