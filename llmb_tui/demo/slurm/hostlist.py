"""Slurm's host lists: `demo[001-003,007]`."""

from __future__ import annotations

import re
from collections.abc import Iterable

_ITEM = re.compile(r"[^,\[\]]*(?:\[[^\]]*\][^,\[\]]*)?")


def expand(text: str) -> list[str]:
    """The host names of a list, in its order. Text that is no range stays as it is."""
    names: list[str] = []
    for item in (found for found in _ITEM.findall(text) if found):
        prefix, bracket, rest = item.partition("[")
        if not bracket:
            names.append(item)
            continue
        ranges, _, suffix = rest.partition("]")
        for part in ranges.split(","):
            first, _, last = part.partition("-")
            numbers = range(int(first), int(last or first) + 1)
            names += [f"{prefix}{number:0{len(first)}d}{suffix}" for number in numbers]
    return names


def compress(names: Iterable[str]) -> str:
    """The shortest list of these names: ranges of neighbours with the same prefix and width."""
    groups: dict[tuple[str, int], list[int]] = {}
    plain: list[str] = []
    for name in names:
        found = re.fullmatch(r"(.*?)(\d+)", name)
        if found:
            groups.setdefault((found[1], len(found[2])), []).append(int(found[2]))
        else:
            plain.append(name)
    return ",".join([_group(prefix, width, numbers) for (prefix, width), numbers in groups.items()] + plain)


def _group(prefix: str, width: int, numbers: list[int]) -> str:
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    if len(runs) == 1 and len(runs[0]) == 1:
        return f"{prefix}{runs[0][0]:0{width}d}"
    parts = [f"{run[0]:0{width}d}" if len(run) == 1 else f"{run[0]:0{width}d}-{run[-1]:0{width}d}" for run in runs]
    return f"{prefix}[{','.join(parts)}]"
