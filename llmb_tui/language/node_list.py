"""Slurm's short form of node names, `cn[001-004,007],gpu1`: `expand` it, and `compress` names into it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

MOST_NODES = 65_536
"""Maximum number of nodes in a list; Slurm allows no longer range either (`MAX_RANGE` of its hostlist.c)."""
_LONGEST = 1_000_000
_LONGEST_NAME = 255
"""Maximum length of a host name (RFC 1035); without it, names would take the product of two limits."""
_MOST_STEPS = 16 * MOST_NODES
"""Maximum number of partial names; a name of several parts takes one for each."""
_PIECE = re.compile(r"([A-Za-z0-9._-]+)|\[([0-9,-]+)\]|(,)|.", re.DOTALL)
"""A part of a name, the numbers in brackets, or the comma after a name; any other character is invalid."""
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})", re.DOTALL)


def expand(text: str) -> tuple[str, ...]:
    """Expand a list to its nodes, in order, each once; an empty text has none.

    Raises ValueError for a text that is not a list of nodes, and for a list of more than `MOST_NODES`, repetitions
    included.
    """
    if len(text) > _LONGEST:
        raise ValueError("the list is too long")
    names: dict[str, None] = {}
    count = steps = 0
    partial = [""]  # names between two commas, as far as they have been read
    for piece in _PIECE.finditer(f"{text},") if text else ():
        word, numbers, comma = piece.groups()
        endings = [word] if word else list(_numbers(numbers)) if numbers else []
        if endings:
            made = len(partial) * len(endings)
            steps += made
            if made > MOST_NODES or steps > _MOST_STEPS:
                raise ValueError(f"the list has more than {MOST_NODES} nodes")
            if len(partial[-1]) + len(endings[-1]) > _LONGEST_NAME:
                raise ValueError(
                    f"{text[:60]!r} is not a list of nodes: a name is longer than {_LONGEST_NAME} characters"
                )
            partial = [name + ending for name in partial for ending in endings]
        elif comma and partial != [""]:
            count += len(partial)
            if count > MOST_NODES:
                raise ValueError(f"the list has more than {MOST_NODES} nodes")
            names.update(dict.fromkeys(partial))
            partial = [""]
        else:
            raise ValueError(f"{text[:60]!r} is not a list of nodes")
    return tuple(names)


def compress(names: Iterable[str]) -> str:
    """Write names in the short form, sorted; consecutive numbers of the same width become a range."""
    numbered: dict[tuple[str, int], list[int]] = {}
    plain: set[str] = set()
    for name in set(names):
        match = _NUMBERED.fullmatch(name)
        if match is None:
            plain.add(name)
        else:
            numbered.setdefault((match[1], len(match[2])), []).append(int(match[2]))
    words = [(name, 0, name) for name in plain]
    for (prefix, width), numbers in numbered.items():
        words.append((prefix, width, prefix + _ranges(sorted(numbers), width)))
    return ",".join(word for _, _, word in sorted(words))


def _numbers(text: str) -> Iterator[str]:
    """Numbers in brackets, with their leading zeros."""
    count = 0
    for word in text.split(","):
        match = _RANGE.fullmatch(word)
        if match is None:
            raise ValueError(f"[{text[:60]}] is not a range of nodes")
        first, last = match[1], match[2] or match[1]
        count += int(last) - int(first) + 1
        if int(last) < int(first) or count > MOST_NODES:
            raise ValueError(f"{word} is not a range of nodes, or has more than {MOST_NODES}")
        yield from (str(number).zfill(len(first)) for number in range(int(first), int(last) + 1))


def _ranges(numbers: list[int], width: int) -> str:
    """Sorted numbers as ranges, `[001-004,007]`; a single number has no brackets."""
    grouped = groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])
    ranges = [[number for _, number in pairs] for _, pairs in grouped]
    words = [f"{each[0]:0{width}}" if len(each) == 1 else f"{each[0]:0{width}}-{each[-1]:0{width}}" for each in ranges]
    return words[0] if len(numbers) == 1 else f"[{','.join(words)}]"
