"""Durations and ages as the run and job screens write them."""

from __future__ import annotations

import time


def clock(seconds: float) -> str:
    """A duration as `MM:SS`, `H:MM:SS` or `Dd HH:MM:SS`."""
    minutes, second = divmod(int(max(seconds, 0)), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days}d {hour:02}:{minute:02}:{second:02}"
    return f"{hour}:{minute:02}:{second:02}" if hour else f"{minute:02}:{second:02}"


def age(seconds: float) -> str:
    """How long ago, in the one unit that matters: `12 s`, `4 min`, `3 h`, `2 d`."""
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(max(seconds, 0))} s"


def moment(at: float) -> str:
    """A time of day here, such as `14:05`, and its date unless that is today's. `at` is Unix time."""
    there, today = time.localtime(at), time.localtime()
    same_day = there[:3] == today[:3]
    return time.strftime("%H:%M" if same_day else "%d %b %H:%M", there)
