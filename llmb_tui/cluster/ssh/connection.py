"""`Connection`: an authenticated SSH connection to a login node; `Bulk`: the second one, for long streams."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from llmb_tui.cluster.failures import DisconnectedError
from llmb_tui.cluster.link import Completed, Link, Pulse, Stream, answer_too_long
from llmb_tui.cluster.ssh.channels import LINK_ERRORS, SHARED_WINDOW, Channels, closing_at, drain, feed
from llmb_tui.cluster.ssh.heartbeat import HeardTransport, Heartbeat
from llmb_tui.cluster.ssh.shell import Shell
from llmb_tui.errors import LlmbError
from llmb_tui.language.redact import without_secrets
from llmb_tui.language.text import clean

# Enough for a stream of 20 MB/s over 100 ms. Much larger windows are slower: paramiko copies its buffer.
_WINDOW = 1 << 21
RETRY_AFTER_S = 300.0
"""Time after a failed second connection until the next attempt, seconds."""
_START_S = 20.0
PAUSE_S = 0.005
"""Duration of a command on a fast line, seconds. On a slow line a command waits, and needs no processor meanwhile."""


class Connection(Link):
    """One live connection. Its heartbeat closes it if the server falls silent."""

    def __init__(
        self,
        transport: HeardTransport,
        host: str,
        banner: str = "",
        *,
        asks_nobody: bool = False,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_close` is called once after the end of the connection, whatever ended it."""
        self.host = clean(host)
        self.banner = without_secrets(clean(banner.replace("\r\n", "\n")))
        self.asks_nobody = asks_nobody
        self._transport = transport
        self._channels = Channels(transport, self.host, asks_nobody=asks_nobody)
        self._shell = Shell(self._channels, self.host)
        self._on_close = on_close
        self._ending = threading.Lock()
        self._heartbeat = Heartbeat(transport, self._shell.send_keepalive, self._end)

    @property
    def alive(self) -> bool:
        """False if the connection is closed or known to be broken; a silent one is broken within 15 seconds."""
        return self._transport.is_active()

    @property
    def pulse(self) -> Pulse:
        """Response times that the heartbeat measured."""
        return self._heartbeat.pulse

    def close(self) -> None:
        """Close the connection and all its channels; remote commands may continue."""
        self._transport.close()
        self._end()

    def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", deadline_s: float = 20.0, only_looks: bool = False
    ) -> Completed:
        """Run a command, as `Link.run`. After the deadline the command may still be running on the server."""
        ends = time.monotonic() + deadline_s
        if only_looks and (answer := self._shell.run(argv, ends)) is not None:
            return answer
        channel = self._channels.open(argv, ends)
        feed(channel, stdin)
        try:
            with closing_at(channel, ends) as cut_off:
                outputs = drain(channel)
                if outputs is None:
                    raise answer_too_long(argv, self.host)
                exit_code = channel.recv_exit_status()
        except (
            LINK_ERRORS
        ) as error:  # paramiko acknowledges the bytes that it returns, and the acknowledgement may fail
            raise self._channels.disconnected(argv, may_have_run=True) from error
        finally:
            self._channels.close(channel)
        # sshd may send the exit code before the last output, and it also sends an end if this side closes the channel.
        if exit_code == -1 or cut_off.is_set() or not channel.eof_received:
            self._explain(argv, ends)
        stdout, stderr = (output.decode(errors="replace") for output in outputs)
        return Completed(exit_code, stdout, stderr)

    def stream(self, argv: Sequence[str], *, window: int = SHARED_WINDOW) -> Stream:
        """Start a stream, as `Link.stream`. `window`: bytes in flight at most; all other output waits behind them."""
        return self._channels.stream(argv, time.monotonic() + _START_S, window)

    def listen_after(self, wait: Callable[[], None]) -> None:
        """Call `wait` before each read of received bytes."""
        self._transport.listen_after(wait)

    def _end(self) -> None:
        """Close the route. The heartbeat does it, too, but the end of the program may interrupt its thread."""
        with self._ending:
            on_close, self._on_close = self._on_close, lambda: None
            on_close()

    def _explain(self, argv: Sequence[str], ends: float) -> None:
        """Raise the error that explains a missing exit code or end; return if the command itself caused it."""
        if not self._channels.link_is_up():
            raise self._channels.disconnected(argv, may_have_run=True)
        if time.monotonic() >= ends:
            raise self._channels.deadline_passed(argv)


class Bulk:
    """Second connection of a session, for long streams, so that commands do not wait behind their bytes.

    The first stream opens it. If that fails, streams share the first connection; no error is reported.
    """

    def __init__(self, dial: Callable[[], Connection]) -> None:
        """`dial` makes the second connection without asking the user."""
        self._dial = dial
        self._dialling = threading.Lock()
        self._connection: Connection | None = None
        self._not_before = 0.0
        self._closed = threading.Event()
        self._pause_until = 0.0
        self._pause_over = threading.Event()

    @property
    def alive(self) -> bool:
        """True if there is a second connection that is not known to be broken."""
        connection = self._connection
        return connection is not None and connection.alive

    def stream(self, argv: Sequence[str]) -> Stream | None:
        """Start a command on the second connection; None if there is none. Raises the errors of `Link.stream`."""
        connection = self._open()
        if connection is None:
            return None
        try:
            return connection.stream(argv, window=_WINDOW)
        except DisconnectedError as broken:
            if broken.may_have_run:
                raise
            return None

    @contextmanager
    def pausing(self) -> Iterator[None]:
        """Pause received streams during the block, for 5 ms at most: their decryption occupies a whole processor."""
        self._pause_over.clear()
        self._pause_until = time.monotonic() + PAUSE_S
        try:
            yield
        finally:
            self._pause_over.set()

    def close(self) -> None:
        """Close the connection permanently."""
        self._closed.set()
        if self._connection is not None:
            self._connection.close()

    def _open(self) -> Connection | None:
        with self._dialling:
            if self.alive:
                return self._connection
            if self._closed.is_set() or time.monotonic() < self._not_before:
                return None
            try:
                connection = self._connection = self._dial()
                connection.listen_after(self._pause)
            except LlmbError:
                self._not_before = time.monotonic() + RETRY_AFTER_S
                return None
            if self._closed.is_set():
                connection.close()
            return connection

    def _pause(self) -> None:
        remaining_s = self._pause_until - time.monotonic()
        if remaining_s > 0:
            self._pause_over.wait(remaining_s)
