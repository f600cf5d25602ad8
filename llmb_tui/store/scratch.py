"""`scratch`: temporary files and folders that are removed even if the program is terminated."""

from __future__ import annotations

import atexit
import contextlib
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
    """Private folder that exists for the duration of the block. Raises LlmbError if it cannot be made."""
    try:
        folder = Path(tempfile.mkdtemp(prefix=prefix))
    except OSError as error:
        why = f"{(error.strerror or str(error)).rstrip('.')}."
        fix = "Free some space in the temporary directory, or set TMPDIR to another directory."
        raise LlmbError("The temporary folder could not be made.", why, fix) from error
    with removed_after(folder):
        yield folder


@contextlib.contextmanager
def removed_after(path: Path) -> Iterator[None]:
    """Remove a file or folder at the end of the block, if it still exists."""
    _PATHS.add(path)
    try:
        yield
    finally:
        _remove(path)
        _PATHS.discard(path)


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
