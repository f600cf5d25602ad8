"""`html`: an answer as a single file without scripts and external resources, for light and dark screens and print."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import Banner, Block, Bullets, Facts, Grid, Listing, Picture, Remarks, Section, Text
from llmb_tui.answers.table import Table
from llmb_tui.answers.writers.svg import STYLE as CHART_STYLE
from llmb_tui.answers.writers.svg import svg
from llmb_tui.language.states import verdict_label
from llmb_tui.language.text import clean, clean_line

_WIDE = 8
"""A table with at least this number of columns has a smaller font."""
_SHORT = 16
"""A column whose texts are not longer is not folded."""
_NO_SLUG = re.compile(r"[^a-z0-9]+")
_STYLE = Path(__file__).with_name("report.css").read_text("utf-8") + CHART_STYLE
# A browser loads and runs nothing from this page, even if a text in it is hostile.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def html(answer: Answer) -> str:
    """An answer as an HTML document; the blocks outside sections are its head."""
    blocks = answer.make_blocks()
    sections = [block for block in blocks if isinstance(block, Section)]
    body = [
        f'<header><h1>{_text(answer.title)}</h1><p class="soft">{_text(answer.subtitle)}</p>',
        *(_block(block) for block in blocks if not isinstance(block, Section)),
        *_contents(sections),
        "</header>",
        "<main>",
        *_sections(sections),
        "</main>",
        f"<footer><p>{_text(answer.made)}</p></footer>",
    ]
    head = (
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width,initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{_text(answer.title)}</title>",
        f"<style>\n{_STYLE}</style>",
    )
    lines = ("<!DOCTYPE html>", '<html lang="en">', "<head>", *head, "</head>", "<body>", *body, "</body>", "</html>")
    return "\n".join(lines) + "\n"


def _contents(sections: Sequence[Section]) -> Iterator[str]:
    """Links to the sections of level 2, in a document with several levels."""
    if any(section.level > 2 for section in sections):
        links = (
            f'<li><a href="#{_anchor(section, index)}">{_text(section.title)}</a></li>'
            for index, section in enumerate(sections)
            if section.level == 2
        )
        yield f'<nav aria-label="contents"><ul>{"".join(links)}</ul></nav>'


def _anchor(section: Section, index: int) -> str:
    return f"{_NO_SLUG.sub('-', section.title.lower()).strip('-')[:40]}-{index}"


def _sections(sections: Sequence[Section]) -> Iterator[str]:
    for index, section in enumerate(sections):
        name = _anchor(section, index)
        yield f'<section aria-labelledby="{name}">'
        yield f'<h{section.level} id="{name}">{_text(section.title)}</h{section.level}>'
        yield from map(_block, section.blocks)
        yield "</section>"


def _block(block: Block) -> str:  # noqa: PLR0911 - one return for each kind
    match block:
        case Text():
            return f"<p>{_text(block.text)}</p>"
        case Banner():
            return _banner(block)
        case Bullets():
            return f"<ul>{''.join(f'<li>{_text(item)}</li>' for item in block.items)}</ul>" if block.items else ""
        case Remarks():
            items = (f"<li>{_text(f'{remark.label.text}: {remark.text}')}</li>" for remark in block.items)
            return f'<ul class="remarks">{"".join(items)}</ul>'
        case Facts():
            values = [f"<code>{_text(fact.value)}</code>" if fact.exact else _text(fact.value) for fact in block.facts]
            pairs = zip(block.facts, values, strict=True)
            return f"<dl>{''.join(f'<dt>{_text(fact.label)}</dt><dd>{value}</dd>' for fact, value in pairs)}</dl>"
        case Grid():
            return _table(block.caption, block.table)
        case Picture():
            caption = " ".join((block.chart.summary, *block.chart.notes))
            return f"<figure>{svg(block.chart, style=False)}<figcaption>{_text(caption)}</figcaption></figure>"
        case Listing():
            listing = f"<pre><code>{escape(clean(block.text))}</code></pre>"
            return f"<details><summary>{_text(block.title)}</summary>{listing}</details>"
        case Section():
            return f"<h3>{_text(block.title)}</h3>{''.join(map(_block, block.blocks))}"


def _banner(banner: Banner) -> str:
    word = verdict_label(banner.result).text if banner.result else "– No verdict"
    kind = f" {banner.result.lower()}" if banner.result else ""
    return f'<div class="verdict{kind}"><strong>{word}</strong><span>{_text(banner.words)}</span></div>'


def _table(caption: str, table: Table) -> str:
    """A table with numbers aligned to the right; the first column is the heading of its row."""
    texts = table.texts()
    short = [all(len(row[index]) <= _SHORT for row in texts) for index in range(len(table.headings))]
    kinds = ["number" if right else "short" if few else "" for right, few in zip(table.numeric, short, strict=True)]
    classes = [f' class="{kind}"' if kind else "" for kind in kinds]
    head = "".join(
        f'<th scope="col"{each}>{_text(text)}</th>' if text else f"<td{each}></td>"
        for text, each in zip(table.headings, classes, strict=True)
    )
    rows = ""
    for row in texts:
        cells = (f"<td{each}>{_text(text)}</td>" for text, each in zip(row[1:], classes[1:], strict=True))
        rows += f'<tr><th scope="row"{classes[0]}>{_text(row[0])}</th>{"".join(cells)}</tr>'
    kind = ' class="wide"' if len(table.headings) >= _WIDE else ""
    inside = f"<caption>{_text(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
    return f'<div class="table" role="region" tabindex="0" aria-label="table"><table{kind}>{inside}</table></div>'


def _text(text: str) -> str:
    return escape(clean_line(text))
