"""`rows`: blocks as rows for a terminal. A screen folds and colours them, a verb prints their text. Pure."""

# ruff: noqa: PLC0415 - the modules of charts are imported only for an answer with a chart
from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from textwrap import wrap
from typing import TYPE_CHECKING, NamedTuple

from llmb_tui.answers.blocks import (
    Banner,
    Block,
    Bullets,
    Facts,
    Grid,
    Listing,
    Picture,
    Remarks,
    Section,
    Text,
)
from llmb_tui.answers.table import Cell, Table, cell_text, toned_text
from llmb_tui.language.states import Tone, verdict_label
from llmb_tui.language.text import clean, clean_line

if TYPE_CHECKING:
    from llmb_tui.answers.writers.plot import CellKind

_GAP = 2
"""Cells between two columns of a table."""
_LEAST_FOLDED, _LEAST_LAST = 24, 20
"""Minimum width in cells of a column whose texts are folded, and of a last column."""
_WIDEST_LABEL = 22
"""Maximum width in cells of the labels of facts; a longer label gets its own row."""
_CHART_HEIGHT, _WIDEST_CHART = 13, 100
_DIFF_TONES: dict[str, Tone] = {"+": "good", "-": "bad", "@": "active"}


class Span(NamedTuple):
    """A text in a single style."""

    text: str
    tone: Tone = "plain"
    strong: bool = False
    chart: CellKind | None = None
    """Part of a chart that the text draws, which has its own style."""


Spans = tuple[Span, ...]


class Row(NamedTuple):
    """A row or a paragraph: `body` is folded at the width, and its further lines are aligned with its first word."""

    head: Spans
    body: Spans = ()

    @property
    def text(self) -> str:
        """The text of the row without styles."""
        return "".join(span.text for span in (*self.head, *self.body)).rstrip()


BLANK = Row(())


def rows(blocks: Iterable[Block], width: int | None = None) -> Iterator[Row]:
    """Rows of blocks, separated by blank rows. `width` is None for a pipe or a file, for which no text is folded."""
    for index, block in enumerate(blocks):
        if index:
            yield BLANK
        yield from _block(block, width)


def _block(block: Block, width: int | None) -> Iterator[Row]:
    match block:
        case Text():
            yield _paragraph(block.text, block.tone, strong=block.strong)
        case Bullets():
            yield from (Row((Span("· ", "active"),), (Span(clean_line(item)),)) for item in block.items)
        case Remarks():
            for remark in block.items:
                word = f"{remark.label.word}: " if remark.label.word else ""
                mark = Span(f"{remark.label.glyph} ", remark.label.tone)
                yield Row((mark,), (Span(word, remark.label.tone), Span(clean_line(remark.text))))
        case Facts():
            yield from _facts(block, width)
        case Grid():
            if block.caption:
                yield _paragraph(block.caption, "quiet")
            yield from _grid(block, width)
        case Picture():
            yield from _picture(block, width)
        case Listing():
            yield from _listing(block)
        case Banner():
            label = verdict_label(block.result) if block.result else None
            mark = Span(f"{label.text} ", label.tone, strong=True) if label else Span("No verdict ", strong=True)
            yield Row((mark,), (Span(clean_line(block.words)),))
        case Section():
            yield _paragraph(block.title, "plain", strong=True)
            yield from rows(block.blocks, width)


def _paragraph(text: str, tone: Tone, *, strong: bool = False) -> Row:
    return Row((), (Span(clean_line(text), tone, strong),))


def _facts(facts: Facts, width: int | None) -> Iterator[Row]:
    most = _WIDEST_LABEL if width is None else min(_WIDEST_LABEL, width // 3)
    labels = [clean_line(fact.label) for fact in facts.facts]
    room = max((len(label) for label in labels if len(label) <= most), default=0)
    for label, fact in zip(labels, facts.facts, strict=True):
        head = f"{label:<{room}}  "
        if len(label) > room:
            yield Row((Span(label, "quiet"),))
            head = " " * (room + 2)
        yield Row((Span(head, "quiet"),), (Span(clean_line(fact.value), fact.tone),))


def _grid(grid: Grid, width: int | None) -> Iterator[Row]:
    """A table in columns if they fit, else in the layout that the grid names."""
    table, widths = grid.table, _widths(grid.table)
    room = sys.maxsize if width is None else width - _GAP * (len(widths) - 1)
    if sum(widths) <= room:
        yield from table_rows(table)
    elif grid.fold == "columns":
        yield from _parts(table, widths[0], width or 0)
    elif not table.numeric[-1] and sum(widths[:-1]) + _LEAST_LAST <= room:
        yield from table_rows(table, folds_last=True)
    else:
        yield from _records(table)


def table_rows(table: Table, *, folds_last: bool = False) -> Iterator[Row]:
    """The headings and the rows of a table; the decimal points of a column of numbers are aligned.

    `folds_last`: the texts of the last column can be folded.
    """
    texts = _aligned(table)
    yield Row((Span((" " * _GAP).join(texts[0]).rstrip(), "quiet"),))
    for cells, row in zip(table.rows, texts[1:], strict=True):
        spans = [Span(text + " " * _GAP, toned_text(cell)[1]) for cell, text in zip(cells, row, strict=True)]
        last = spans.pop()._replace(text=row[-1].rstrip())
        yield Row(tuple(spans), (last,)) if folds_last else Row((*spans, last))


def _aligned(table: Table) -> list[list[str]]:
    """Headings and rows, each cell as wide as its column."""
    rows = [list(table.headings), *table.texts()]
    for index, right in enumerate(table.numeric):
        if right:
            fractions = [len(row[index]) - len(row[index].partition(".")[0]) for row in rows[1:]]
            for row, fraction in zip(rows[1:], fractions, strict=True):
                row[index] += " " * (max(fractions) - fraction)
        width = max(len(row[index]) for row in rows)
        for row in rows:
            row[index] = f"{row[index]:>{width}}" if right else f"{row[index]:<{width}}"
    return rows


def _cell(cell: Cell) -> tuple[str, Tone]:
    """Text and tone of a cell; a state has its word without the glyph."""
    return cell_text(cell), toned_text(cell)[1]


def _widths(table: Table) -> list[int]:
    return [len(cell) for cell in _aligned(table)[0]]


def _parts(table: Table, first: int, width: int) -> Iterator[Row]:
    """Groups of as many columns as fit after the first one, whose width is `first`; all columns have the same width."""
    texts = [list(table.headings), *table.texts()]
    tones: list[list[Tone]] = [["quiet"] * len(texts[0]), *([_cell(cell)[1] for cell in row] for row in table.rows)]
    count, room = len(texts[0]) - 1, max(width - first, _GAP + 1)
    longest = max(len(text) for row in texts for text in row[1:])
    column = min(max(room // count - _GAP, _LEAST_FOLDED), longest, room - _GAP)
    fitting = max(room // (column + _GAP), 1)
    for begin in range(1, count + 1, fitting):
        if begin > 1:
            yield BLANK
        for row, row_tones in zip(texts, tones, strict=True):
            cells = [wrap(text, column) for text in row[begin : begin + fitting]]
            for index, parts in enumerate(zip_longest(*cells, fillvalue="")):
                name = Span(f"{'' if index else row[0]:<{first}}", "quiet")
                shown = zip(parts, row_tones[begin : begin + fitting], strict=True)
                yield Row((name, *(Span(f"{' ' * _GAP}{text:<{column}}", tone) for text, tone in shown)))


def _records(table: Table) -> Iterator[Row]:
    """Each row as a record below its first cell."""
    for row in table.rows:
        first, *others = map(_cell, row)
        spans: list[Span] = []
        for heading, (text, tone) in zip(table.headings[1:], others, strict=True):
            spans += [Span(", ")] if spans else []
            spans += [Span(f"{heading} ")] if heading else []
            spans.append(Span(text, tone))
        yield Row((), (Span(first[0], strong=True),))
        yield Row((Span("  "),), tuple(spans))


def _picture(picture: Picture, width: int | None) -> Iterator[Row]:
    chart = picture.chart
    yield Row((Span(clean_line(chart.title), strong=True),))
    if width is not None:
        from llmb_tui.answers.writers.chart_rows import chart_rows
        from llmb_tui.answers.writers.plot import terminal_glyphs

        drawn = chart_rows(chart, (min(width, _WIDEST_CHART), _CHART_HEIGHT), terminal_glyphs())
        yield from (Row(tuple(Span(text, chart=kind) for text, kind in row)) for row in drawn)
    yield _paragraph(" ".join((chart.summary, *chart.notes)), "quiet")


def _listing(listing: Listing) -> Iterator[Row]:
    yield Row((Span(f"{clean_line(listing.title)}:", "quiet"),))
    for text in clean(listing.text).splitlines():
        tone = _DIFF_TONES.get(text[:1], "quiet") if listing.diff else "plain"
        yield Row((Span("  "),), (Span(text, tone),))
