"""`ReportScreen`: a report of runs, for reading and copying."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Static

from llmb_tui.answers.answer import Answer
from llmb_tui.answers.writers.markdown import markdown
from llmb_tui.ui.clipboard import copy
from llmb_tui.ui.text import line
from llmb_tui.ui.widgets.answer_view import AnswerView
from llmb_tui.ui.widgets.key_bar import KeyBar


class ReportScreen(Screen[None]):
    """One report, as of the time when the screen was opened."""

    HELP = """The report of runs: their results, and the facts behind the results.
`llmb-tui report RUN -o FILE.html` writes the report as one file with charts, to send to others."""
    DEFAULT_CSS = """
    ReportScreen #report-head { padding: 0 2; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "copy", "Copy", id="report.copy", tooltip="Copy the report as Markdown"),
        Binding("q,escape,r", "dismiss", "Back", id="report.leave", tooltip="Leave the report"),
    ]

    def __init__(self, report: Answer) -> None:
        super().__init__()
        self._report = report

    def compose(self) -> ComposeResult:
        yield Static(line((self._report.title, "bold")), id="report-head", markup=False)
        yield AnswerView(self._report)
        yield KeyBar()

    def action_copy(self) -> None:
        copy(self.app, markdown(self._report), "The report as Markdown")
