"""`until`: waiting for what another thread, process or machine brings about."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")

DEADLINE_S = 60.0
"""Long enough for a busy machine, and shorter than the 90 seconds after which the remote commands end by themselves."""
_SHORTEST_S, _LONGEST_S = 0.01, 2.0


def until(
    look: Callable[[], Answer | None], what: str = "", deadline_s: float = DEADLINE_S, *, look_waits: bool = False
) -> Answer:
    """The first true answer of `look`. Raises TimeoutError that says what was waited for.

    After a look that took long, as one that starts a program does, six times as long passes: what is waited for
    needs the processor too. No time passes between two looks that wait for something themselves (`look_waits`).
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
