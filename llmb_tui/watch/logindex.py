"""`LogIndex`: any line of a log file at once, without holding the log.

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
# Lines that lie closer together than this are read at once; beyond it a line is read on its own, in parts.
_WINDOW = 1 << 20
# Counting what is shorter takes no time that could be seen.
_TAIL_FROM = 8 << 20
_TAIL = 1 << 20
# What a pattern has that sees beyond its line or gives nothing back: it may match a line and not the whole text.
_ACROSS = re.compile(r"\\[AZz]|\(\?(?:[=!<>]|[a-zA-Z]*-)|[*+?}]\+")
# What no cleaning changes.
_PLAIN = bytes((*b"\t\n\r", *range(32, 127)))


class _Extent(NamedTuple):
    """How much of the file is indexed; replaced as a whole, so that a reader in another thread sees no half of it."""

    size: int = 0
    newlines: int = 0
    open_end: bool = False


class LogIndex:
    """The lines of one append-only file, numbered from 0.

    `refresh` may run in one thread while another one reads. A file that is not there yet has no lines.
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
        """The last lines of a long file as an index of their own; None where counting all of them is as quick.

        What number its first line has in the file is `lines_before` it, once this index got that far.
        """
        size = self._file_size()
        if size < _TAIL_FROM:
            return None
        newline = self._pread(_TAIL, size - _TAIL).find(b"\n", 0, -1)
        return LogIndex(self._path, size - _TAIL + newline + 1) if newline >= 0 else None

    def lines_before(self, tail: LogIndex) -> int:
        """How many lines there are before the first one of a tail; none where the file became shorter than that."""
        block, within = divmod(tail.begin, _BLOCK)
        if block >= len(self._before):
            return 0
        return self._before[block] + self._pread(within, block * _BLOCK).count(b"\n")

    def refresh(self, at_most: int = sys.maxsize) -> bool:
        """Index what was appended since the last time; True if more bytes than `at_most` were.

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
        """Number of lines, with an unfinished last one."""
        return self._extent.newlines + self._extent.open_end

    @property
    def size(self) -> int:
        """Number of bytes that are indexed."""
        return self._extent.size

    def read(self, first: int, count: int) -> list[str]:
        """Lines `first` to `first + count - 1`, as many of them as there are, as `lines.shown` makes them.

        A carriage return further than 64 KiB from the end of a line of more than 1 MiB is not looked for.
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
        """The first line from `start` on (itself included), forward or backward, where `pattern` is found.

        The text that is searched is the text that `read` gives. A GB takes seconds: call it in a thread.
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
                hits = [at for at, line in enumerate(lines) if pattern.search(line)]
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
        """Take in what follows on the bytes that are indexed already."""
        size, newlines, _ = self._extent
        at = 0
        while at < len(data):
            part = data[at : at + _BLOCK - size % _BLOCK]
            # `count` looks at byte after byte; this is three to nine times as fast for lines as logs have them.
            newlines += len(part) - len(part.replace(b"\n", b""))
            at, size = at + len(part), size + len(part)
            if size % _BLOCK == 0:
                self._before.append(newlines)
        self._extent = _Extent(size, newlines, open_end=not data.endswith(b"\n"))

    def _block_of(self, line: int) -> int:
        """The block with the newline that line `line` begins after; line 0 begins in block 0."""
        return max(0, bisect_left(self._before, line) - 1)

    def _lines_of(self, block: int, extent: _Extent) -> tuple[int, int]:
        """The lines (first, one after the last) that begin after a newline of `block`."""
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
        """One line of any length, from its last bytes if it is a progress bar, else from its first."""
        if stop - start <= _BLOCK:
            return display_text(self._pread(stop - start, start).rstrip(b"\n"))
        end = self._pread(_BLOCK, stop - _BLOCK).rstrip(b"\r\n")
        return display_text(end if b"\r" in end else self._pread(_BLOCK, start))

    def _may_hold(self, pattern: re.Pattern[str], first: int, end: int, extent: _Extent) -> bool:
        """False if none of these lines can match: one search over the whole text is cheaper than one for each line.

        It says nothing of a text that is shown otherwise than it stands there.
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
    """Whether a line may be longer than what is shown of one."""
    at = 0
    while len(data) - at > SHOWN_CHARACTERS:
        at = data.rfind(b"\n", at, at + SHOWN_CHARACTERS + 1) + 1
        if not at:
            return True
    return False
