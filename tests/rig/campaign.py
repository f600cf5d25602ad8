"""How much of what is random is tried: a little in `make test`, and `TIMES` as much in `make campaign`."""

from __future__ import annotations

import os
import random
from collections.abc import Callable

TIMES = int(os.environ.get("LLMB_CAMPAIGN", "1"))


def seed(print_at_end: Callable[[str], None]) -> int:
    """Always the same in `make test`, else another one each time, told at the end; `LLMB_SEED` gives one again."""
    number = int(os.environ.get("LLMB_SEED") or (random.randrange(10**6) if TIMES > 1 else 5))
    print_at_end(f"seed {number} (LLMB_SEED={number} tries the same again)")
    return number
