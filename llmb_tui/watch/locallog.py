"""`LocalLog`: the local copy of a run's log, read as it grows and folded into `Progress`."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from llmb_tui.catalog.recipe import LogFormatId
from llmb_tui.launch.run import Run
from llmb_tui.watch.events import LogRead
from llmb_tui.watch.parse import StepParser
from llmb_tui.watch.progress import fold
from llmb_tui.watch.state import Progress, Step
from llmb_tui.watch.statements import add_slow_signs

_PIECE = 1 << 18
_AT_ONCE = 1 << 23
_HEAD = 1 << 16

# What Pyxis and Enroot print while they fetch and unpack an image.
_CONTAINER_LINE = re.compile(rb"(?:\d+: ?)?(?:(?:slurmstepd|srun): )?(?:pyxis: |enroot|\[INFO\] )|\s*$")


NOTHING_EARLIER = Progress()


class LocalLog:
    """One log, read from its first byte. Only one piece of it is held in memory."""

    def __init__(self, run: Run, path: Path, earlier: Progress = NOTHING_EARLIER) -> None:
        """`earlier`: facts of the logs before this one."""
        self.path = path
        self._run = run
        self._plan = run.plan
        self._earlier = earlier
        self.error = ""
        """Reason why an existing copy cannot be read."""
        self._grew_at = 0.0
        self._begin()

    def _begin(self) -> None:
        self._parser = StepParser(self._run.log_format)
        self._final = replace(self._earlier, steps_total=self._plan.steps)
        self._slow_searched = 0
        self._slow_signs: dict[int, str] = {}
        self.progress = self._final
        """Progress including the newest step, although a progress bar may still repaint it."""
        self.size = 0
        """Number of bytes read."""
        self._started = False
        self._shown: tuple[Progress, Step | None] | None = None

    def read(self) -> bool:
        """Read up to 8 MiB of new data; True if there may be more."""
        try:
            if self.path.exists() and not self.path.is_file():  # opening a pipe would block
                raise OSError(0, "it is not a regular file")
            file = self.path.open("rb")
        except OSError as error:
            is_there = not isinstance(error, FileNotFoundError)
            self.error = f"{self.path} cannot be read: {error.strerror}." if is_there else ""
            return False
        self.error, steps = "", list[Step]()
        with file:
            status = os.fstat(file.fileno())
            self._grew_at = status.st_mtime
            if status.st_size < self.size:  # its last bytes were damaged on their way, and were removed
                self._begin()
            began = self.size
            file.seek(began)
            while self.size - began < _AT_ONCE and (data := file.read(_PIECE)):
                self.size += len(data)
                steps += self._parser.feed(data)
            self._final = fold(self._final, steps, self._plan)
            if self.size > began and not self._started:
                file.seek(0)
                self._started = not only_container_lines(_whole_lines(file.read(_HEAD)))
        if self.size > began:
            self._show()
        return self.size - began >= _AT_ONCE

    def end(self) -> None:
        """Make the newest step final, because nothing more will be appended."""
        self._final = fold(self._final, self._parser.close(), self._plan)
        self._show()

    @property
    def reading(self) -> LogRead:
        """Facts read from the log so far."""
        return LogRead(self.path.name, self.size, self._grew_at, time.time(), self._started, self.progress)

    def _show(self) -> None:
        parser, now = self._parser, (self._final, self._parser.pending)
        if now != self._shown:  # most lines contain no step
            self._shown = now
            self.progress = fold(self._final, (parser.pending,) if parser.pending else (), self._plan)
        noted = (parser.failure, len(parser.unbound), parser.statements, tuple(self._slow_signs.values()))
        shown = self.progress
        if (shown.failure, shown.unbound, shown.statements, shown.slow_signs) != noted:
            failure, unbound, statements, signs = noted
            self.progress = replace(shown, failure=failure, unbound=unbound, statements=statements, slow_signs=signs)

    def search_slow_signs(self) -> bool:
        """Search the data read since the last search for lines that may explain a slow run; True if a new one is found.

        The logs of runs that are as fast as expected are not searched.
        """
        before, begin = len(self._slow_signs), self._slow_searched
        if begin < self.size:
            self._slow_searched = self.size
            with contextlib.suppress(OSError), self.path.open("rb") as file:
                file.seek(begin)
                add_slow_signs(self._slow_signs, file, self.size - begin)
        self._show()
        return len(self._slow_signs) > before


def _whole_lines(head: bytes) -> bytes:
    """`head` without an unfinished last line; a head of full size is returned unchanged, because it does not grow."""
    return head if len(head) == _HEAD else head[: max(head.rfind(b"\n"), head.rfind(b"\r")) + 1]


def only_container_lines(log: bytes) -> bool:
    """Whether a log, from its beginning, contains only lines of the container."""
    return all(_CONTAINER_LINE.match(line) for line in log.splitlines())


def has_step(path: Path, log_format: LogFormatId) -> bool:
    """Whether this log, which no longer grows, has a training step."""
    return any(_steps(path, log_format))


def last_step(path: Path, log_format: LogFormatId) -> int:
    """Index of the last step in a log that no longer grows; -1 without a step."""
    return max((step.index for step in _steps(path, log_format)), default=-1)


def _steps(path: Path, log_format: LogFormatId) -> Iterator[Step]:
    parser = StepParser(log_format)
    with contextlib.suppress(OSError), path.open("rb") as file:
        while data := file.read(_PIECE):
            yield from parser.feed(data)
    yield from parser.close()
