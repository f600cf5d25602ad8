"""`take`: a simulated cluster's folder belongs to one program at a time."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from llmb_tui.errors import Trouble


def take(root: Path) -> int:
    """Take the folder; closing the handle that this answers with gives it back. Raises Trouble when it is in use."""
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
