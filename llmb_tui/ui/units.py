"""Numbers as screens draw them: bars, and positions in a band."""

from __future__ import annotations

from textual.content import Content

_EIGHTHS = " ▏▎▍▌▋▊▉"


def number_or_dash(value: int | None) -> str:
    """A number, or a dash for None."""
    return "–" if value is None else str(value)


def band_position(value: float, low: float, high: float, width: int) -> str:
    """Draw the position of a value in its band: `├──────●───┤`."""
    inside = max(width - 2, 1)
    place = round((value - low) / (high - low) * (inside - 1)) if high > low else inside // 2
    return "├" + "".join("●" if cell == place else "─" for cell in range(inside)) + "┤"


def bar_cells(done: int, total: int, width: int) -> str:
    """The filled part of a bar of `width` cells; at most `width` characters."""
    part = min(max(done / total, 0.0), 1.0) if total else 0.0
    full, rest = divmod(int(part * width * 8), 8)
    return "█" * full + (_EIGHTHS[rest] if rest else "")


def gauge(done: int, total: int, width: int) -> Content:
    """A progress bar of `width` cells."""
    cells = bar_cells(done, total, width)
    return Content.assemble((cells, "$text-accent on $panel"), (" " * (width - len(cells)), "on $panel"))
