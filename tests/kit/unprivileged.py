"""`not_root`: a block in which root has no more access to files than any other user."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

_CAPABILITY_VERSION_3 = 0x20080522
_OVERRIDES = 1 << 1 | 1 << 2
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH."""
_GET_SECUREBITS, _SET_SECUREBITS, _NO_ROOT = 27, 28, 1


@contextmanager
def not_root() -> Iterator[None]:
    """Drop the two capabilities by which root may read and write all files, so that root has only an owner's access.

    Another user could not read the program if it is in a directory of root. The change applies to this thread and to
    the programs that it starts.
    """
    if os.geteuid() != 0:
        yield
        return
    system = ctypes.CDLL(None, use_errno=True)
    header, sets = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0), (ctypes.c_uint32 * 6)()
    assert system.capget(header, sets) == 0
    effective = sets[0]
    bits = system.prctl(_GET_SECUREBITS)
    assert system.prctl(_SET_SECUREBITS, bits | _NO_ROOT) == 0
    sets[0] &= ~_OVERRIDES
    assert system.capset(header, sets) == 0
    try:
        yield
    finally:
        sets[0] = effective
        assert system.capset(header, sets) == 0
        assert system.prctl(_SET_SECUREBITS, bits) == 0
