"""Points in time as text: local time with its zone on screens and in verbs, UTC in files that leave this machine.

Arguments are Unix times.
"""

from __future__ import annotations

import time

_DAY_S, _MONTHS_S = 86_400.0, 91 * 86_400.0


def local_time(unix_s: float, now: float) -> str:
    """Local time, with its date unless it is today: `14:05 CET`, `3 Nov 14:05 CET`, `3 Nov 2025 14:05 CET`."""
    local, today = time.localtime(unix_s), time.localtime(now)
    day = "" if local[:3] == today[:3] else f"{local_day(unix_s, now)} "
    return f"{day}{time.strftime('%H:%M %Z', local)}"


def local_day(unix_s: float, now: float) -> str:
    """Local day, with its year unless it is the current year: `3 Nov`, `3 Nov 2025`."""
    local = time.localtime(unix_s)
    same_year = local.tm_year == time.localtime(now).tm_year
    return time.strftime("%d %b" if same_year else "%d %b %Y", local).lstrip("0")


def local_clock(unix_s: float) -> str:
    """Local time of day to the second: `14:05:09 CET`."""
    return time.strftime("%H:%M:%S %Z", time.localtime(unix_s))


def utc_time(unix_s: float) -> str:
    """Date and time in UTC, for reports: `2025-11-12 14:05 UTC`."""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(unix_s))


def local_zone(unix_s: float) -> tuple[str, float]:
    """Name of the local zone at a time, and the seconds by which it is ahead of UTC: `CET`, 3600."""
    local = time.localtime(unix_s)
    return local.tm_zone, local.tm_gmtoff


def utc_tick(unix_s: float, step_s: float) -> str:
    """Label of a UTC time axis whose labels are `step_s` apart: `03 Nov 14:05`, `03 Nov`, `Nov 2025`."""
    form = "%d %b %H:%M" if step_s < _DAY_S else "%d %b" if step_s < _MONTHS_S else "%b %Y"
    return time.strftime(form, time.gmtime(unix_s))
