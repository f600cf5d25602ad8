"""`Session`: one cluster that is always there: a live connection, made again when it is dead."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

from llmb_tui.cluster.channel import Stream
from llmb_tui.cluster.connect import connect
from llmb_tui.cluster.connection import Completed, Connection
from llmb_tui.cluster.failures import Disconnected, Unreachable
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.errors import Trouble

LinkState = Literal["connecting", "live", "lost", "closed"]

_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 10.0

T = TypeVar("T")


class Session:
    """Runs commands on a cluster from any thread. Nothing is connected before the first command.

    A command whose outcome is unknown is never run again: it raises Disconnected or DeadlinePassed.
    """

    def __init__(self, profile: ClusterProfile, prompter: Prompter) -> None:
        self.profile = profile
        self._prompter = prompter
        self._connecting = threading.Lock()
        self._closed = threading.Event()
        self._connection: Connection | None = None
        self._failure: Trouble | None = None
        self._failures = 0
        self._trying = False
        self._pause_s = _FIRST_PAUSE_S
        self._not_before = 0.0

    @property
    def state(self) -> LinkState:
        """`connecting` before the first try and during each; `lost` when it broke or the last try failed."""
        if self._closed.is_set():
            return "closed"
        if self.alive:
            return "live"
        untried = self._connection is None and self._failure is None
        return "connecting" if untried or self._trying else "lost"

    @property
    def alive(self) -> bool:
        """True while there is a connection that is not known to be broken."""
        connection = self._connection
        return connection is not None and connection.alive

    @property
    def banner(self) -> str:
        """What the login node greets with, clean of control characters; empty before the first connection."""
        connection = self._connection
        return connection.banner if connection is not None else ""

    def connect(self, *, patience_s: float = 0.0) -> None:
        """Connect unless that is done. While the host cannot be reached, try again for `patience_s` seconds.

        One thread connects while others wait for its outcome. Between failed tries passes a pause that grows
        from 0.5 to 10 seconds. Raises what `cluster.connection.connect` raises.
        """
        gives_up = time.monotonic() + patience_s
        while True:
            try:
                self._live()
            except Unreachable:
                if time.monotonic() + self._pause_s > gives_up:
                    raise
            else:
                return

    def run(self, argv: Sequence[str], *, stdin: bytes = b"", deadline_s: float = 20.0) -> Completed:
        """`Connection.run` on a live connection."""
        return self._on_live(lambda connection: connection.run(argv, stdin=stdin, deadline_s=deadline_s))

    def run_script(
        self, script: str, args: Sequence[str] = (), *, stdin: bytes = b"", deadline_s: float = 20.0
    ) -> Completed:
        """`Connection.run_script` on a live connection."""
        return self._on_live(lambda connection: connection.run_script(script, args, stdin=stdin, deadline_s=deadline_s))

    def stream(self, argv: Sequence[str], *, deadline_s: float = 20.0) -> Stream:
        """`Connection.stream` on a live connection."""
        return self._on_live(lambda connection: connection.stream(argv, deadline_s=deadline_s))

    def write_file(self, path: str, data: bytes, mode: int = 0o600, *, deadline_s: float = 60.0) -> None:
        """`Connection.write_file` on a live connection."""
        self._on_live(lambda connection: connection.write_file(path, data, mode, deadline_s=deadline_s))

    def close(self) -> None:
        """Close the connection for good; later commands raise Disconnected."""
        self._closed.set()
        if self._connection is not None:
            self._connection.close()

    def _on_live(self, use: Callable[[Connection], T]) -> T:
        try:
            return use(self._live())
        except Disconnected as broken:
            if broken.may_have_run or self._closed.is_set():
                raise
        # The link was dead before the command went out, which only shows when it is used.
        return use(self._live())

    def _live(self) -> Connection:
        """The live connection; one try to make it when there is none."""
        connection = self._connection
        if connection is not None and connection.alive and not self._closed.is_set():
            return connection
        failures_before = self._failures
        with self._connecting:
            if self.alive and not self._closed.is_set() and self._connection is not None:
                return self._connection
            if self._failure is not None and self._failures != failures_before:
                raise self._failure  # another thread tried while this one waited
            return self._try()

    def _try(self) -> Connection:
        self._closed.wait(max(0.0, self._not_before - time.monotonic()))
        if self._closed.is_set():
            raise Disconnected(f"The connection to {self.profile.name} was closed here.", "", "", may_have_run=False)
        self._trying = True
        try:
            connection = connect(self.profile, self._prompter)
        except Trouble as failure:
            self._failure = failure
            self._failures += 1
            self._not_before = time.monotonic() + self._pause_s
            self._pause_s = min(self._pause_s * 2, _LONGEST_PAUSE_S)
            raise
        finally:
            self._trying = False
        self._failure = None
        self._pause_s = _FIRST_PAUSE_S
        self._connection = connection
        if self._closed.is_set():
            connection.close()
        return connection
