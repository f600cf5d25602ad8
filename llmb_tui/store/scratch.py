"""`scratch`: what a program writes for a while, and takes away again also where it is terminated meanwhile."""

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

from llmb_tui.errors import Trouble

_HERE: set[Path] = set()


@contextlib.contextmanager
def scratch(prefix: str) -> Iterator[Path]:
    """A private folder for as long as the block lasts. Raises Trouble where there can be none."""
    try:
        folder = Path(tempfile.mkdtemp(prefix=prefix))
    except OSError as error:
        why = f"{(error.strerror or str(error)).rstrip('.')}."
        fix = "Free some space in the temporary directory, or set TMPDIR to another one."
        raise Trouble("No temporary folder could be made.", why, fix) from error
    with removed_after(folder):
        yield folder


@contextlib.contextmanager
def removed_after(path: Path) -> Iterator[None]:
    """Remove a file or folder when the block is over, if it is still there."""
    _HERE.add(path)
    try:
        yield
    finally:
        _remove(path)
        _HERE.discard(path)


def removed_when_terminated() -> None:
    """From now on SIGTERM and SIGHUP, where they end this process, take away first what is here for a while.

    Whichever thread has made it, and also what no exception would reach. In the main thread only.
    """
    for kind in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(kind) is signal.SIG_DFL:  # else somebody has another use for it, such as `nohup`
            signal.signal(kind, _end)


@atexit.register  # what a thread that nobody waits for is still at
def _remove_all() -> None:
    for path in tuple(_HERE):
        _remove(path)


def _end(kind: int, _: Any) -> None:
    _remove_all()
    signal.signal(kind, signal.SIG_DFL)
    os.kill(os.getpid(), kind)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink()
