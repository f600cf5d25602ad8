"""`AnswerView`: a scrollable view of any `Answer`."""

from __future__ import annotations

from functools import partial

from textual.app import ComposeResult
from textual.content import Content

from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import Block, Text
from llmb_tui.answers.writers.rows import Row, Spans, rows
from llmb_tui.ui.text import CELL_STYLES, STYLES, hanging_paragraph, line
from llmb_tui.ui.widgets.texts import FixedLines, Scroller


class AnswerView(Scroller):
    """Shows an answer, wrapped to the width of the widget."""

    DEFAULT_CSS = """
    AnswerView { padding: 0 1; scrollbar-size-vertical: 1; }
    AnswerView FixedLines { padding: 0 1; }
    """

    def __init__(self, answer: Answer | None = None) -> None:
        super().__init__()
        self._answer = answer

    def compose(self) -> ComposeResult:
        if self._answer is not None:
            yield _answer_lines(self._answer)

    async def show(self, answer: Answer) -> None:
        """Replace the shown answer."""
        await self.remove_children()
        await self.mount(_answer_lines(answer))


def _answer_lines(answer: Answer) -> FixedLines:
    """Widget with the lines of an answer; the blocks are made once."""
    head = (Text(answer.subtitle, "quiet"),) if answer.subtitle else ()
    foot = (Text(answer.made, "quiet"),) if answer.made else ()
    return FixedLines(partial(answer_rows, (*head, *answer.make_blocks(), *foot)))


def answer_rows(blocks: tuple[Block, ...], width: int) -> list[Content]:
    """Blocks as rows of at most `width` cells. Only the lines of a file, which are never wrapped, may be longer."""
    return [part for row in rows(blocks, width) for part in _wrapped(row, width)]


def _wrapped(row: Row, width: int) -> list[Content]:
    if row.body:
        return hanging_paragraph(_content(row.head), _content(row.body), width)
    return [_content(row.head)]


def _content(spans: Spans) -> Content:
    parts = []
    for span in spans:
        style = f"bold {STYLES[span.tone]}".rstrip() if span.strong else STYLES[span.tone]
        parts.append((span.text, CELL_STYLES[span.chart] if span.chart else style))
    return line(*parts)
