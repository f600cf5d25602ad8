"""`Bulk`: a session's second connection, for long streams, so that commands never wait behind their bytes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from llmb_tui.cluster.failures import Disconnected
from llmb_tui.cluster.link import Stream
from llmb_tui.cluster.ssh.connection import Connection
from llmb_tui.errors import Trouble

# As wide as a stream of 20 MB/s over 100 ms needs. Much wider ones are slower: paramiko copies what it holds.
_WINDOW = 1 << 21
_RETRY_AFTER_S = 300.0


class Bulk:
    """Opened with the first stream. Where that fails streams share the first connection, without a word."""

    def __init__(self, dial: Callable[[], Connection]) -> None:
        """`dial` asks nobody."""
        self._dial = dial
        self._dialling = threading.Lock()
        self._connection: Connection | None = None
        self._not_before = 0.0
        self._closed = threading.Event()

    @property
    def alive(self) -> bool:
        """True while there is a second connection that is not known to be broken."""
        connection = self._connection
        return connection is not None and connection.alive

    def stream(self, argv: Sequence[str], deadline_s: float) -> Stream | None:
        """Start a command on the second connection; None when there is none. Raises as `Link.stream`."""
        connection = self._open()
        if connection is None:
            return None
        try:
            return connection.stream(argv, deadline_s=deadline_s, window=_WINDOW)
        except Disconnected as broken:
            if broken.may_have_run:
                raise
            return None

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
            except Trouble:
                self._not_before = time.monotonic() + _RETRY_AFTER_S
                return None
            if self._closed.is_set():
                connection.close()
            return connection
