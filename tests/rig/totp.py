"""Time-based one-time codes (RFC 6238), as the operator's phone shows them."""

from __future__ import annotations

import base64
import hmac
import struct
import time

SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEH"
PERIOD_S = 30


def code(secret: str = SECRET, moment: float | None = None) -> str:
    """A six-digit code, for now or for a Unix time."""
    key = base64.b32decode(secret + "=" * (-len(secret) % 8))
    counter = struct.pack(">Q", int(time.time() if moment is None else moment) // PERIOD_S)
    digest = hmac.digest(key, counter, "sha1")
    start = digest[-1] & 15
    number = int.from_bytes(digest[start : start + 4], "big") & 0x7FFFFFFF
    return f"{number % 1_000_000:06d}"
