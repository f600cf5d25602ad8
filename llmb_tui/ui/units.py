"""Figures, durations and ages as the screens write them: the same digits and units everywhere."""

from __future__ import annotations

import time

from textual.content import Content

_EIGHTHS = " ▏▎▍▌▋▊▉"


def seconds(value: float) -> str:
    """A step time: `1.98 s`."""
    return f"{value:.3f} s" if value < 1 else f"{value:,.2f} s"


def bare_seconds(value: float) -> str:
    """The same for a column that names its unit: `1.98`."""
    return seconds(value).removesuffix(" s")


def band(low: float, high: float) -> str:
    """A range of step times: `1.90 – 2.06 s`."""
    return f"{bare_seconds(low)} – {seconds(high)}"


def tokens_per_s(value: float) -> str:
    """Tokens per second, whole: `529,584`."""
    return f"{value:,.0f}"


def percent(value: float, digits: int = 1) -> str:
    """A percentage: `39.3 %`."""
    return f"{value:.{digits}f} %"


def days(value: float | None) -> str:
    """Days for 1T tokens; proxies have none."""
    if value is None:
        return "none for a proxy"
    return f"{value:,.2f} days" if value < 10 else f"{value:,.1f} days"


def gpu_hours(value: float | None) -> str:
    """GPU-hours of the training steps."""
    return "not known" if value is None else f"{value:,.1f} GPU-hours"


def gigabytes(value: float) -> str:
    """Decimal GB."""
    return f"{value:,.1f} GB" if value < 100 else f"{value:,.0f} GB"


def optional(value: int | None) -> str:
    """A number of the table, or a dash where there is none."""
    return "–" if value is None else str(value)


def track(value: float, low: float, high: float, width: int) -> str:
    """The place of a value in its band, drawn: `├──────●───┤`."""
    inside = max(width - 2, 1)
    place = round((value - low) / (high - low) * (inside - 1)) if high > low else inside // 2
    return "├" + "".join("●" if cell == place else "─" for cell in range(inside)) + "┤"


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


def short_age(seconds: float) -> str:
    """The same for a column of ages: `4m`."""
    return age(seconds).replace(" min", "m").replace(" ", "")


def moment(at: float) -> str:
    """A time of day here, such as `14:05`, and its date unless that is today's. `at` is Unix time."""
    there, today = time.localtime(at), time.localtime()
    same_day = there[:3] == today[:3]
    return time.strftime("%H:%M" if same_day else "%d %b %H:%M", there)


def filled(done: int, total: int, width: int) -> str:
    """The filled cells of a bar of `width` cells; at most `width` characters."""
    part = min(max(done / total, 0.0), 1.0) if total else 0.0
    full, rest = divmod(int(part * width * 8), 8)
    return "█" * full + (_EIGHTHS[rest] if rest else "")


def gauge(done: int, total: int, width: int) -> Content:
    """A bar with its track."""
    cells = filled(done, total, width)
    return Content.assemble((cells, "$text-accent on $panel"), (" " * (width - len(cells)), "on $panel"))
