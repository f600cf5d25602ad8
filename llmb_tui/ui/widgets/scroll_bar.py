"""`QuietScrollBar`: a scrollbar that is painted when its thumb looks otherwise, and not at each line that comes."""

from __future__ import annotations

from math import ceil

from textual.reactive import Reactive
from textual.scrollbar import ScrollBar

# As finely as Textual draws the ends of the thumb.
_PARTS_OF_CELL = 8


class QuietScrollBar(ScrollBar):
    """Textual's is painted whole at each new number. At the end of a long log none of them is seen."""

    window_virtual_size: Reactive[int] = Reactive(100, repaint=False)
    position: Reactive[float] = Reactive(0.0, repaint=False)

    _thumb: tuple[int, int] | None = None

    def settle(self) -> None:
        """The numbers are as they shall be: paint what they change."""
        thumb = self._placed()
        if thumb != self._thumb:
            self._thumb = thumb
            self.refresh()

    def _placed(self) -> tuple[int, int] | None:
        """Where the thumb begins and how long it is, as `ScrollBarRender` draws it; None for none."""
        height, window, lines = self.size.height, self.window_size, self.window_virtual_size
        if not height or not 0 < window < lines:
            return None
        length = max(1.0, height * window / lines)
        above = (height - length) * self.position / (lines - window)
        return int(above * _PARTS_OF_CELL), ceil(length * _PARTS_OF_CELL)
