"""`Limit`: the user's limit on the bytes per second that are read from a cluster."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from llmb_tui.cluster.link import Stream
from llmb_tui.errors import LlmbError

_LOWEST = 100_000
"""Bytes per second. Below this rate one megabyte takes longer than a server waits for its reader."""
_RATE = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)\s*([kKMG]?)(?:B|B/s)?")
_UNITS = {"": 1, "k": 1_000, "K": 1_000, "M": 1_000_000, "G": 1_000_000_000}


def bytes_per_s(text: str) -> float:
    """Parse a rate such as `20M`, `2.5 MB/s` or `500k`. Raises LlmbError (exit code 1)."""
    match = _RATE.fullmatch(text.strip())
    rate = float(match[1]) * _UNITS[match[2]] if match else 0.0
    if rate < _LOWEST:
        raise LlmbError(
            f"The bandwidth limit cannot be {text[:40]!r}.",
            f"It must be a number of bytes per second, at least {_LOWEST // 1000}k.",
            "Write it as 500k, 20M or 1G.",
            exit_code=1,
        )
    return rate


class Limit:
    """A rate in bytes per second. For use by one thread."""

    def __init__(
        self, rate: float, now: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._rate = rate
        self._now = now
        self._sleep = sleep
        self._free_at = 0.0

    def wait(self, at_most_s: float) -> bool:
        """Wait at most `at_most_s` seconds until more bytes may be read; True if they may be read now."""
        missing = self._free_at - self._now()
        if missing > 0:
            self._sleep(min(missing, at_most_s))
        return missing <= at_most_s

    def spend(self, count: int) -> None:
        """Charge `count` bytes to the limit."""
        self._free_at = max(self._free_at, self._now()) + count / self._rate


class LimitedStream(Stream):
    """Output of a command, read no faster than a limit: when the receive window is full, the server waits."""

    def __init__(self, stream: Stream, limit: Limit) -> None:
        super().__init__()
        self._stream = stream
        self._limit = limit

    @property
    def stderr(self) -> str:
        """End of the command's stderr."""
        return self._stream.stderr

    def read(self, timeout_s: float) -> bytes | None:
        """Next bytes of the stream, as `Stream.read`; None also while the limit allows no more."""
        if not self._limit.wait(timeout_s):
            return None
        data = self._stream.read(timeout_s)
        if data:
            self._limit.spend(len(data))
        return data

    def send_keepalive(self) -> None:
        """Send a line end to the command's stdin."""
        self._stream.send_keepalive()

    def _end(self) -> None:
        self._stream.close()
