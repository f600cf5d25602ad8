"""`LocalCopy`: the file here that a log on the cluster is copied to. It only ever grows."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from llmb_tui.errors import Trouble
from llmb_tui.store.files import make_private_directory


class LocalCopy:
    """One file, which one process at a time adds to. Not for use by several threads at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None
        self._mine = False

    @property
    def size(self) -> int:
        """Bytes that are copied."""
        return os.fstat(self._open()).st_size

    def take(self) -> bool:
        """True if this process may add to it: from now on, and until `close`, no other process may."""
        if not self._mine:
            try:
                fcntl.flock(self._open(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            except OSError:
                pass  # A file system without locks: each process writes the same bytes to the same place.
            self._mine = True
        return True

    def read(self, start: int, length: int) -> bytes:
        """The bytes at an offset, as many of them as there are."""
        return os.pread(self._open(), length, start)

    def write(self, data: bytes, offset: int) -> None:
        """Put the bytes at their offset. Raises Trouble; what was written before is right, and counts."""
        view = memoryview(data)
        try:
            while view:
                written = os.pwrite(self._open(), view, offset)
                view, offset = view[written:], offset + written
        except OSError as error:
            raise Trouble(
                f"The log's copy {self.path} cannot be written.",
                f"{error.strerror}.",
                "Free space on this machine; copying goes on where it stopped.",
            ) from error

    def close(self) -> None:
        """Let go of it."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
            self._mine = False

    def _open(self) -> int:
        if self._fd is None:
            make_private_directory(self.path.parent)
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return self._fd
