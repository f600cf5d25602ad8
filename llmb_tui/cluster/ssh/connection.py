"""`Connection`: one authenticated SSH connection to a login node, and commands on it; `Bulk`: a second one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from llmb_tui.cluster.failures import Disconnected
from llmb_tui.cluster.link import Completed, Link, Pulse, Stream, answer_too_long
from llmb_tui.cluster.ssh.channels import LINK_ERRORS, SHARED_WINDOW, Channels, closing_at, drain, feed
from llmb_tui.cluster.ssh.heartbeat import HeardTransport, Heartbeat
from llmb_tui.cluster.ssh.shell import Shell
from llmb_tui.errors import Trouble
from llmb_tui.language.text import clean

# As wide as a stream of 20 MB/s over 100 ms needs. Much wider ones are slower: paramiko copies what it holds.
_WINDOW = 1 << 21
_RETRY_AFTER_S = 300.0
_START_S = 20.0
# As long as a command takes that waits for no line; one that does needs no processor meanwhile.
_MAKES_WAY_S = 0.005


class Connection(Link):
    """One live connection. A heartbeat of its own closes it when the other end falls silent."""

    def __init__(
        self,
        transport: HeardTransport,
        host: str,
        banner: str = "",
        *,
        asks_nobody: bool = False,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_close` is called once when the connection has ended, whoever ended it."""
        self.host = clean(host)
        self.banner = clean(banner.replace("\r\n", "\n"))
        self.asks_nobody = asks_nobody
        self._transport = transport
        self._channels = Channels(transport, self.host, asks_nobody=asks_nobody)
        self._shell = Shell(self._channels, self.host)
        self._on_close = on_close
        self._ending = threading.Lock()
        self._heartbeat = Heartbeat(transport, self._shell.send_keepalive, self._end)

    @property
    def alive(self) -> bool:
        """False once it is known to be broken or closed; a link that fell silent is, within 15 seconds."""
        return self._transport.is_active()

    @property
    def pulse(self) -> Pulse:
        """What the heartbeat knows."""
        return self._heartbeat.pulse

    def close(self) -> None:
        """End the connection and every channel on it; remote commands may live on."""
        self._transport.close()
        self._end()

    def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", deadline_s: float = 20.0, only_looks: bool = False
    ) -> Completed:
        """As `Link.run`: past the deadline the command may still be running there."""
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
        except LINK_ERRORS as error:  # paramiko acknowledges what it hands out, and that may be what fails
            raise self._channels.disconnected(argv, may_have_run=True) from error
        finally:
            self._channels.close(channel)
        # sshd may tell the exit code before the last output, and answers a channel closed by us with an end of its own.
        if exit_code == -1 or cut_off.is_set() or not channel.eof_received:
            self._explain(argv, ends)
        stdout, stderr = (output.decode(errors="replace") for output in outputs)
        return Completed(exit_code, stdout, stderr)

    def stream(self, argv: Sequence[str], *, window: int = SHARED_WINDOW) -> Stream:
        """As `Link.stream`; `window` is how many bytes may be on their way, which everything else waits behind."""
        return self._channels.stream(argv, time.monotonic() + _START_S, window)

    def listen_after(self, wait: Callable[[], None]) -> None:
        """Call `wait` before each look at what came."""
        self._transport.listen_after(wait)

    def _end(self) -> None:
        """Let go of the way there. The heartbeat does so too, in a thread that ends with the program in its middle."""
        with self._ending:
            on_close, self._on_close = self._on_close, lambda: None
            on_close()

    def _explain(self, argv: Sequence[str], ends: float) -> None:
        """Raise what explains a missing exit code or end; return when it was the command's own doing."""
        if not self._channels.link_is_up():
            raise self._channels.disconnected(argv, may_have_run=True)
        if time.monotonic() >= ends:
            raise self._channels.deadline_passed(argv)


class Bulk:
    """A session's second connection, for long streams, so that commands never wait behind their bytes.

    Opened with the first stream. Where that fails streams share the first connection, without a word.
    """

    def __init__(self, dial: Callable[[], Connection]) -> None:
        """`dial` makes the second connection, and asks no person anything."""
        self._dial = dial
        self._dialling = threading.Lock()
        self._connection: Connection | None = None
        self._not_before = 0.0
        self._closed = threading.Event()
        self._makes_way_until = 0.0
        self._goes_on = threading.Event()

    @property
    def alive(self) -> bool:
        """True while there is a second connection that is not known to be broken."""
        connection = self._connection
        return connection is not None and connection.alive

    def stream(self, argv: Sequence[str]) -> Stream | None:
        """Start a command on the second connection; None when there is none. Raises what `Link.stream` raises."""
        connection = self._open()
        if connection is None:
            return None
        try:
            return connection.stream(argv, window=_WINDOW)
        except Disconnected as broken:
            if broken.may_have_run:
                raise
            return None

    @contextmanager
    def making_way(self) -> Iterator[None]:
        """While the block runs, for a moment at most, what streams in waits: decrypting it takes a whole processor."""
        self._goes_on.clear()
        self._makes_way_until = time.monotonic() + _MAKES_WAY_S
        try:
            yield
        finally:
            self._goes_on.set()

    def close(self) -> None:
        """End the connection for good."""
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
                connection.listen_after(self._make_way)
            except Trouble:
                self._not_before = time.monotonic() + _RETRY_AFTER_S
                return None
            if self._closed.is_set():
                connection.close()
            return connection

    def _make_way(self) -> None:
        left_s = self._makes_way_until - time.monotonic()
        if left_s > 0:
            self._goes_on.wait(left_s)
