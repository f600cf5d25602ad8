"""Parts of an answer, and answers with given parts, for tests of writers."""

from __future__ import annotations

from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import Banner, Block, Section


def answer_of(title: str, *blocks: Block, subtitle: str = "", made: str = "") -> Answer:
    """An answer with these blocks and without a document."""
    return Answer(title, lambda: blocks, dict, subtitle=subtitle, made=made)


def banners(answer: Answer) -> tuple[Banner, ...]:
    return tuple(block for block in answer.make_blocks() if isinstance(block, Banner))


def sections(answer: Answer) -> tuple[Section, ...]:
    return tuple(block for block in answer.make_blocks() if isinstance(block, Section))
