"""`LogFilter`: only the lines of a log that a pattern is found in, as lines of their own."""

from __future__ import annotations

import re
from array import array
from typing import Literal

from llmb_tui.watch.logindex import LogIndex

_CHUNK_LINES = 2000
_FIND_LINES = 200


class LogFilter:
    """Numbers of the matching lines, 8 bytes each. `refresh` may run in one thread while another one reads."""

    def __init__(self, index: LogIndex, pattern: re.Pattern[str]) -> None:
        self.pattern = pattern
        self._index = index
        self._numbers = array("Q")
        self._size = 0
        self._last: int | None = None
        self.looked_at = 0
        """Lines of the log that were looked at."""

    def refresh(self) -> None:
        """Look at up to 2,000 lines more. The log's last line may have grown, so it is looked at again."""
        if self.complete and self._size == self._index.size:
            return
        self._size = self._index.size
        if self._last is not None:
            self._forget_from(self._last)
        elif self._index.lines < self.looked_at:  # the log was replaced
            self._forget_from(0)
        lines = self._index.read(self.looked_at, _CHUNK_LINES)
        for number, line in enumerate(lines, self.looked_at):
            if self.pattern.search(line):
                self._numbers.append(number)
        self.looked_at += len(lines)
        self._last = self.looked_at - 1 if lines and self.complete else None

    @property
    def complete(self) -> bool:
        """Every line was looked at."""
        return self.looked_at == self._index.lines

    @property
    def lines(self) -> int:
        return len(self._numbers)

    def number(self, line: int) -> int:
        """Number in the log of a line of the filter."""
        return self._numbers[line]

    def read(self, first: int, count: int) -> list[str]:
        numbers = self._numbers[max(first, 0) : max(first, 0) + count]
        if not numbers or numbers[-1] - numbers[0] >= _CHUNK_LINES:
            return [text for number in numbers for text in self._index.read(number, 1)]
        near = self._index.read(numbers[0], numbers[-1] - numbers[0] + 1)
        return [near[number - numbers[0]] for number in numbers if number - numbers[0] < len(near)]

    def find(self, pattern: re.Pattern[str], start: int, direction: Literal[1, -1] = 1) -> int | None:
        """The first matching line from `start` on in which another pattern is found too."""
        at = min(max(start, 0), self.lines - 1)
        while 0 <= at < self.lines:
            first, end = (at, at + _FIND_LINES) if direction == 1 else (max(at - _FIND_LINES, -1) + 1, at + 1)
            hits = [first + k for k, text in enumerate(self.read(first, end - first)) if pattern.search(text)]
            if hits:
                return hits[0 if direction == 1 else -1]
            at = end if direction == 1 else first - 1
        return None

    def _forget_from(self, number: int) -> None:
        while self._numbers and self._numbers[-1] >= number:
            self._numbers.pop()
        self.looked_at, self._last = number, None
