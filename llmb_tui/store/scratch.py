"""`scratch`: temporary files and folders that are removed even if the program is terminated."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import glob
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from llmb_tui.errors import LlmbError

_PATHS: set[Path] = set()


@contextlib.contextmanager
def scratch(prefix: str) -> Iterator[Path]:
    """Private folder that exists for the duration of the block. Raises LlmbError if it cannot be made.

    Folders with this prefix that a killed program of this user has left are removed first.
    """
    remove_abandoned(tempfile.gettempdir(), prefix)
    is_kept = False
    while not is_kept:
        try:
            folder = Path(tempfile.mkdtemp(prefix=prefix))
        except OSError as error:
            why = f"{(error.strerror or str(error)).rstrip('.')}."
            fix = "Free some space in the temporary directory, or set TMPDIR to another directory."
            raise LlmbError("The temporary folder could not be made.", why, fix) from error
        with removed_after(folder) as is_kept:  # False if another program took the new folder for an abandoned one
            if is_kept:
                yield folder


@contextlib.contextmanager
def removed_after(path: Path) -> Iterator[bool]:
    """Lock a file or folder for the block, and remove it at the end; yields False if it no longer exists.

    On a file system without locks it is not locked, and `remove_abandoned` removes nothing.
    """
    _PATHS.add(path)
    handle = _open(path)
    try:
        if handle is not None:
            with contextlib.suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_EX)
        yield os.path.lexists(path)
    finally:
        _remove(path)
        _PATHS.discard(path)
        if handle is not None:
            os.close(handle)


def remove_abandoned(directory: str | Path, prefix: str, suffix: str = "") -> None:
    """Remove this user's files and folders with such a name that no program locks, as `removed_after` does."""
    for path in Path(directory).glob(f"{glob.escape(prefix)}*{glob.escape(suffix)}"):
        handle = _open(path)
        if handle is not None:
            with contextlib.suppress(OSError):
                if os.fstat(handle).st_uid == os.getuid():
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _remove(path)
            os.close(handle)


def _open(path: Path) -> int | None:
    """Open a file or folder, and no link, to lock it; None if that is not possible."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None


def remove_scratch_on_signals() -> None:
    """From now on, remove temporary files before SIGTERM or SIGHUP ends this process.

    This covers the files of all threads, also those that no exception would reach. Call it in the main thread only.
    """
    for kind in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(kind) is signal.SIG_DFL:  # otherwise the signal has another use, as under `nohup`
            signal.signal(kind, _end)


@atexit.register  # for daemon threads, which are not awaited
def _remove_all() -> None:
    for path in tuple(_PATHS):
        _remove(path)


def _end(kind: int, _: Any) -> None:
    _remove_all()
    signal.signal(kind, signal.SIG_DFL)
    os.kill(os.getpid(), kind)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink()
