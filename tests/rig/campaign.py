"""Extent of the randomised tests: few cases in `make test`, `TIMES` as many in `make campaign`."""

from __future__ import annotations

import os
import random
from collections.abc import Callable

TIMES = int(os.environ.get("LLMB_CAMPAIGN", "1"))


def seed(print_at_end: Callable[[str], None]) -> int:
    """A fixed seed in `make test`, else a new one that is printed at the end of the tests; `LLMB_SEED` sets it."""
    number = int(os.environ.get("LLMB_SEED") or (random.randrange(10**6) if TIMES > 1 else 5))
    print_at_end(f"seed {number} (LLMB_SEED={number} tries the same again)")
    return number
