"""`DemoSite`: what simulated clusters of every kind have in common: a folder, a clock, a start and a stop."""

from __future__ import annotations

import fcntl
import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Self

from llmb_tui.errors import Trouble

SPEED = 60.0


class DemoSite(ABC):
    """A simulated cluster that lives in the folder `root`, for as long as it is started.

    `speed` is how much faster than real time the clock of a new job runs.
    """

    def __init__(self, root: Path, speed: float) -> None:
        if not 0 < speed < float("inf"):
            raise ValueError(f"speed must be a positive number, not {speed}")
        self.root = root.resolve()
        self.speed = speed
        self.notice = f"simulated, clock x{speed:g}"
        self._lock: int | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Write what is missing below the root, and listen. Raises Trouble when the root is in use, or of no use."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = _take(self.root)
        try:
            self.listen()
        except BaseException:
            os.close(self._lock)
            self._lock = None
            raise

    def stop(self) -> None:
        """End the servers and their connections. Jobs go on."""
        if self._lock is not None:
            self.end()
            os.close(self._lock)
            self._lock = None

    @abstractmethod
    def listen(self) -> None:
        """Begin, in a folder that is nobody else's."""

    @abstractmethod
    def end(self) -> None:
        """End what listens."""


def _take(root: Path) -> int:
    """Take the folder, which belongs to one program at a time, until the handle that this answers with is closed."""
    lock = os.open(root / "in-use", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise Trouble(
            f"The demo cluster in {root} is running already.",
            "Another llmb-tui has started it.",
            "Leave that one first, or set TMPDIR to another folder for this one.",
            exit_code=1,
        ) from None
    return lock
