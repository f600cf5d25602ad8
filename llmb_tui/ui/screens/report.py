"""`Report`: a run as the JSON document that other programs are given, to read and to copy."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from llmb_tui.ui.clipboard import copy
from llmb_tui.ui.dialogs import Dialog
from llmb_tui.ui.text import MUTED, line, plain


class Report(Dialog[None]):
    """The document in a box."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "copy", "Copy", id="report.copy", tooltip="Copy the document"),
        Binding("q,r", "leave", "Close", show=False, id="report.leave", tooltip="Close"),
    ]

    def __init__(self, text: str) -> None:
        super().__init__("Report")
        self._text = text

    def body(self) -> ComposeResult:
        """The document, scrolled where it is long."""
        with VerticalScroll():
            yield Static(plain(self._text), markup=False)
        yield Static(line(("y copies it, escape closes.", MUTED)), markup=False)

    def action_copy(self) -> None:
        """Copy the whole document."""
        copy(self.app, self._text, "The report")
