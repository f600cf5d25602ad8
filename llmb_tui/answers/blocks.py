"""The blocks of an `Answer`, before a writer makes text of them. Texts are unescaped: writers escape them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from llmb_tui.answers.table import State, Table, cell_text
from llmb_tui.language.states import Label, Tone, VerdictResult

if TYPE_CHECKING:
    from llmb_tui.analysis.chart import Chart  # `plan` has no chart and must start quickly

Fold = Literal["records", "columns"]
"""Layout of a table that is too wide even with the texts of its last column folded.
`records`: each row is written under its first cell; `columns`: the columns after the first are written in several
parts, each with the first column, and long texts in them are folded."""


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph."""

    text: str
    tone: Tone = "plain"
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list of sentences."""

    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Remark:
    """A sentence that warns, refuses or explains, under the label of its kind."""

    label: Label
    """Kind of the remark. Writers put its word before the text, or only its glyph if the word is empty."""
    text: str


@dataclass(frozen=True, slots=True)
class Remarks:
    """Remarks on the answer, most important first."""

    items: tuple[Remark, ...]


@dataclass(frozen=True, slots=True)
class Fact:
    """A labelled value."""

    label: str
    value: str
    exact: bool = False
    """True for a value that is read letter by letter, such as a path or a checksum."""
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Facts:
    """A list of labelled values."""

    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Grid:
    """A table under a caption, which may be empty."""

    caption: str
    table: Table
    fold: Fold = "records"


@dataclass(frozen=True, slots=True)
class Picture:
    """A chart; `name` is unique in its answer and names its file."""

    name: str
    chart: Chart


@dataclass(frozen=True, slots=True)
class Listing:
    """The text of a file, or the differences of two files."""

    title: str
    text: str
    diff: bool = False


@dataclass(frozen=True, slots=True)
class Banner:
    """A verdict or its absence, with a sentence about it."""

    result: VerdictResult | Literal[""]
    """Empty without a verdict."""
    words: str


@dataclass(frozen=True, slots=True)
class Section:
    """Blocks under a heading."""

    title: str
    blocks: tuple[Block, ...]
    level: int = 2
    """Level of the heading; the title of the answer has level 1."""


Block = Text | Bullets | Remarks | Facts | Grid | Picture | Listing | Banner | Section


def known_facts(*facts: Fact) -> Facts:
    """The facts that have a value."""
    return Facts(tuple(fact for fact in facts if fact.value))


def compact_grid(caption: str, table: Table) -> Grid:
    """A table without empty columns; a text or state that is the same in all rows is in the caption instead."""
    constants, columns = [], []
    for heading, column in zip(table.headings, zip(*table.rows, strict=True), strict=True):
        if len(column) > 1 and isinstance(column[0], str | State) and len(set(column)) == 1:
            constants.append(f"{heading} {cell_text(column[0])}")
        elif any(cell is not None for cell in column):
            columns.append((heading, column))
    if constants:
        caption += f" The same for all: {', '.join(constants)}."
    rows = zip(*(cells for _, cells in columns), strict=True)
    return Grid(caption, Table.of([heading for heading, _ in columns], rows))


def pictures(blocks: Iterable[Block]) -> tuple[Picture, ...]:
    """All charts among blocks and in their sections, in order."""
    return tuple(block for block in _flat(blocks) if isinstance(block, Picture))


def remarks(blocks: Iterable[Block]) -> tuple[Remark, ...]:
    """All remarks among blocks and in their sections, in order."""
    return tuple(remark for block in _flat(blocks) if isinstance(block, Remarks) for remark in block.items)


def _flat(blocks: Iterable[Block]) -> Iterator[Block]:
    """All blocks, with each section replaced by its blocks."""
    for block in blocks:
        if isinstance(block, Section):
            yield from _flat(block.blocks)
        else:
            yield block
