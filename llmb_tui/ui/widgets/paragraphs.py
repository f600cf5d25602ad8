"""`Paragraphs`: texts under each other, each folded to stand beside its own head."""

from __future__ import annotations

from textual.content import Content
from textual.reactive import var

from llmb_tui.ui.text import MUTED, hanging, line
from llmb_tui.ui.widgets.folded import Folded

_LABEL = 13
Paragraph = tuple[Content, Content]
"""Its head, and the body that is folded beside it."""


class Paragraphs(Folded):
    """Heads left, bodies folded beside them; none is cut."""

    parts: var[tuple[Paragraph, ...]] = var[tuple[Paragraph, ...]](())

    def watch_parts(self) -> None:
        """Show them."""
        self.changed()

    def rows(self, width: int) -> list[Content]:
        """The lines at this width."""
        return [row for head, body in self.parts for row in hanging(head, body, width)]


def fact(name: str, body: Content) -> Paragraph:
    """A named fact: the names of several stand in one column."""
    return line((f"{name:<{_LABEL}}", MUTED)), body


def text(body: Content) -> Paragraph:
    """A paragraph without a head."""
    return Content(""), body
