"""`Connection`: one authenticated SSH connection to a login node, and commands on it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from llmb_tui.cluster.link import Completed, Link, Pulse, Stream
from llmb_tui.cluster.ssh.channel import LINK_ERRORS, Feeder, closing_at, drain
from llmb_tui.cluster.ssh.channels import SHARED_WINDOW, Channels
from llmb_tui.cluster.ssh.heartbeat import HeardTransport, Heartbeat
from llmb_tui.text import clean


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
        self._heartbeat = Heartbeat(transport, on_close)
        self._heartbeat.start()

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

    def run(self, argv: Sequence[str], *, stdin: bytes = b"", deadline_s: float = 20.0) -> Completed:
        """As `Link.run`: past the deadline the command may still be running there."""
        ends = time.monotonic() + deadline_s
        channel = self._channels.open(argv, ends)
        Feeder(channel, stdin).start()
        try:
            with closing_at(channel, ends) as cut_off:
                stdout, stderr = drain(channel)
                exit_code = channel.recv_exit_status()
        except LINK_ERRORS as error:  # paramiko acknowledges what it hands out, and that may be what fails
            raise self._channels.disconnected(argv, may_have_run=True) from error
        finally:
            self._channels.close(channel)
        # sshd may tell the exit code before the last output, and answers a channel closed by us with an end of its own.
        if exit_code == -1 or cut_off.is_set() or not channel.eof_received:
            self._explain(argv, ends)
        return Completed(tuple(argv), exit_code, stdout.decode(errors="replace"), stderr.decode(errors="replace"))

    def stream(self, argv: Sequence[str], *, deadline_s: float = 20.0, window: int = SHARED_WINDOW) -> Stream:
        """As `Link.stream`; `window` is how many bytes may be on their way, which everything else waits behind."""
        return self._channels.stream(argv, time.monotonic() + deadline_s, window)

    def _explain(self, argv: Sequence[str], ends: float) -> None:
        """Raise what explains a missing exit code or end; return when it was the command's own doing."""
        if not self._channels.link_is_up():
            raise self._channels.disconnected(argv, may_have_run=True)
        if time.monotonic() >= ends:
            raise self._channels.deadline_passed(argv)
