"""`LocalLog`: the local copy of a run's log, read as it grows and folded into `Progress`."""

from __future__ import annotations

import os
import re
import time
from dataclasses import replace
from pathlib import Path

from llmb_tui.launch.run import Run
from llmb_tui.watch.events import LogRead
from llmb_tui.watch.parse import StepParser
from llmb_tui.watch.progress import fold
from llmb_tui.watch.state import Progress, Step

_PIECE = 1 << 18
_AT_ONCE = 1 << 23
_HEAD = 1 << 16

# What Pyxis and Enroot print while they fetch and unpack an image.
_CONTAINER_LINE = re.compile(rb"(?:\d+: ?)?(?:(?:slurmstepd|srun): )?(?:pyxis: |enroot|\[INFO\] )|\s*$")


class LocalLog:
    """One log from its first byte. It holds no more of it than a piece."""

    def __init__(self, run: Run, path: Path, before: str = "", *, of_next_start: bool = False) -> None:
        """`before`: file name of the copy before it, if there is one; `of_next_start`: that one is another file's."""
        self.path = path
        self._plan = run.plan
        self._parser = StepParser(run.log_format)
        self._final = Progress(steps_total=run.plan.steps, before=before, of_next_start=of_next_start)
        self.progress = self._final
        """With the newest step, although a bar may still repaint it."""
        self.size = 0
        """Bytes that were read."""
        self.trouble = ""
        """Why the copy cannot be read, although there is one."""
        self._grew_at = 0.0
        self._started = False
        self._shown: tuple[Progress, Step | None] | None = None

    def read(self) -> bool:
        """Read what was appended, but no more than 8 MiB; True if there may be more."""
        try:
            if self.path.exists() and not self.path.is_file():  # a pipe would be waited for
                raise OSError(0, "it is no file")
            file = self.path.open("rb")
        except OSError as error:
            is_there = not isinstance(error, FileNotFoundError)
            self.trouble = f"{self.path} cannot be read: {error.strerror}." if is_there else ""
            return False
        began, self.trouble, steps = self.size, "", list[Step]()
        with file:
            self._grew_at = os.fstat(file.fileno()).st_mtime
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
        """No more will be appended: the newest step is final."""
        self._final = fold(self._final, self._parser.close(), self._plan)
        self._show()

    @property
    def reading(self) -> LogRead:
        """What it says, as far as it was read."""
        return LogRead(self.path.name, self.size, self._grew_at, time.time(), self._started, self.progress)

    def _show(self) -> None:
        parser, now = self._parser, (self._final, self._parser.pending)
        if now != self._shown:  # most lines say nothing of a step
            self._shown = now
            self.progress = fold(self._final, (parser.pending,) if parser.pending else (), self._plan)
        if (self.progress.failure, self.progress.unbound) != (parser.failure, len(parser.unbound)):
            self.progress = replace(self.progress, failure=parser.failure, unbound=len(parser.unbound))


def _whole_lines(head: bytes) -> bytes:
    """Without the last line where its rest is still to come; no more comes of a head that is full."""
    return head if len(head) == _HEAD else head[: max(head.rfind(b"\n"), head.rfind(b"\r")) + 1]


def only_container_lines(log: bytes) -> bool:
    """True while a log, from its beginning, holds nothing but the container's own lines."""
    return all(_CONTAINER_LINE.match(line) for line in log.splitlines())
