"""`Turns`: who may have one of a connection's sessions, and who makes room when there are too few."""

from __future__ import annotations

import threading
import time
from typing import Protocol

_MOST = 8  # sshd's MaxSessions is 10 by default
# A refusal may come from commands that were given up here and still run there.
_BELIEVED_S = 60.0
# What has just ended here may take a moment to end there: a refusal then says nothing about how many there are.
_LINGERS_S = 1.0
# Streams that take turns get something done in each, and a login node is not asked for one after the other.
_TURN_S = 2.0


class GivesWay(Protocol):
    """A stream that can be ended to make room."""

    def give_way(self) -> None:
        """End, and return the turn."""
        ...


class Turns:
    """Turns on one connection: as many at once as the server has sessions, at most 8.

    How many it has shows only when it refuses one. Where no turn is left the oldest stream gives way, once it has
    run for 2 seconds: on a server with one session a long stream and short commands then share it.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._taken = 0
        self._streams: dict[GivesWay, float] = {}  # and from when on each may be ended; the oldest first
        self._most = _MOST
        self._learned_at = 0.0
        self._given_back_at = 0.0

    def take(self, ends: float) -> bool:
        """Wait for a turn until the monotonic time `ends`; False when none came. Give it back with `give_back`."""
        while True:
            with self._changed:
                now = time.monotonic()
                if self._taken < (self._most if now - self._learned_at < _BELIEVED_S else _MOST):
                    self._taken += 1
                    return True
                if now >= ends:
                    return False
                stream, ripe_at = next(iter(self._streams.items()), (None, ends))
                if stream is None or ripe_at > now:
                    self._changed.wait(min(ends, ripe_at) - now)
                    continue
                del self._streams[stream]
            stream.give_way()  # it may wait for the network: nobody else should

    def give_back(self) -> None:
        """Return a turn that `take` gave."""
        with self._changed:
            self._taken -= 1
            self._given_back_at = time.monotonic()
            self._changed.notify_all()

    def refused(self) -> bool:
        """Return a turn for which the server had no session; True when it was the only one that was taken."""
        with self._changed:
            self._taken -= 1
            now = time.monotonic()
            if now - self._given_back_at > _LINGERS_S:
                self._most = max(1, self._taken)
                self._learned_at = now
            self._changed.notify_all()
            return self._taken == 0

    def may_give_way(self, stream: GivesWay) -> None:
        """Whoever waits for a turn may from now on end this stream, which has one."""
        with self._changed:
            self._streams[stream] = time.monotonic() + _TURN_S
            self._changed.notify_all()

    def no_longer(self, stream: GivesWay) -> None:
        """The stream ends by itself."""
        with self._changed:
            self._streams.pop(stream, None)
