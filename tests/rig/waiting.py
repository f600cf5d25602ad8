"""Waiting for a condition, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")


def wait_for(what: str, look: Callable[[], Found], deadline_s: float = 60.0) -> Found:
    """The first true answer of `look`. Raises TimeoutError that says what was waited for."""
    ends = time.monotonic() + deadline_s
    while not (found := look()):
        if time.monotonic() > ends:
            raise TimeoutError(f"{what}: not within {deadline_s:g} s")
        time.sleep(0.02)
    return found
