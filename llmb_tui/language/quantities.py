"""Each quantity as text, in the same digits and unit wherever it is read. Pure.

A function that ends in `_digits` returns the number alone, for a column whose heading names the unit. JSON and CSV hold
numbers in full and use none of these.
"""

from __future__ import annotations

import math

_STEP_DIGITS, _STEP_DECIMALS = 4, 3
_LEAST_DIFFERENCE = 1e-4
"""A smaller difference is written as 0, because `.2g` would write an exponent."""
_LARGEST_COUNT = 1e15
"""A number of this size or more is written with an exponent."""
_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def count(number: float) -> str:
    """A whole number with thousands separators: `1,024`."""
    return f"{number:,.0f}"


def plain_number(number: float) -> str:
    """A number with the digits of its source, such as a published result or a limit: `21.542`, `80`."""
    return f"{number:,.12g}"


def four_digits(number: float) -> str:
    """A number without a format of its own below: `0.1234`, `12.34`, `12,345`."""
    return count(number) if 1000 <= abs(number) < _LARGEST_COUNT else f"{number:.4g}"


def flops(number: float) -> str:
    """Floating-point operations of a sample: `4.342e15`."""
    return f"{number:.4g}".replace("e+", "e")


def step_time_digits(step_time_s: float) -> str:
    """`step_time` without its unit: `1.984`."""
    size = math.floor(math.log10(abs(step_time_s))) + 1 if step_time_s else 0
    text = f"{step_time_s:,.{min(max(_STEP_DIGITS - size, 0), _STEP_DECIMALS)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def step_time(step_time_s: float) -> str:
    """A step time or a difference of two: four digits at most, three of them decimals: `1.984 s`, `123.4 s`, `2 s`."""
    return f"{step_time_digits(step_time_s)} s"


def step_time_range_digits(low_s: float, high_s: float) -> str:
    """`step_time_range` without its unit: `1.901–2.059`."""
    return f"{step_time_digits(low_s)}–{step_time_digits(high_s)}"


def step_time_range(low_s: float, high_s: float) -> str:
    """The band of an expected step time, or the fastest and the slowest of several: `1.901–2.059 s`."""
    return f"{step_time_range_digits(low_s, high_s)} s"


def seconds(duration_s: float) -> str:
    """A measured time other than a step time, such as a checkpoint's: `12.34 s`."""
    return f"{four_digits(duration_s)} s"


def whole_seconds(duration_s: float) -> str:
    """A time as a scheduler gives it: `12,345 s`."""
    return f"{count(duration_s)} s"


def percent_digits(percentage: float) -> str:
    """`percent` without its sign: `39.3`."""
    return f"{round(percentage, 1) + 0.0:.1f}"


def percent(percentage: float) -> str:
    """MFU, an efficiency, or a speed in per cent of another: `39.3 %`."""
    return f"{percentage:.1f} %"


def two_digits(value: float, sign: str = "") -> str:
    """A difference in per cent or a deviation: `0.0081`, `4.6`, `250`. `sign` is `+` to mark positive values."""
    if abs(value) >= 99.5:
        return f"{value:{sign},.0f}"
    return f"{value:{sign}.2g}" if abs(value) >= _LEAST_DIFFERENCE else "0"


def share(part: float) -> str:
    """A part of a whole, from 0 to 1: `34 %`; never `0 %` or `100 %` for a part that is neither."""
    if 0 < part < 0.01:
        return "< 1 %"
    return "> 99 %" if 0.99 < part < 1 else f"{part:.0%}".replace("%", " %")


def tokens_per_s(rate: float) -> str:
    """Tokens per second, whole: `529,584`."""
    return count(rate)


def tflops(rate: float) -> str:
    """TFLOPS of one GPU: `390.6`."""
    return f"{rate:,.1f}"


def days_digits(duration_d: float) -> str:
    """`days` without its unit: `21.9`."""
    return f"{duration_d:,.2f}" if duration_d < 10 else f"{duration_d:,.1f}"


def days(duration_d: float | None) -> str:
    """Days for 1T tokens: `21.9 days`; None for a reduced model."""
    return "not meaningful for a reduced model" if duration_d is None else f"{days_digits(duration_d)} days"


def gpu_hours_digits(cost_gpu_h: float) -> str:
    """`gpu_hours` without its unit: `1,234.5`."""
    return f"{cost_gpu_h:,.1f}"


def gpu_hours(cost_gpu_h: float | None) -> str:
    """The cost of training steps: `1,234.5 GPU-hours`."""
    return "not known" if cost_gpu_h is None else f"{gpu_hours_digits(cost_gpu_h)} GPU-hours"


def byte_size(size_bytes: float) -> str:
    """A number of bytes in decimal units: `1.98 GB`."""
    for scale, unit in _UNITS:
        if size_bytes >= 0.9995 * scale:
            return f"{_three_digits(size_bytes / scale)} {unit}"
    return f"{_three_digits(size_bytes)} bytes"


def gigabytes(size_gb: float) -> str:
    """A size in decimal GB, such as a memory size: `60.3 GB`."""
    return byte_size(1e9 * size_gb)


def duration(duration_s: float) -> str:
    """A duration in at most two units: `12 s`, `20 min`, `6 h 30 min`, `3 d 4 h`."""
    if duration_s < 59.5:
        return f"{max(duration_s, 0):.0f} s"
    minutes = round(duration_s / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minute = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minute} min" if minute else f"{hours} h"
    day, hour = divmod(round(minutes / 60), 24)
    return f"{day} d {hour} h" if hour else f"{day} d"


def milliseconds(duration_s: float) -> str:
    """Round-trip time of a connection: `23 ms`."""
    return f"{1000 * duration_s:.0f} ms"


def clock(duration_s: float) -> str:
    """A duration that counts up: `MM:SS`, `H:MM:SS` or `Dd HH:MM:SS`."""
    minutes, second = divmod(int(max(duration_s, 0)), 60)
    hours, minute = divmod(minutes, 60)
    day, hour = divmod(hours, 24)
    if day:
        return f"{day}d {hour:02}:{minute:02}:{second:02}"
    return f"{hour}:{minute:02}:{second:02}" if hour else f"{minute:02}:{second:02}"


def age(duration_s: float) -> str:
    """Age in one unit: `12 s`, `4 min`, `3 h`, `2 d`."""
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if duration_s >= size:
            return f"{int(duration_s // size)} {unit}"
    return f"{int(max(duration_s, 0))} s"


def short_age(duration_s: float) -> str:
    """`age` for a column: `4m`."""
    return age(duration_s).replace(" min", "m").replace(" ", "")


def _three_digits(value: float) -> str:
    return count(value) if value >= 999.5 else f"{value:.3g}"
