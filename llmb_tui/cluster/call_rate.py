"""`CallRate`: the number of commands that are sent to a cluster per minute."""

from __future__ import annotations

import threading
import time
from collections import deque

PERIOD_S = 60.0


class CallRate:
    """Count of the calls in the last minute. Thread-safe."""

    def __init__(self) -> None:
        self._calls: deque[float] = deque()
        self._lock = threading.Lock()

    def count(self) -> None:
        """Count one call now."""
        with self._lock:
            self._calls.append(time.monotonic())

    @property
    def last_minute(self) -> int:
        """Number of calls in the last 60 seconds."""
        with self._lock:
            while self._calls and self._calls[0] < time.monotonic() - PERIOD_S:
                self._calls.popleft()
            return len(self._calls)
