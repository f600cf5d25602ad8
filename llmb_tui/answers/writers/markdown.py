"""`markdown`: an answer as Markdown for GitHub, pandoc and a terminal. Markup in texts is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote

from llmb_tui.answers.answer import Answer
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
from llmb_tui.answers.table import Table
from llmb_tui.language.text import clean, clean_line

# Characters that are markup only at the beginning of a line.
_LEADING = re.compile(r"^(\s*\d*)([-+#=:]|(?<=\d)[.)])(?=\s|$|[-=#:])")
_TICKS = re.compile("`+")
_MARKUP = re.compile(r"([\\`*_\[\]<>&|~$^])")


def markdown(answer: Answer, pictures: Mapping[str, str] = {}) -> str:
    """An answer as a document. A chart is its summary, with a picture if `pictures` has a path for its name."""
    head = [f"# {escaped(answer.title)}", *([escaped(answer.subtitle)] if answer.subtitle else [])]
    foot = ["---", escaped(answer.made)] if answer.made else []
    return "\n\n".join((*head, blocks_markdown(answer.make_blocks(), pictures), *foot)) + "\n"


def blocks_markdown(blocks: Iterable[Block], pictures: Mapping[str, str] = {}) -> str:
    """Blocks as Markdown, without a newline at the end."""
    return "\n\n".join(part for block in blocks for part in _block(block, pictures))


def escaped(text: str) -> str:
    """A single-line text in which markup is escaped."""
    return _LEADING.sub(r"\1\\\2", unmarked(clean_line(text)))


def table_markdown(table: Table) -> str:
    """A table in the syntax of GitHub and pandoc, with numbers aligned to the right and markup escaped."""
    lines = [[unmarked(text) for text in row] for row in (table.headings, *table.texts())]
    rule = ["---:" if right else "---" for right in table.numeric]
    return "".join(f"| {' | '.join(line)} |\n" for line in (lines[0], rule, *lines[1:]))


def unmarked(text: str) -> str:
    """A text whose markup is escaped, except markup at the beginning of a line."""
    return _MARKUP.sub(r"\\\1", text)


def _section(section: Section, pictures: Mapping[str, str]) -> Iterator[str]:
    yield f"{'#' * section.level} {escaped(section.title)}"
    for block in section.blocks:
        yield from _block(block, pictures)


def _block(block: Block, pictures: Mapping[str, str]) -> Iterator[str]:
    if isinstance(block, Text):
        yield escaped(block.text)
    elif isinstance(block, Section):
        yield from _section(block, pictures)
    elif isinstance(block, Remarks):
        lines = (f"{each.label.word}: {each.text}" if each.label.word else each.text for each in block.items)
        yield "\n".join(f"- {escaped(line)}" for line in lines)
    elif isinstance(block, Bullets):
        if block.items:
            yield "\n".join(f"- {escaped(item)}" for item in block.items)
    elif isinstance(block, Facts):
        yield "\n".join(
            f"- **{escaped(fact.label)}**: {_code(fact.value) if fact.exact else escaped(fact.value)}"
            for fact in block.facts
        )
    elif isinstance(block, Grid):
        yield from [escaped(block.caption)] if block.caption else []
        yield table_markdown(block.table).rstrip("\n")
    elif isinstance(block, Picture):
        yield from _picture(block, pictures)
    elif isinstance(block, Listing):
        yield escaped(f"{block.title}:")
        yield _fenced(block.text, "diff" if block.diff else "text")
    else:
        yield _banner(block)


def _picture(picture: Picture, pictures: Mapping[str, str]) -> Iterator[str]:
    chart = picture.chart
    if picture.name in pictures:
        yield f"![{escaped(chart.title)}]({quote(pictures[picture.name])})"
    yield f"**{escaped(chart.title)}**: {escaped(chart.summary)}"
    if chart.notes:
        yield escaped(" ".join(chart.notes))


def _banner(banner: Banner) -> str:
    return f"**{banner.result or 'No verdict'}** – {escaped(banner.words)}"


def _code(text: str) -> str:
    """A text as inline code, between more backticks than it has in a row."""
    text = clean_line(text)
    ticks = "`" * (1 + max((len(match) for match in _TICKS.findall(text)), default=0))
    room = " " if "`" in text else ""
    return f"{ticks}{room}{text}{room}{ticks}"


def _fenced(text: str, language: str) -> str:
    text = clean(text).rstrip("\n")
    fence = "`" * max(3, 1 + max((len(match) for match in _TICKS.findall(text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"
