"""`ChannelSlots`: shares the sessions of a connection among commands and streams."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

_MOST = 8  # sshd's MaxSessions is 10 by default
BELIEVED_S = 60.0
"""Time for which a refusal limits the number of sessions, seconds: it may be caused by commands that were abandoned
here and still run on the server."""
# A session that has just ended here may still end on the server: a refusal then does not show their number.
_LINGERS_S = 1.0
TURN_S = 2.0
"""Duration of a stream's turn, seconds: long enough for it to make progress, and for a login node not to start commands
all the time."""


class ChannelSlots:
    """The sessions of one connection: as many at once as the server allows, at most 8.

    Only a refusal shows how many the server allows. If no session is free, the stream whose turn ends first is ended
    after its turn, which is usually 2 seconds. On a server with one session, a long stream and short commands share it.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._in_use = 0
        # For each stream, a function that ends it and releases its slot, and the time after which it may be called.
        self._streams: dict[Callable[[], None], float] = {}
        self._most = _MOST
        self._learned_at = 0.0
        self._given_back_at = 0.0
        self.were_refused = False
        """Whether the server has refused a session."""

    def acquire(self, ends: float) -> bool:
        """Wait for a slot until the monotonic time `ends`; False if none became free. `release` returns it."""
        while True:
            with self._changed:
                now = time.monotonic()
                if self._in_use < (self._most if now - self._learned_at < BELIEVED_S else _MOST):
                    self._in_use += 1
                    return True
                if now >= ends:
                    return False
                give_way, ripe_at = min(self._streams.items(), key=lambda stream: stream[1], default=(None, ends))
                if give_way is None or ripe_at > now:
                    self._changed.wait(min(ends, ripe_at) - now)
                    continue
                del self._streams[give_way]
            give_way()  # it may wait for the network: release the lock first

    def release(self) -> None:
        """Return a slot that `acquire` gave."""
        with self._changed:
            self._in_use -= 1
            self._given_back_at = time.monotonic()
            self._changed.notify_all()

    def release_refused(self) -> bool:
        """Return a slot whose session the server refused; True if it was the only one in use."""
        with self._changed:
            self.were_refused = True
            self._in_use -= 1
            now = time.monotonic()
            if now - self._given_back_at > _LINGERS_S:
                self._most = max(1, self._in_use)
                self._learned_at = now
            self._changed.notify_all()
            return self._in_use == 0

    def register_stream(self, give_way: Callable[[], None], turn_s: float | None = None) -> None:
        """Register a stream that holds a slot: after its turn, `give_way` may be called to free the slot."""
        with self._changed:
            self._streams[give_way] = time.monotonic() + (TURN_S if turn_s is None else turn_s)
            self._changed.notify_all()

    def unregister_stream(self, give_way: Callable[[], None]) -> None:
        """Remove a stream that ends by itself."""
        with self._changed:
            self._streams.pop(give_way, None)
