"""`QuietScrollBar`: a scrollbar that is repainted only when its thumb looks different, not for each new line."""

from __future__ import annotations

from math import ceil

from textual.reactive import Reactive
from textual.scrollbar import ScrollBar

# Textual's resolution of the ends of the thumb.
_PARTS_OF_CELL = 8


class QuietScrollBar(ScrollBar):
    """Textual's scrollbar is repainted at each new number, which changes nothing at the end of a long log."""

    window_virtual_size: Reactive[int] = Reactive(100, repaint=False)
    position: Reactive[float] = Reactive(0.0, repaint=False)

    _thumb: tuple[int, int] | None = None

    def update_thumb(self) -> None:
        """Repaint if the new numbers change the thumb."""
        thumb = self._thumb_place()
        if thumb != self._thumb:
            self._thumb = thumb
            self.refresh()

    def _thumb_place(self) -> tuple[int, int] | None:
        """Start and length of the thumb, in eighths of a cell, as `ScrollBarRender` draws it; None without a thumb."""
        height, window, lines = self.size.height, self.window_size, self.window_virtual_size
        if not height or not 0 < window < lines:
            return None
        length = max(1.0, height * window / lines)
        above = (height - length) * self.position / (lines - window)
        return int(above * _PARTS_OF_CELL), ceil(length * _PARTS_OF_CELL)
