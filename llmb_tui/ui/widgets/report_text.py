"""`report_rows`: a report in the cells of a terminal, with its charts. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from textual.content import Content

from llmb_tui.results.report.blocks import (
    Banner,
    Block,
    Bullets,
    Document,
    Facts,
    Grid,
    Listing,
    Picture,
    Section,
    Text,
)
from llmb_tui.results.table import Table
from llmb_tui.ui.text import MUTED, hanging, line
from llmb_tui.ui.widgets.chart_view import chart_rows
from llmb_tui.ui.widgets.plot import painted, terminal_glyphs

_STYLES = {"PASS": "bold $text-success", "WARN": "bold $text-warning", "FAIL": "bold $text-error", "": "bold"}
_CHART_HEIGHT = 13
_WIDEST_CHART = 100
_LABEL = 22
_GAP = 2
"""Cells between two columns of a table."""


def report_rows(document: Document, width: int) -> list[Content]:
    """The whole report in rows of that many cells; none is longer but those of a file that is shown to the letter."""
    rows = [line((document.title, "bold")), *_folded(document.subtitle, width, MUTED)]
    for banner in document.banners:
        rows += [Content(""), *_banner(banner, width)]
    for section in document.sections:
        rows += [Content(""), *_section(section, width)]
    return [*rows, Content(""), *_folded(document.made, width, MUTED)]


def _section(section: Section, width: int) -> Iterator[Content]:
    yield line((section.title, "bold underline" if section.level == 2 else "bold"))
    for at, block in enumerate(section.blocks):
        if at:
            yield Content("")
        yield from _block(block, width)


def _block(block: Block, width: int) -> Iterator[Content]:
    if isinstance(block, Text):
        yield from _folded(block.text, width)
    elif isinstance(block, Bullets):
        for item in block.items:
            yield from hanging(line(("· ", "$text-accent")), line(item), width)
    elif isinstance(block, Facts):
        label = min(_LABEL, width // 3)
        for fact in block.facts:
            head = line((fact.label.ljust(label), MUTED), " ")
            if len(fact.label) > label:
                yield line((fact.label, MUTED))
                head = line(" " * (label + 1))
            yield from hanging(head, line(fact.value), width)
    elif isinstance(block, Grid):
        yield from _folded(block.caption, width, MUTED)
        yield from _table(block.table, width)
    elif isinstance(block, Picture):
        yield from _picture(block, width)
    elif isinstance(block, Listing):
        yield line((f"{block.title}:", MUTED))
        for text in block.text.splitlines():
            yield from hanging(line("  "), line(text), width)
    else:
        yield from _banner(block, width)


def _picture(picture: Picture, width: int) -> Iterator[Content]:
    chart = picture.chart
    yield line((chart.title, "bold"))
    size = (min(width, _WIDEST_CHART), _CHART_HEIGHT)
    yield from painted(chart_rows(chart, size, terminal_glyphs())).split("\n")
    yield from _folded(" ".join((chart.summary, *chart.notes)), width, MUTED)


def _banner(banner: Banner, width: int) -> list[Content]:
    return hanging(line((f"{banner.result or 'No verdict'} ", _STYLES[banner.result])), line(banner.words), width)


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
