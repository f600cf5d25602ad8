"""What values may consist of where a batch script holds them as they are.

NeMo-Run leaves most of them unquoted, Slurm reads some characters as a list or a pattern, and Pyxis splits at others:
none of those is in here. The patterns are used with `matches`.
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
"""NeMo-Run writes names of variables in capitals, whatever they were."""
MEMORY = re.compile(r"0|[1-9]\d{0,9}[KMGT]?", re.ASCII)
"""Memory of a node as Slurm takes it: `0` for all of it, or a number, of megabytes unless it says otherwise."""
MOUNT_FLAGS = re.compile(r"[a-z][a-z0-9=-]*(\+[a-z][a-z0-9=-]*)*", re.ASCII)
"""Pyxis' mount flags, such as `ro+rprivate`."""


def matches(pattern: re.Pattern[str], value: str) -> bool:
    """True when all of `value` is of the pattern, and no part of a path in it leads upwards."""
    return pattern.fullmatch(value) is not None and ".." not in value.split("/")
