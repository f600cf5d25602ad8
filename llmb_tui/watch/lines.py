"""Lines of a log as they may be shown: split, cleaned, one frame of a progress bar, bounded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from llmb_tui.language.text import clean_line
from llmb_tui.watch.logcopy import copies, newest_copy

SHOWN_CHARACTERS = 4096
"""Longest line that is shown; what is cut off is marked with an ellipsis."""

# UTF-8 needs at most four bytes for a character, so this many bytes always hold what is shown.
_SHOWN_BYTES = 4 * SHOWN_CHARACTERS
_TAIL_BYTES = 1 << 16
_PIECE = 1 << 18


def display_text(line: bytes) -> str:
    """One raw line without its newline, as text that a screen may show.

    The last frame only, decoded (what is no UTF-8 becomes U+FFFD), free of control characters, tabs as
    spaces, at most `SHOWN_CHARACTERS` and an ellipsis.
    """
    frame = line.rstrip(b"\r").rpartition(b"\r")[2]
    text = clean_line(frame[:_SHOWN_BYTES].decode("utf-8", "replace"))
    if len(text) > SHOWN_CHARACTERS or len(frame) > _SHOWN_BYTES:
        return text[:SHOWN_CHARACTERS] + "…"
    return text


class LineSplitter:
    """Bytes in any chunking → shown lines. Memory does not grow with a line that never ends."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[str]:
        """The lines that `data` completes."""
        *ended, rest = (self._rest + data).split(b"\n")
        # Earlier frames are never shown; carriage returns at the end stay, for the next byte may be a newline.
        frame = rest[rest.rstrip(b"\r").rfind(b"\r") + 1 :]
        # One byte more than is shown is enough to know that something was cut off. A carriage return that is
        # cut off with it would have begun a new frame, so it is kept.
        cut = frame[: _SHOWN_BYTES + 1]
        self._rest = cut if len(cut) == len(frame) else cut.rstrip(b"\r") + (b"\r" if frame.endswith(b"\r") else b"")
        return [display_text(line) for line in ended]

    @property
    def rest(self) -> str:
        """The line that has not ended yet, as it would be shown now."""
        return display_text(self._rest)


def split_lines(data: bytes) -> list[str]:
    """All lines of `data`, the unfinished last one too."""
    splitter = LineSplitter()
    lines = splitter.feed(data)
    return [*lines, splitter.rest] if splitter.rest else lines


def last_lines(path: Path, count: int) -> list[str]:
    """The last lines of a file; none if there is no such file. A line of 64 KiB and more is cut."""
    try:
        with path.open("rb") as file:
            start = max(file.seek(0, 2) - _TAIL_BYTES, 0)
            file.seek(start)
            data = file.read(_TAIL_BYTES)
    except OSError:
        return []
    return split_lines(data)[1 if start and b"\n" in data else 0 :][-count:]


class LineReader:
    """The lines of a file that grows, each once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._splitter = LineSplitter()
        self._offset = 0

    def new(self) -> Iterator[str]:
        """Those that were completed since the last time."""
        if not self._path.is_file():
            return
        with self._path.open("rb") as file:
            file.seek(self._offset)
            while data := file.read(_PIECE):
                self._offset += len(data)
                yield from self._splitter.feed(data)

    def last(self) -> Iterator[str]:
        """The last line, where it has no end."""
        if self._splitter.rest:
            yield self._splitter.rest


class CopiesReader:
    """The lines of a run's newest copy of its log, and of those that come after it, each once and in their order."""

    def __init__(self, folder: Path) -> None:
        """`folder`: the run's."""
        self._folder = folder
        self._copy = newest_copy(folder)
        self._reader = LineReader(folder / self._copy.name)

    def new(self) -> Iterator[str]:
        """Those that were completed since the last time. Nothing is added to a copy once there is a later one."""
        for later in [copy for copy in copies(self._folder) if copy > self._copy]:
            yield from self._reader.new()
            yield from self._reader.last()
            self._copy, self._reader = later, LineReader(self._folder / later.name)
        yield from self._reader.new()

    def last(self) -> Iterator[str]:
        """The last line, where it has no end."""
        return self._reader.last()
