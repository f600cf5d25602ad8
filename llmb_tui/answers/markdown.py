"""`markdown`: a report as Markdown, as GitHub, pandoc and a terminal read it. Texts are no markup."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import quote

from llmb_tui.analysis.table import unmarked
from llmb_tui.answers.blocks import (
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
from llmb_tui.language.text import clean, clean_line

# What means something at the beginning of a line only.
_LEADING = re.compile(r"^(\s*\d*)([-+#=:]|(?<=\d)[.)])(?=\s|$|[-=#:])")
_TICKS = re.compile("`+")


def markdown(document: Document, pictures: Mapping[str, str] = {}) -> str:
    """The report; a chart is its words, and the picture of `pictures` (path by name) where it has one."""
    parts = [f"# {escaped(document.title)}", escaped(document.subtitle)]
    parts += [_banner(banner) for banner in document.banners]
    for section in document.sections:
        parts += _section(section, pictures)
    return "\n\n".join((*parts, "---", escaped(document.made))) + "\n"


def escaped(text: str) -> str:
    """A text on one line, in which nothing is markup."""
    return _LEADING.sub(r"\1\\\2", unmarked(clean_line(text)))


def _section(section: Section, pictures: Mapping[str, str]) -> Iterator[str]:
    yield f"{'#' * section.level} {escaped(section.title)}"
    for block in section.blocks:
        yield from _block(block, pictures)


def _block(block: Block, pictures: Mapping[str, str]) -> Iterator[str]:
    if isinstance(block, Text):
        yield escaped(block.text)
    elif isinstance(block, Bullets):
        if block.items:
            yield "\n".join(f"- {escaped(item)}" for item in block.items)
    elif isinstance(block, Facts):
        yield "\n".join(
            f"- **{escaped(fact.label)}**: {_code(fact.value) if fact.exact else escaped(fact.value)}"
            for fact in block.facts
        )
    elif isinstance(block, Grid):
        yield escaped(block.caption)
        yield block.table.markdown().rstrip("\n")
    elif isinstance(block, Picture):
        yield from _picture(block, pictures)
    elif isinstance(block, Listing):
        yield escaped(f"{block.title}:")
        yield _fenced(block.text)
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
    """Letter by letter; the marks around it are more than it has in a row."""
    text = clean_line(text)
    ticks = "`" * (1 + max((len(match) for match in _TICKS.findall(text)), default=0))
    room = " " if "`" in text else ""
    return f"{ticks}{room}{text}{room}{ticks}"


def _fenced(text: str) -> str:
    text = clean(text).rstrip("\n")
    fence = "`" * max(3, 1 + max((len(match) for match in _TICKS.findall(text)), default=0))
    return f"{fence}text\n{text}\n{fence}"
