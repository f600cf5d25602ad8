"""`ChannelSlots`: who may have one of a connection's sessions, and who makes room when there are too few."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

_MOST = 8  # sshd's MaxSessions is 10 by default
# A refusal may come from commands that were given up here and still run there.
_BELIEVED_S = 60.0
# What has just ended here may take a moment to end there: a refusal then says nothing about how many there are.
_LINGERS_S = 1.0
# Streams that take turns get something done in each, and a login node is not asked for one after the other.
_TURN_S = 2.0


class ChannelSlots:
    """The sessions of one connection: as many at once as the server has sessions, at most 8.

    How many it has shows only when it refuses one. Where no turn is left the stream whose turn ends first gives way:
    as a rule it has run for 2 seconds, and on a server with one session a long stream and short commands then share it.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._in_use = 0
        # What ends each of the streams and releases its slot, and from when on it may be called.
        self._streams: dict[Callable[[], None], float] = {}
        self._most = _MOST
        self._learned_at = 0.0
        self._given_back_at = 0.0
        self.were_refused = False
        """The server had none to give at least once."""

    def acquire(self, ends: float) -> bool:
        """Wait for a slot until the monotonic time `ends`; False when none came free. `release` gives it back."""
        while True:
            with self._changed:
                now = time.monotonic()
                if self._in_use < (self._most if now - self._learned_at < _BELIEVED_S else _MOST):
                    self._in_use += 1
                    return True
                if now >= ends:
                    return False
                give_way, ripe_at = min(self._streams.items(), key=lambda stream: stream[1], default=(None, ends))
                if give_way is None or ripe_at > now:
                    self._changed.wait(min(ends, ripe_at) - now)
                    continue
                del self._streams[give_way]
            give_way()  # it may wait for the network: nobody else should

    def release(self) -> None:
        """Give back a slot that `acquire` gave."""
        with self._changed:
            self._in_use -= 1
            self._given_back_at = time.monotonic()
            self._changed.notify_all()

    def refused(self) -> bool:
        """Give back a slot for which the server had no session; True when it was the only one in use."""
        with self._changed:
            self.were_refused = True
            self._in_use -= 1
            now = time.monotonic()
            if now - self._given_back_at > _LINGERS_S:
                self._most = max(1, self._in_use)
                self._learned_at = now
            self._changed.notify_all()
            return self._in_use == 0

    def may_give_way(self, give_way: Callable[[], None], turn_s: float | None = None) -> None:
        """After its turn the stream that this ends, which holds a slot, may be ended for somebody who waits for one."""
        with self._changed:
            self._streams[give_way] = time.monotonic() + (_TURN_S if turn_s is None else turn_s)
            self._changed.notify_all()

    def no_longer(self, give_way: Callable[[], None]) -> None:
        """The stream ends by itself: nobody has to end it for a slot any more."""
        with self._changed:
            self._streams.pop(give_way, None)
