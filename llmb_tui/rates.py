"""`Pace`: how fast a count grows."""

from __future__ import annotations

import math
from collections import deque


class Pace:
    """How fast a count grows, by its newest sightings. A count that shrinks is a new start."""

    def __init__(self, *, newest: int | None = None, within_s: float = math.inf, after_s: float = 0.0) -> None:
        """The sightings that count are the `newest` so many, of the last `within_s`, once they span `after_s`."""
        self._seen: deque[tuple[int, float]] = deque(maxlen=newest)
        self._within_s = within_s
        self._after_s = after_s

    @property
    def count(self) -> int:
        """The count as it was last seen; 0 before."""
        return self._seen[-1][0] if self._seen else 0

    def note(self, count: int, now: float) -> None:
        """The count was seen at `now`, seconds on any one clock."""
        if count < self.count:
            self._seen.clear()
        self._seen.append((count, now))
        while now - self._seen[0][1] > self._within_s:
            self._seen.popleft()

    def seconds_left(self, total: int | None, now: float) -> float | None:
        """Seconds from `now` until the count is `total`; None until a pace was seen."""
        if total is None or not self._seen:
            return None
        (first, began), (count, latest) = self._seen[0], self._seen[-1]
        if count <= first or latest - began < self._after_s:
            return None
        return max(0.0, (total - count) * (latest - began) / (count - first) - (now - latest))
