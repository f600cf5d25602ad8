"""`Session`: one cluster that is always there: a live link, made again when it is dead."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

from llmb_tui.cluster.dialer import Dialer
from llmb_tui.cluster.failures import Disconnected, Unreachable
from llmb_tui.cluster.health import LinkHealth, LinkState, note
from llmb_tui.cluster.link import Completed, Link, Pulse, Stream
from llmb_tui.cluster.local import LocalConnection
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.prompter import Prompter, Unattended
from llmb_tui.cluster.ssh.bulk import Bulk
from llmb_tui.cluster.ssh.connect import connect
from llmb_tui.cluster.ssh.keys import UnlockedKeys

_MINUTE_S = 60.0

T = TypeVar("T")


class Session:
    """Runs commands on a cluster from any thread. Nothing is connected before the first command.

    A command whose outcome is unknown is never run again: it raises Disconnected or DeadlinePassed. Only the first
    connection, and one that is `attended`, asks a person anything.
    """

    def __init__(self, profile: ClusterProfile, prompter: Prompter) -> None:
        self.profile = profile
        self._dialer = Dialer(self._dial, prompter, profile.name or profile.host)
        self._unlocked = UnlockedKeys()
        self._bulk = Bulk(lambda: connect(self.profile, Unattended(), unlocked=self._unlocked))
        self._calls: deque[float] = deque()
        self._counting = threading.Lock()

    @property
    def state(self) -> LinkState:
        """`connecting` before the first try and during each; `lost` when it broke or the last try failed.

        `needs-login` when it broke and logging in again would ask somebody: `connect(attended=True)` does.
        """
        return self._dialer.state

    @property
    def alive(self) -> bool:
        """True while there is a connection that is not known to be broken."""
        return self._dialer.alive

    @property
    def banner(self) -> str:
        """What the login node greets with, clean of control characters; empty before the first connection."""
        link = self._dialer.link
        return link.banner if link is not None else ""

    @property
    def health(self) -> LinkHealth:
        """What is known of the link at this moment. Never waits."""
        state = self._dialer.state
        link = self._dialer.link
        pulse = link.pulse if link is not None and state == "live" else Pulse()
        words = note(state, pulse, trying_again=link is not None, next_try_s=self._dialer.next_try_s)
        return LinkHealth(state, pulse.round_trip_s, pulse.silent_s, words, "own" if self._bulk.alive else "shared")

    @property
    def calls_last_minute(self) -> int:
        """Commands sent in the last 60 seconds. Heartbeats are none."""
        with self._counting:
            while self._calls and self._calls[0] < time.monotonic() - _MINUTE_S:
                self._calls.popleft()
            return len(self._calls)

    def connect(self, *, patience_s: float = 0.0, attended: bool = False) -> None:
        """Connect unless that is done. While the host cannot be reached, try again for `patience_s` seconds.

        `attended`: somebody is there to answer, also when an earlier connection broke. One thread connects while
        others wait for its outcome. Between failed tries passes a pause that grows from 0.5 to some 10 seconds.
        Raises LoginNeeded, and what `cluster.ssh.connect.connect` raises.
        """
        gives_up = time.monotonic() + patience_s
        while True:
            try:
                self._dialer.live(attended=attended)
            except Unreachable:
                if time.monotonic() + self._dialer.pause_s > gives_up:
                    raise
                self._dialer.pause()
            else:
                return

    def run(self, argv: Sequence[str], *, stdin: bytes = b"", deadline_s: float = 20.0) -> Completed:
        """`Link.run` on a live link."""
        return self._on_live(lambda link: link.run(argv, stdin=stdin, deadline_s=deadline_s))

    def run_script(
        self, script: str, args: Sequence[str] = (), *, stdin: bytes = b"", deadline_s: float = 20.0
    ) -> Completed:
        """`Link.run_script` on a live link."""
        return self._on_live(lambda link: link.run_script(script, args, stdin=stdin, deadline_s=deadline_s))

    def stream(self, argv: Sequence[str], *, bulk: bool = False, deadline_s: float = 20.0) -> Stream:
        """`Link.stream` on a live link; `bulk`: on a connection of its own where logging in again asks nobody."""

        def start(link: Link) -> Stream:
            own = self._bulk.stream(argv, deadline_s) if bulk and self._may_have_two(link) else None
            return own or link.stream(argv, deadline_s=deadline_s)

        return self._on_live(start)

    def write_file(self, path: str, data: bytes, mode: int = 0o600, *, deadline_s: float = 60.0) -> None:
        """`Link.write_file` on a live link."""
        self._on_live(lambda link: link.write_file(path, data, mode, deadline_s=deadline_s))

    def close(self) -> None:
        """Close the connections for good; later commands raise Disconnected."""
        self._dialer.close()
        self._bulk.close()

    def _dial(self, prompter: Prompter) -> Link:
        if self.profile.transport == "local":
            return LocalConnection(self.profile.host)
        return connect(self.profile, prompter, unlocked=self._unlocked)

    def _may_have_two(self, link: Link) -> bool:
        return self.profile.transport == "ssh" and link.asks_nobody

    def _on_live(self, use: Callable[[Link], T]) -> T:
        try:
            return self._use(use)
        except Disconnected as broken:
            if broken.may_have_run or self.state == "closed":
                raise
        # The link was dead before the command went out, which only shows when it is used.
        return self._use(use)

    def _use(self, use: Callable[[Link], T]) -> T:
        link = self._dialer.live()
        with self._counting:
            self._calls.append(time.monotonic())
        return use(link)
