"""`LogIndex`: random access to the lines of a log file, without holding the log in memory.

Only the number of newlines before each 64 KiB block is kept (8 bytes a block), so a log of 1 GB costs
128 KiB, and reading a line costs one or two reads of a block.
"""

from __future__ import annotations

import os
import re
import sys
from array import array
from bisect import bisect_left
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple

from llmb_tui.language.text import clean
from llmb_tui.watch.lines import SHOWN_CHARACTERS, display_text

_BLOCK = 1 << 16
_READ = 1 << 20
# Lines closer together than this are read together; a larger range is read line by line, in parts.
_WINDOW = 1 << 20
# A smaller file is counted completely, because that takes no noticeable time.
_TAIL_FROM = 8 << 20
_TAIL = 1 << 20
# Constructs of a pattern that look beyond a line or do not backtrack: they may match a line and not the whole text.
_ACROSS = re.compile(r"\\[AZz]|\(\?(?:[=!<>]|[a-zA-Z]*-)|[*+?}]\+")
# Bytes that cleaning never changes.
_PLAIN = bytes((*b"\t\n\r", *range(32, 127)))


class _Extent(NamedTuple):
    """The indexed part of the file; replaced as a whole, so that a reader in another thread sees a consistent one."""

    size: int = 0
    newlines: int = 0
    open_end: bool = False


class LogIndex:
    """The lines of one append-only file, numbered from 0.

    `refresh` may run in one thread while another thread reads. A file that does not exist yet has no lines.
    """

    def __init__(self, path: Path, begin: int = 0) -> None:
        self._path = path
        self.begin = begin
        """Offset of the line that is numbered 0."""
        self._fd: int | None = None
        self._before = array("Q", [0])
        """Newlines before each block."""
        self._extent = _Extent()

    def tail(self) -> LogIndex | None:
        """The last lines of a long file as a separate index; None if counting all lines is as quick.

        `lines_before` gives the number of its first line in the file, once this index has read that far.
        """
        size = self._file_size()
        if size < _TAIL_FROM:
            return None
        newline = self._pread(_TAIL, size - _TAIL).find(b"\n", 0, -1)
        return LogIndex(self._path, size - _TAIL + newline + 1) if newline >= 0 else None

    def lines_before(self, tail: LogIndex) -> int:
        """Number of lines before the first line of a tail; 0 if the file became shorter than that."""
        block, within = divmod(tail.begin, _BLOCK)
        if block >= len(self._before):
            return 0
        return self._before[block] + self._pread(within, block * _BLOCK).count(b"\n")

    def refresh(self, at_most: int = sys.maxsize) -> bool:
        """Index the bytes appended since the last call; True if there were more than `at_most`.

        Takes about half a second for the first GB.
        """
        size = self._file_size()
        if size < self._extent.size:
            self._before, self._extent = array("Q", [0]), _Extent()
        end = min(size, self._extent.size + at_most)
        while self._extent.size < end:
            data = self._pread(min(_READ, end - self._extent.size), self._extent.size)
            if not data:
                return False
            self._count(data)
        return end < size

    @property
    def lines(self) -> int:
        """Number of lines, including an unfinished last one."""
        return self._extent.newlines + self._extent.open_end

    @property
    def size(self) -> int:
        """Number of indexed bytes."""
        return self._extent.size

    def read(self, first: int, count: int) -> list[str]:
        """Lines `first` to `first + count - 1`, as far as they exist, as `lines.display_text` prepares them.

        In a line of more than 1 MiB, a carriage return is only found in the last 64 KiB.
        """
        extent = self._extent
        first, end = max(0, first), min(first + count, extent.newlines + extent.open_end)
        if first >= end:
            return []
        start, stop = self._start(first, extent), self._start(end, extent)
        if stop - start <= _WINDOW:
            lines = self._pread(stop - start, start).split(b"\n")
            return [display_text(line) for line in lines[: end - first]]
        bounds = [start, *(self._start(line, extent) for line in range(first + 1, end)), stop]
        return [self._read_one(a, b) for a, b in pairwise(bounds)]

    def find(self, pattern: re.Pattern[str], start: int, direction: Literal[1, -1] = 1) -> int | None:
        """Index of the first line from `start` on (inclusive), forward or backward, that matches `pattern`.

        The searched text is the text that `read` returns. One GB takes seconds, so call it in a thread.
        """
        extent = self._extent
        start = min(max(0, start), extent.newlines)
        across = _ACROSS.search(pattern.pattern)
        anywhere = None if across else re.compile(pattern.pattern, pattern.flags | re.MULTILINE)
        block = self._block_of(start)
        while 0 <= block < len(self._before):
            first, end = self._lines_of(block, extent)
            first, end = (max(first, start), end) if direction == 1 else (first, min(end, start + 1))
            if first < end and (anywhere is None or self._may_hold(anywhere, first, end, extent)):
                lines = self.read(first, end - first)
                hits = [offset for offset, line in enumerate(lines) if pattern.search(line)]
                if hits:
                    return first + hits[0 if direction == 1 else -1]
            block += direction
        return None

    def close(self) -> None:
        """Close the file; `refresh` opens it again."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _file_size(self) -> int:
        if self._fd is None:
            try:
                self._fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            except FileNotFoundError:
                return 0
        return max(os.fstat(self._fd).st_size - self.begin, 0)

    def _pread(self, count: int, offset: int) -> bytes:
        return b"" if self._fd is None else os.pread(self._fd, count, self.begin + offset)

    def _count(self, data: bytes) -> None:
        """Index the bytes that follow the indexed ones."""
        size, newlines, _ = self._extent
        position = 0
        while position < len(data):
            part = data[position : position + _BLOCK - size % _BLOCK]
            # `bytes.count` examines byte after byte; this is three to nine times as fast for the usual lines of logs.
            newlines += len(part) - len(part.replace(b"\n", b""))
            position, size = position + len(part), size + len(part)
            if size % _BLOCK == 0:
                self._before.append(newlines)
        self._extent = _Extent(size, newlines, open_end=not data.endswith(b"\n"))

    def _block_of(self, line: int) -> int:
        """Block that contains the newline before line `line`; line 0 begins in block 0."""
        return max(0, bisect_left(self._before, line) - 1)

    def _lines_of(self, block: int, extent: _Extent) -> tuple[int, int]:
        """Lines (first, one after the last) that begin after a newline of `block`."""
        total = extent.newlines + extent.open_end
        after = self._before[block + 1] if block + 1 < len(self._before) else extent.newlines
        return (self._before[block] + 1 if block else 0), min(after + 1, total)

    def _start(self, line: int, extent: _Extent) -> int:
        """Offset of the first byte of a line."""
        if line <= 0:
            return 0
        if line > extent.newlines:
            return extent.size
        block = self._block_of(line)
        data = self._pread(_BLOCK, block * _BLOCK)
        behind = data.split(b"\n", line - self._before[block])[-1]
        return block * _BLOCK + len(data) - len(behind)

    def _read_one(self, start: int, stop: int) -> str:
        """One line of any length: its last bytes if it is a progress bar, otherwise its first."""
        if stop - start <= _BLOCK:
            return display_text(self._pread(stop - start, start).rstrip(b"\n"))
        end = self._pread(_BLOCK, stop - _BLOCK).rstrip(b"\r\n")
        return display_text(end if b"\r" in end else self._pread(_BLOCK, start))

    def _may_hold(self, pattern: re.Pattern[str], first: int, end: int, extent: _Extent) -> bool:
        """Whether one of these lines may match. One search of the whole text is faster than one search for each line.

        True for a text that differs from its display, because the search would not be valid for it.
        """
        start, stop = self._start(first, extent), self._start(end, extent)
        if stop - start > _WINDOW:
            return True
        data = self._pread(stop - start, start)
        special = data.translate(None, _PLAIN).decode("utf-8", "replace")
        if clean(special) != special or _is_cut(data):
            return True
        text = data.decode("utf-8", "replace").replace("\r", "\n").replace("\t", "    ")
        return pattern.search(text) is not None


def _is_cut(data: bytes) -> bool:
    """Whether a line may be longer than the part that is shown."""
    position = 0
    while len(data) - position > SHOWN_CHARACTERS:
        position = data.rfind(b"\n", position, position + SHOWN_CHARACTERS + 1) + 1
        if not position:
            return True
    return False
