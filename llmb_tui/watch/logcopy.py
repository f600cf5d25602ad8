"""`LogCopy`: identifies one of the local copies of a run's log by its file name."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

_NAME = re.compile(r"log(?:\.(\d+))?(?:-(\d+))?")

READING = "log.json"
"""File with the facts read from a log; it takes the place of removed copies."""


class LogCopy(NamedTuple):
    """One copy of a run's log. There is one for each start of the job, and one more for each replacement of a log."""

    restart: int = 0
    part: int = 0

    @property
    def name(self) -> str:
        """File name in the run's folder: `log`, `log-1`, `log.1`, `log.1-1`."""
        return "log" + (f".{self.restart}" if self.restart else "") + (f"-{self.part}" if self.part else "")


def copies(folder: Path) -> list[LogCopy]:
    """The copies in a run's folder, oldest first."""
    try:
        names = [_NAME.fullmatch(name) for name in os.listdir(folder)]
    except OSError:
        return []
    return sorted(LogCopy(int(name[1] or 0), int(name[2] or 0)) for name in names if name)


def copy_names(folder: Path) -> tuple[str, ...]:
    """File names of the copies, oldest first."""
    return tuple(copy.name for copy in copies(folder))


def is_removed(folder: Path) -> bool:
    """Whether the copies were removed after they had been read."""
    return not copies(folder) and (folder / READING).is_file()


def newest_copy(folder: Path) -> LogCopy:
    """The copy that is appended to; its file may not exist yet."""
    return max(copies(folder), default=LogCopy())
