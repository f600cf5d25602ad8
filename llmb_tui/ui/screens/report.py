"""`ReportScreen`: the report of a run as a person reads it, to scroll through and to copy."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from llmb_tui.results.report.blocks import Document
from llmb_tui.results.report.markdown import markdown
from llmb_tui.ui.clipboard import copy
from llmb_tui.ui.widgets.key_bar import KeyBar
from llmb_tui.ui.widgets.report_text import report_rows
from llmb_tui.ui.widgets.texts import Lines, Scroller


class ReportScreen(Screen[None]):
    """One report, as it was when it was opened."""

    HELP = """The report of a run: how it came out, and on what that rests.
`llmb-tui report RUN -o FILE.html` writes it as one file, with charts, for somebody who was not there."""
    DEFAULT_CSS = """
    ReportScreen Scroller { padding: 0 1; scrollbar-size-vertical: 1; }
    ReportScreen Lines { padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "copy", "Copy", id="report.copy", tooltip="Copy the report as Markdown"),
        Binding("q,escape,r", "dismiss", "Back", key_display="q", id="report.leave", tooltip="Leave the report"),
    ]

    def __init__(self, report: Document) -> None:
        super().__init__()
        self._report = report

    def compose(self) -> ComposeResult:
        with Scroller():
            yield Lines(partial(report_rows, self._report))
        yield KeyBar()

    def action_copy(self) -> None:
        copy(self.app, markdown(self._report), "The report as Markdown")
