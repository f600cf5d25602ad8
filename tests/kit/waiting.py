"""`until`: wait for a condition that another thread, process or machine brings about."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")

DEADLINE_S = 60.0
"""Seconds: enough for a busy machine, and less than the 90 s after which the remote commands end themselves."""
_SHORTEST_S, _LONGEST_S = 0.01, 2.0


def until(
    look: Callable[[], Answer | None], what: str = "", deadline_s: float = DEADLINE_S, *, look_waits: bool = False
) -> Answer:
    """Return the first true answer of `look`. Raises TimeoutError with `what` in its message.

    After a slow look, such as one that starts a program, `until` pauses for six times its duration, because the awaited
    work needs the processor too. It does not pause if the looks wait themselves (`look_waits`).
    """
    ends = time.monotonic() + deadline_s
    while True:
        began = time.monotonic()
        if answer := look():
            return answer
        now = time.monotonic()
        if now > ends:
            raise TimeoutError(f"{what or _source(look)}: not within {deadline_s:g} s; the last answer was {answer!r}")
        if not look_waits:
            time.sleep(min(_LONGEST_S, max(_SHORTEST_S, 6 * (now - began))))


def _source(look: Callable[[], object]) -> str:
    try:
        return " ".join(inspect.getsource(look).split())
    except (OSError, TypeError):
        return repr(look)
