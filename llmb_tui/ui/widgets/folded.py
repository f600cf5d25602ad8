"""`Folded`: lines of text that depend on the widget's width. Only the lines that changed are painted again.

A key must be answered within a frame, and most keys change a few lines of what is on the screen.
"""

from __future__ import annotations

from textual.content import Content
from textual.geometry import Region, Size
from textual.widget import Widget

from llmb_tui.ui.text import lines


class Folded(Widget):
    """Subclasses say what the lines are, and call `changed` when they are others."""

    DEFAULT_CSS = "Folded { height: auto; }"
    _painted: tuple[Content, ...] = ()

    def rows(self, width: int) -> list[Content]:
        """The lines at this width."""
        raise NotImplementedError

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002 - Textual's
        """As many lines as they take at this width."""
        return len(self.rows(width))

    def render(self) -> Content:
        """Every line; one that is too long ends with a sign of it."""
        width = self.size.width
        self._painted = tuple(self.rows(width))
        return lines([row.truncate(width, ellipsis=True) for row in self._painted])

    def changed(self) -> None:
        """Paint what is another now, and lay out again only where the number of lines is."""
        rows = self.rows(self.size.width)
        if len(rows) != len(self._painted):
            self.refresh(layout=self.styles.auto_dimensions)
            return
        pairs = enumerate(zip(rows, self._painted, strict=True))
        others = [Region(0, y, self.size.width, 1) for y, (new, old) in pairs if not new.is_same(old)]
        if others:
            self.refresh(*others)
