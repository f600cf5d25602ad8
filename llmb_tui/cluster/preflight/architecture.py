"""CPU architecture of the nodes that a GPU type comes in: images are built for one."""

from __future__ import annotations

import re

_GRACE = re.compile(r"g[bh]\d+", re.IGNORECASE)


def architecture_of(gpu: str) -> str:
    """`aarch64` for GPUs that sit beside a Grace CPU, such as GB200 and GB300; `x86_64` for others. As `uname -m`."""
    return "aarch64" if _GRACE.fullmatch(gpu) else "x86_64"
