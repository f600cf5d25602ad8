"""`split_prefix`: removes what launchers put before a program's own line, and reads rank and node from it.

This module owns the grammar of prefixes. The parsers of training steps do not need it: they search for a step's own
words anywhere in a line, which is what keeps them fast.
"""

from __future__ import annotations

import re
from typing import NamedTuple

# Each prefix ends with at most one space: all others belong to the program's indentation.
_PREFIX = re.compile(
    r"[ \t]{0,8}(?:"
    r"\[?\d{4}-\d\d-\d\d[T _]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?:?(?=\s|$)"  # a time stamp
    r"|\[ {0,8}\d{1,9}\.\d{6}\](?=\s|$)"  # the kernel's seconds since the start
    r"|(?P<task>\d{1,6}):(?=\s|$)"  # srun --label
    r"|\[rank(?P<rank>\d{1,6})\]:"  # PyTorch
    r"|\[default(?P<local>\d{1,4})\]:"  # torchrun --tee
    r"|\[\d{1,4},\d{1,6}\]<std(?:out|err)>:"  # mpirun --tag-output
    r"|\[pod/[\w.-]{1,253}/[\w.-]{1,63}\](?=\s|$)"  # kubectl logs --prefix
    r"|[A-Za-z][\w.-]{0,100}/\d{1,4}(?=\s(?:\[|[EIWF]\d{4} ))"  # NeMo-Run: job/replica
    r"|Epoch \d{1,9}: {0,4}\d{1,3}%\|[^|\n]{0,200}\| {0,2}\d{1,15}/(?:\d{1,15}|\?) \[[^\]\n]{0,600}\](?=\S)"  # a bar
    # pdsh and the like: an address, or a name whose first part ends with a number
    r"|(?P<node>\d{1,3}(?:\.\d{1,3}){3}|(?!python\d)[a-z][a-z-]{0,40}[a-z0-9-]{0,20}\d(?:\.[a-z][\w.-]{0,100})?):"
    r"(?=\s|$)"
    r") ?"
)
_MOST = 8


class Prefixed(NamedTuple):
    """A line without its prefixes."""

    text: str
    """The program's own line, with its indentation."""
    source: str = ""
    """All prefixes that name a writer; lines of one writer have the same."""
    rank: int | None = None
    node: str | None = None


def split_prefix(line: str) -> Prefixed:
    """A clean line without its prefixes, which may be stacked in any order."""
    source, node, at = "", None, 0
    rank: int | None = None
    task: int | None = None
    is_local = False
    for _ in range(_MOST):
        match = _PREFIX.match(line, at)
        if match is None:
            break
        groups = match.groupdict()
        if any(value is not None for value in groups.values()) or match[0].strip()[-1:].isdecimal():
            source += match[0].strip()
        rank = int(groups["rank"]) if groups["rank"] else rank
        task = int(groups["task"]) if groups["task"] else task
        is_local = is_local or groups["local"] is not None
        node = groups["node"] or node
        at = match.end()
    if rank is None and not is_local:  # with torchrun a task of Slurm is a node
        rank = task
    return Prefixed(line[at:] if at else line, source, rank, node)
