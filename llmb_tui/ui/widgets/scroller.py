"""`Scroller`: long text to scroll through. Left and right are not bound: they go through the steps."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll


class Scroller(VerticalScroll, inherit_bindings=False):
    """A vertical scroll with j and k beside the arrows."""

    ALLOW_MAXIMIZE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "scroll_down", "Down", show=False, id="text.down", tooltip="A line down"),
        Binding("up,k", "scroll_up", "Up", show=False, id="text.up", tooltip="A line up"),
        Binding("pagedown", "page_down", "Page down", show=False, id="text.page-down", tooltip="A page down"),
        Binding("pageup", "page_up", "Page up", show=False, id="text.page-up", tooltip="A page up"),
        Binding("home,g", "scroll_home", "Start", show=False, id="text.start", tooltip="To the start"),
        Binding("end,G", "scroll_end", "End", show=False, id="text.end", tooltip="To the end"),
    ]
