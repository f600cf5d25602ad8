"""Points in time as text: local with their zone on screens and in verbs, UTC in what leaves this machine.

Times are Unix times.
"""

from __future__ import annotations

import time

_DAY_S, _MONTHS_S = 86_400.0, 91 * 86_400.0


def local_time(at: float, now: float) -> str:
    """A local time, with its date unless that is today's: `14:05 CET`, `3 Nov 14:05 CET`, `3 Nov 2025 14:05 CET`."""
    there, today = time.localtime(at), time.localtime(now)
    day = "" if there[:3] == today[:3] else f"{local_day(at, now)} "
    return f"{day}{time.strftime('%H:%M %Z', there)}"


def local_day(at: float, now: float) -> str:
    """A local day, and its year unless that is the present one: `3 Nov`, `3 Nov 2025`."""
    there = time.localtime(at)
    same_year = there.tm_year == time.localtime(now).tm_year
    return time.strftime("%d %b" if same_year else "%d %b %Y", there).lstrip("0")


def local_clock(at: float) -> str:
    """A local time of day to the second: `14:05:09 CET`."""
    return time.strftime("%H:%M:%S %Z", time.localtime(at))


def utc_time(at: float) -> str:
    """A date and time for reports: `2025-11-12 14:05 UTC`."""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at))


def local_zone(at: float) -> tuple[str, float]:
    """Name of the local zone at a time, and the seconds by which it is ahead of UTC: `CET`, 3600."""
    there = time.localtime(at)
    return there.tm_zone, there.tm_gmtoff


def utc_tick(at: float, step_s: float) -> str:
    """The label of a time axis in UTC whose labels are that far apart: `03 Nov 14:05`, `03 Nov`, `Nov 2025`."""
    form = "%d %b %H:%M" if step_s < _DAY_S else "%d %b" if step_s < _MONTHS_S else "%b %Y"
    return time.strftime(form, time.gmtime(at))
