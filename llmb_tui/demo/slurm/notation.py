"""Slurm's notation of durations, times and host lists such as `demo[001-003,007]`."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator
from itertools import groupby

_LIMIT = re.compile(r"(?:(\d+)-)?(\d+):(\d+):(\d+)")
_ITEM = re.compile(r"([^,\[\]]+)(\[[\d,-]+\])?")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")


def minutes(text: str) -> int:
    """A `--time` value in minutes, rounded up: `M`, `H:M:S` or `D-H:M:S`. Raises ValueError for other text."""
    match = _LIMIT.fullmatch(text)
    if not match:
        return int(text)
    days, hours, whole, seconds = (int(part or 0) for part in match.groups())
    return (days * 24 + hours) * 60 + whole + (seconds > 0)


def short(seconds: float) -> str:
    """A duration as `squeue` and `sinfo` print it: `0:03`, `30:00`, `4:00:00`, `1-00:00:00`."""
    if seconds >= 3600:
        return full(seconds).removeprefix("0")
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def full(seconds: float) -> str:
    """A duration as `scontrol` prints it: `00:00:03`, `1-00:00:00`."""
    hours, rest = divmod(int(seconds), 3600)
    days, hour = divmod(hours, 24)
    text = f"{hour:02d}:{rest // 60:02d}:{rest % 60:02d}"
    return f"{days}-{text}" if days else text


def stamp(moment: float) -> str:
    """A local time, such as `2026-11-21T08:17:28`, or in the format of SLURM_TIME_FORMAT."""
    wanted = os.environ.get("SLURM_TIME_FORMAT", "")
    return time.strftime(wanted if "%" in wanted else "%Y-%m-%dT%H:%M:%S", time.localtime(moment))


def day_start(day: str) -> float:
    """Unix time of the beginning of a day such as `2026-11-21`, or of `now`. Raises ValueError."""
    return time.time() if day == "now" else time.mktime(time.strptime(day, "%Y-%m-%d"))


def expand(text: str) -> list[str]:
    """Host names of a list, in order. A name without brackets is returned as it is."""
    return [name for prefix, ranges in _ITEM.findall(text) for name in _names(prefix, ranges)]


def _names(prefix: str, ranges: str) -> Iterator[str]:
    if not ranges:
        yield prefix
    for first, last in _RANGE.findall(ranges):
        yield from (f"{prefix}{number:0{len(first)}d}" for number in range(int(first), int(last or first) + 1))


def compress(names: Iterable[str]) -> str:
    """Host list of the site's nodes, whose names are `demo` and three digits; empty for no nodes."""
    numbers = sorted(int(name[-3:]) for name in names)
    runs = [[number for _, number in run] for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])]
    parts = [f"{run[0]:03d}" if len(run) == 1 else f"{run[0]:03d}-{run[-1]:03d}" for run in runs]
    text = ",".join(parts)
    return f"demo{text}" if len(numbers) == 1 else f"demo[{text}]" if parts else ""
