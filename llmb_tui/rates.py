"""`RateEstimator`: the growth rate of a count."""

from __future__ import annotations

import math
from collections import deque


class RateEstimator:
    """The growth rate of a count, from its newest observations. A count that shrinks starts anew."""

    def __init__(self, *, newest: int | None = None, within_s: float = math.inf, after_s: float = 0.0) -> None:
        """Use the `newest` observations of the last `within_s` seconds, once they span `after_s` seconds."""
        self._seen: deque[tuple[int, float]] = deque(maxlen=newest)
        self._within_s = within_s
        self._after_s = after_s

    @property
    def count(self) -> int:
        """The newest count; 0 before the first observation."""
        return self._seen[-1][0] if self._seen else 0

    def note(self, count: int, now: float) -> None:
        """Record the count at `now`, seconds on any clock."""
        if count < self.count:
            self._seen.clear()
        self._seen.append((count, now))
        while now - self._seen[0][1] > self._within_s:
            self._seen.popleft()

    def seconds_left(self, total: int | None, now: float) -> float | None:
        """Seconds from `now` until the count reaches `total`; None without a rate."""
        if total is None or not self._seen:
            return None
        (first, began), (count, latest) = self._seen[0], self._seen[-1]
        if count <= first or latest - began < self._after_s:
            return None
        return max(0.0, (total - count) * (latest - began) / (count - first) - (now - latest))
