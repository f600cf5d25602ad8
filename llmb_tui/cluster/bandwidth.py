"""`Limit`: no more bytes a second than a person allows, for everything that is read under it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from llmb_tui.cluster.link import Stream
from llmb_tui.errors import Trouble

LEAST = 100_000
"""Bytes a second; with fewer a piece of a megabyte takes longer than a server waits for."""
_RATE = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)\s*([kKMG]?)(?:B|B/s)?")
_UNITS = {"": 1, "k": 1_000, "K": 1_000, "M": 1_000_000, "G": 1_000_000_000}


def bytes_per_s(text: str) -> float:
    """Of a rate such as `20M`, `2.5 MB/s` or `500k`. Raises Trouble (exit code 1)."""
    match = _RATE.fullmatch(text.strip())
    rate = float(match[1]) * _UNITS[match[2]] if match else 0.0
    if rate < LEAST:
        raise Trouble(
            f"The limit cannot be {text[:40]!r}.",
            f"It is a number of bytes a second, {LEAST // 1000}k at least.",
            "Give it as 500k, 20M or 1G.",
            exit_code=1,
        )
    return rate


class Limit:
    """A rate in bytes a second. For one thread."""

    def __init__(
        self, rate: float, now: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._rate = rate
        self._now = now
        self._sleep = sleep
        self._free_at = 0.0

    def wait(self, at_most_s: float) -> bool:
        """Wait until more may be read, for that long at most; True if it may."""
        missing = self._free_at - self._now()
        if missing > 0:
            self._sleep(min(missing, at_most_s))
        return missing <= at_most_s

    def spend(self, count: int) -> None:
        """So many bytes were read."""
        self._free_at = max(self._free_at, self._now()) + count / self._rate


class LimitedStream(Stream):
    """The output of a command, read no faster than that: the server waits when the window is full."""

    def __init__(self, stream: Stream, limit: Limit) -> None:
        super().__init__()
        self._stream = stream
        self._limit = limit

    @property
    def stderr(self) -> str:
        """As of the stream."""
        return self._stream.stderr

    def read(self, timeout_s: float) -> bytes | None:
        """As of the stream; None also while nothing more may be read."""
        if not self._limit.wait(timeout_s):
            return None
        data = self._stream.read(timeout_s)
        if data:
            self._limit.spend(len(data))
        return data

    def speak(self) -> None:
        """As of the stream."""
        self._stream.speak()

    def _end(self) -> None:
        self._stream.close()
