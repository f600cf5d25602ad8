"""`gauge`: a bar with a resolution of an eighth of a cell. It is full only when everything is done. Pure."""

from __future__ import annotations

from textual.content import Content

_EIGHTHS = " ▏▎▍▌▋▊▉"


def filled(done: int, total: int, width: int) -> str:
    """The filled cells of a bar of `width` cells; at most `width` characters."""
    part = min(max(done / total, 0.0), 1.0) if total else 0.0
    full, rest = divmod(int(part * width * 8), 8)
    return "█" * full + (_EIGHTHS[rest] if rest else "")


def gauge(done: int, total: int, width: int) -> Content:
    """A bar with its track."""
    cells = filled(done, total, width)
    return Content.assemble((cells, "$text-accent on $panel"), (" " * (width - len(cells)), "on $panel"))
