"""`DemoSite`: base of the simulated clusters: a folder, a clock, start and stop."""

from __future__ import annotations

import fcntl
import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Self

from llmb_tui.errors import LlmbError

SPEED = 60.0


class DemoSite(ABC):
    """A simulated cluster in the folder `root`, between `start` and `stop`.

    `speed` is the factor by which the clock of a new job is faster than real time.
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
        """Write missing files below the root, and listen. Raises LlmbError if the root is in use or unusable."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = _lock_folder(self.root)
        try:
            self.listen()
        except BaseException:
            os.close(self._lock)
            self._lock = None
            raise

    def stop(self) -> None:
        """End the servers and their connections. Jobs continue."""
        if self._lock is not None:
            self.end()
            os.close(self._lock)
            self._lock = None

    @abstractmethod
    def listen(self) -> None:
        """Start the servers, in a folder that no other process uses."""

    @abstractmethod
    def end(self) -> None:
        """End the servers."""


def _lock_folder(root: Path) -> int:
    """Lock the folder, which one process may use at a time, until the returned handle is closed."""
    lock = os.open(root / "in-use", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise LlmbError(
            f"The demo cluster in {root} is already running.",
            "Another llmb-tui has started it.",
            "Quit that one first, or set TMPDIR to another folder for this one.",
            exit_code=1,
        ) from None
    return lock
