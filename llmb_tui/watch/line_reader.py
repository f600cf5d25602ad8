"""Lines of a local copy of a log, read from its file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from llmb_tui.watch.lines import LineSplitter, split_lines
from llmb_tui.watch.logcopy import copies, newest_copy

_TAIL_BYTES = 1 << 16
_PIECE = 1 << 18


def last_lines(path: Path, count: int) -> list[str]:
    """The last lines of a file; empty if the file does not exist. A line of 64 KiB or more is cut."""
    try:
        with path.open("rb") as file:
            start = max(file.seek(0, 2) - _TAIL_BYTES, 0)
            file.seek(start)
            data = file.read(_TAIL_BYTES)
    except OSError:
        return []
    return split_lines(data)[1 if start and b"\n" in data else 0 :][-count:]


class LineReader:
    """The lines of a growing file, each once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._splitter = LineSplitter()
        self._offset = 0

    def new(self) -> Iterator[str]:
        """Lines that were completed since the last call."""
        if not self._path.is_file():
            return
        with self._path.open("rb") as file:
            file.seek(self._offset)
            while data := file.read(_PIECE):
                self._offset += len(data)
                yield from self._splitter.feed(data)

    def last(self) -> Iterator[str]:
        """The last line if it has no newline yet."""
        if self._splitter.rest:
            yield self._splitter.rest


class CopiesReader:
    """The lines of a run's newest log copy and of later copies, in order, each once."""

    def __init__(self, folder: Path) -> None:
        """`folder`: folder of the run."""
        self._folder = folder
        self._copy = newest_copy(folder)
        self._reader = LineReader(folder / self._copy.name)

    def new(self) -> Iterator[str]:
        """Lines that were completed since the last call. A copy no longer grows once there is a later one."""
        for later in [copy for copy in copies(self._folder) if copy > self._copy]:
            yield from self._reader.new()
            yield from self._reader.last()
            self._copy, self._reader = later, LineReader(self._folder / later.name)
        yield from self._reader.new()

    def last(self) -> Iterator[str]:
        """The last line if it has no newline yet."""
        return self._reader.last()
