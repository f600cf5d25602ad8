"""Slurm's ways to write durations and moments."""

from __future__ import annotations

import os
import re
import time

_UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
_MOMENTS = ("%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d", "%m/%d/%y", "%m/%d")


def parse_minutes(text: str) -> int:
    """A `--time` value in minutes, rounded up: M, M:S, H:M:S, D-H, D-H:M, D-H:M:S.

    Raises ValueError for anything else.
    """
    if not re.fullmatch(r"(\d+-)?\d+(:\d+){0,2}", text):
        raise ValueError(text)
    days, dash, clock = text.rpartition("-")
    parts = [int(part) for part in clock.split(":")]
    if dash:
        hours, minutes, seconds = (*parts, 0, 0)[:3]
    elif len(parts) == 3:
        hours, minutes, seconds = parts
    else:
        hours, (minutes, seconds) = 0, (*parts, 0)[:2]
    return int(days or 0) * 1440 + hours * 60 + minutes + (seconds > 0)


def short(seconds: float) -> str:
    """A duration as `squeue` and `sinfo` print it: `0:03`, `30:00`, `4:00:00`, `1-00:00:00`."""
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days}-{hour:02d}:{minute:02d}:{second:02d}"
    return f"{hour}:{minute:02d}:{second:02d}" if hour else f"{minute}:{second:02d}"


def full(seconds: float) -> str:
    """A duration as `sacct` and `scontrol` print it: `00:00:03`, `1-00:00:00`."""
    hours, rest = divmod(int(seconds), 3600)
    days, hour = divmod(hours, 24)
    text = f"{hour:02d}:{rest // 60:02d}:{rest % 60:02d}"
    return f"{days}-{text}" if days else text


def stamp(moment: float) -> str:
    """A moment in local time, such as `2026-11-21T08:17:28`, or as SLURM_TIME_FORMAT has it."""
    wanted = os.environ.get("SLURM_TIME_FORMAT", "")
    return time.strftime(wanted if "%" in wanted else "%Y-%m-%dT%H:%M:%S", time.localtime(moment))


def parse_moment(text: str, now: float) -> float:
    """An `sacct -S` or `-E` value as Unix time. Raises ValueError.

    Understood: `now`, `now-1hour` and the like, `today`, `midnight`, `HH:MM[:SS]`, `YYYY-MM-DD[THH:MM[:SS]]`,
    `MM/DD[/YY]`.
    """
    relative = re.fullmatch(r"now(?:([+-])(\d+)\s*([a-z]*?)s?)?", text)
    if relative:
        if (relative[3] or "second") not in _UNITS:
            raise ValueError(text)
        return now + int(f"{relative[1] or '+'}{relative[2] or 0}") * _UNITS[relative[3] or "second"]
    today = time.strftime("%Y-%m-%d", time.localtime(now))
    if text in ("today", "midnight"):
        text = today
    elif re.fullmatch(r"\d{1,2}:\d{2}(:\d{2})?", text):
        text = f"{today}T{text}"
    for pattern in _MOMENTS:
        try:
            fields = time.strptime(text, pattern)
        except ValueError:
            continue
        year = time.localtime(now).tm_year if pattern == "%m/%d" else fields.tm_year
        return time.mktime((year, *fields[1:6], 0, 0, -1))
    raise ValueError(text)
