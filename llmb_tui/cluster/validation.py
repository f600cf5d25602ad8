"""Patterns of the values that a batch script contains unchanged.

NeMo-Run does not quote most values, Slurm reads some characters as a list or a pattern, and Pyxis splits at others.
The patterns allow none of these characters. Use them with `matches`.
"""

from __future__ import annotations

import re

NAME = re.compile(r"[A-Za-z0-9_][\w.+@=-]*", re.ASCII)
NAMES = re.compile(rf"{NAME.pattern}(,{NAME.pattern})*", re.ASCII)
PATH = re.compile(r"/[\w./+@=-]*")
HOSTS = re.compile(r"[A-Za-z0-9_][\w.\-\[\],]*", re.ASCII)
"""A Slurm host list such as `cn[003,007]`."""
FEATURES = re.compile(r"[\w.+:=@/\[(!][\w.+:=@/\[\]()!&|*,-]*", re.ASCII)
"""A Slurm constraint such as `gpu&memory` or `[rack1*2&rack2*2]`."""
ENV_NAME = re.compile(r"[A-Z_][A-Z0-9_]*", re.ASCII)
"""Name of an environment variable. NeMo-Run writes all names in capitals."""
MEMORY = re.compile(r"\d{1,10}([KMGT]B?)?", re.ASCII | re.IGNORECASE)
"""Memory of a node in Slurm's notation: 0 for all of it, or a number, in megabytes unless it has a unit."""
GPU_TYPE = re.compile(r"[A-Za-z0-9_][\w.+-]*", re.ASCII)
"""Type in a request for GPUs, such as `h100` or `nvidia_h100_80gb_hbm3`."""
MOUNT_FLAGS = re.compile(r"[a-z][a-z0-9=-]*(\+[a-z][a-z0-9=-]*)*", re.ASCII)
"""Mount flags of Pyxis, such as `ro+rprivate`."""


def is_all_memory(amount: str) -> bool:
    """True if an amount of `MEMORY` is zero, which requests all memory of a node."""
    return not amount.upper().strip("0KMGTB")


def matches(pattern: re.Pattern[str], value: str) -> bool:
    """True if `value` matches the whole pattern and contains no `..` as a part of a path."""
    return pattern.fullmatch(value) is not None and ".." not in value.split("/")
