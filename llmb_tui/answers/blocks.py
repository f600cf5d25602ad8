"""`Document`: what a report says, before it is written in any form. Texts are as they came: who writes them escapes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from llmb_tui.analysis.chart import Chart
from llmb_tui.analysis.table import Table, bare
from llmb_tui.language.states import VerdictResult


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list of sentences."""

    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of what is known."""

    label: str
    value: str
    exact: bool = False
    """To be read letter by letter, such as a path or a checksum."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Labels and values."""

    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Grid:
    """A table under what it shows."""

    caption: str
    table: Table


@dataclass(frozen=True, slots=True)
class Picture:
    """A chart; `name` is unique in its document and names its file."""

    name: str
    chart: Chart


@dataclass(frozen=True, slots=True)
class Listing:
    """A file to the letter."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Banner:
    """A verdict, or that there is none, and what it says in a sentence."""

    result: VerdictResult | Literal[""]
    """Empty without a verdict."""
    words: str


Block = Text | Bullets | Facts | Grid | Picture | Listing | Banner


@dataclass(frozen=True, slots=True)
class Section:
    """Blocks under a heading."""

    title: str
    blocks: tuple[Block, ...]
    level: int = 2
    """1 is the document's own."""


@dataclass(frozen=True, slots=True)
class Document:
    """A whole report."""

    title: str
    subtitle: str
    banners: tuple[Banner, ...]
    """What it comes to, at its head."""
    sections: tuple[Section, ...]
    made: str
    """By what, and when."""

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """All of them, in order."""
        return tuple(one for section in self.sections for one in section.blocks if isinstance(one, Picture))


def known(*facts: Fact) -> Facts:
    """Those that have a value."""
    return Facts(tuple(fact for fact in facts if fact.value))


def narrowed(caption: str, table: Table) -> Grid:
    """A table without columns of which nothing is known, and without those in which all rows say the same."""
    said, kept = [], []
    for heading, column in zip(table.headings, zip(*table.rows, strict=True), strict=True):
        if len(column) > 1 and isinstance(column[0], str) and len(set(column)) == 1:
            said.append(f"{heading} {column[0]}")
        elif any(cell is not None for cell in column):
            kept.append((heading, column))
    if said:
        caption += f" For all of them: {', '.join(said)}."
    return Grid(caption, Table.of([heading for heading, _ in kept], zip(*(cells for _, cells in kept), strict=True)))


def document_json(document: Document) -> dict[str, Any]:
    """The report as a JSON object: sections of blocks, each with its kind."""
    return {
        "title": document.title,
        "subtitle": document.subtitle,
        "verdicts": [_block(banner) for banner in document.banners],
        "sections": [
            {"title": section.title, "level": section.level, "blocks": [_block(block) for block in section.blocks]}
            for section in document.sections
        ],
        "made": document.made,
    }


def _block(block: Block) -> dict[str, Any]:
    if isinstance(block, Grid):
        rows = [[bare(cell) for cell in row] for row in block.table.rows]
        return {"kind": "table", "caption": block.caption, "headings": list(block.table.headings), "rows": rows}
    if isinstance(block, Facts):
        return {"kind": "facts", "facts": [{"label": one.label, "value": one.value} for one in block.facts]}
    if isinstance(block, Picture):
        return {"kind": "chart", "name": block.name, **_chart(block.chart)}
    if isinstance(block, Banner):
        return {"kind": "verdict", "result": block.result or None, "words": block.words}
    if isinstance(block, Listing):
        return {"kind": "listing", "title": block.title, "text": block.text}
    return {"kind": "list" if isinstance(block, Bullets) else "text", **asdict(block)}


def _chart(chart: Chart) -> dict[str, Any]:
    series = [{"label": one.label, "points": [[point.x, point.y] for point in one.points]} for one in chart.series]
    return {"title": chart.title, "summary": chart.summary, "x": chart.x.title, "y": chart.y.title, "series": series}
