"""`LogFilter`: the lines of a log that match a pattern."""

from __future__ import annotations

import re
from array import array
from typing import Literal

from llmb_tui.watch.logindex import LogIndex

_CHUNK_LINES = 2000
_FIND_LINES = 200


class LogFilter:
    """Numbers of the matching lines, 8 bytes each. One thread may call `refresh` while a second thread reads."""

    def __init__(self, index: LogIndex, pattern: re.Pattern[str]) -> None:
        self.pattern = pattern
        self._index = index
        self._numbers = array("Q")
        self._size = 0
        self._last: int | None = None
        self.searched = 0
        """Number of lines of the log that were searched."""

    def refresh(self) -> None:
        """Search up to 2,000 more lines. The log's last line is searched again, since it may have grown."""
        if self.complete and self._size == self._index.size:
            return
        self._size = self._index.size
        if self._last is not None:
            self._forget_from(self._last)
        elif self._index.lines < self.searched:  # the log was replaced
            self._forget_from(0)
        lines = self._index.read(self.searched, _CHUNK_LINES)
        for number, line in enumerate(lines, self.searched):
            if self.pattern.search(line):
                self._numbers.append(number)
        self.searched += len(lines)
        self._last = self.searched - 1 if lines and self.complete else None

    @property
    def complete(self) -> bool:
        """Whether every line was searched."""
        return self.searched == self._index.lines

    @property
    def lines(self) -> int:
        return len(self._numbers)

    def number(self, line: int) -> int:
        return self._numbers[line]

    def read(self, first: int, count: int) -> list[str]:
        numbers = self._numbers[max(first, 0) : max(first, 0) + count]
        if not numbers or numbers[-1] - numbers[0] >= _CHUNK_LINES:
            return [text for number in numbers for text in self._index.read(number, 1)]
        near = self._index.read(numbers[0], numbers[-1] - numbers[0] + 1)
        return [near[number - numbers[0]] for number in numbers if number - numbers[0] < len(near)]

    def find(self, pattern: re.Pattern[str], start: int, direction: Literal[1, -1] = 1) -> int | None:
        """First line of the filter from `start` that also matches another pattern; None if there is none."""
        line = min(max(start, 0), self.lines - 1)
        while 0 <= line < self.lines:
            first, end = (line, line + _FIND_LINES) if direction == 1 else (max(line - _FIND_LINES, -1) + 1, line + 1)
            hits = [first + k for k, text in enumerate(self.read(first, end - first)) if pattern.search(text)]
            if hits:
                return hits[0 if direction == 1 else -1]
            line = end if direction == 1 else first - 1
        return None

    def _forget_from(self, number: int) -> None:
        while self._numbers and self._numbers[-1] >= number:
            self._numbers.pop()
        self.searched, self._last = number, None
