"""`ReportScreen`: the report of a run as a person reads it, to scroll through and to copy."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen

from llmb_tui.analysis.table import Table
from llmb_tui.answers import blocks
from llmb_tui.answers.markdown import markdown
from llmb_tui.language.states import verdict_label
from llmb_tui.ui.clipboard import copy
from llmb_tui.ui.text import MUTED, hanging, line, state_part
from llmb_tui.ui.widgets.chart_view import chart_rows
from llmb_tui.ui.widgets.key_bar import KeyBar
from llmb_tui.ui.widgets.plot import painted, terminal_glyphs
from llmb_tui.ui.widgets.texts import FixedLines, Scroller

_CHART_HEIGHT = 13
_WIDEST_CHART = 100
_LABEL = 22
_GAP = 2
"""Cells between two columns of a table."""


class ReportScreen(Screen[None]):
    """One report, as it was when it was opened."""

    HELP = """The report of a run: how it came out, and on what that rests.
`llmb-tui report RUN -o FILE.html` writes it as one file, with charts, for somebody who was not there."""
    DEFAULT_CSS = """
    ReportScreen Scroller { padding: 0 1; scrollbar-size-vertical: 1; }
    ReportScreen FixedLines { padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "copy", "Copy", id="report.copy", tooltip="Copy the report as Markdown"),
        Binding("q,escape,r", "dismiss", "Back", id="report.leave", tooltip="Leave the report"),
    ]

    def __init__(self, report: blocks.Document) -> None:
        super().__init__()
        self._report = report

    def compose(self) -> ComposeResult:
        with Scroller():
            yield FixedLines(partial(report_rows, self._report))
        yield KeyBar()

    def action_copy(self) -> None:
        copy(self.app, markdown(self._report), "The report as Markdown")


def report_rows(document: blocks.Document, width: int) -> list[Content]:
    """The whole report in rows of that many cells; none is longer but those of a file that is shown to the letter."""
    rows = [line((document.title, "bold")), *_folded(document.subtitle, width, MUTED)]
    for banner in document.banners:
        rows += [Content(""), *_banner(banner, width)]
    for section in document.sections:
        rows += [Content(""), *_section(section, width)]
    return [*rows, Content(""), *_folded(document.made, width, MUTED)]


def _section(section: blocks.Section, width: int) -> Iterator[Content]:
    yield line((section.title, "bold underline" if section.level == 2 else "bold"))
    for at, block in enumerate(section.blocks):
        if at:
            yield Content("")
        yield from _block(block, width)


def _block(block: blocks.Block, width: int) -> Iterator[Content]:
    match block:
        case blocks.Text(text):
            yield from _folded(text, width)
        case blocks.Bullets(items):
            for item in items:
                yield from hanging(line(("· ", "$text-accent")), line(item), width)
        case blocks.Facts(facts):
            label = min(_LABEL, width // 3)
            for fact in facts:
                head = line((fact.label.ljust(label), MUTED), " ")
                if len(fact.label) > label:
                    yield line((fact.label, MUTED))
                    head = line(" " * (label + 1))
                yield from hanging(head, line(fact.value), width)
        case blocks.Grid(caption, table):
            yield from _folded(caption, width, MUTED)
            yield from _table(table, width)
        case blocks.Picture(_, chart):
            yield line((chart.title, "bold"))
            size = (min(width, _WIDEST_CHART), _CHART_HEIGHT)
            yield from painted(chart_rows(chart, size, terminal_glyphs())).split("\n")
            yield from _folded(" ".join((chart.summary, *chart.notes)), width, MUTED)
        case blocks.Listing(title, content):
            yield line((f"{title}:", MUTED))
            for row in content.splitlines():
                yield from hanging(line("  "), line(row), width)
        case blocks.Banner():
            yield from _banner(block, width)


def _banner(banner: blocks.Banner, width: int) -> list[Content]:
    word, style = "No verdict", ""
    if banner.result:
        word, style = state_part(verdict_label(banner.result))
    return hanging(line((f"{word} ", f"bold {style}")), line(banner.words), width)


def _table(table: Table, width: int) -> Iterator[Content]:
    """Columns where they fit; else each row under its name."""
    rows = table.texts()
    widths = [max(len(row[at]) for row in (table.headings, *rows)) for at in range(len(table.headings))]
    if sum(widths) + _GAP * (len(widths) - 1) <= width:
        for at, row in enumerate((list(table.headings), *rows)):
            cells = [
                cell.rjust(wide) if right else cell.ljust(wide)
                for cell, wide, right in zip(row, widths, table.numeric, strict=True)
            ]
            text = (" " * _GAP).join(cells)
            yield line(text) if at else line((text, MUTED))
        return
    for row in rows:
        parts = [f"{heading} {cell}".strip() for heading, cell in zip(table.headings[1:], row[1:], strict=True)]
        yield line((row[0], "bold"))
        yield from hanging(line("  "), line(", ".join(parts)), width)


def _folded(text: str, width: int, style: str = "") -> list[Content]:
    return hanging(Content(""), line((text, style)), width)
