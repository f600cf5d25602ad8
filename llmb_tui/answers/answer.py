"""`Answer`: the answer to one question, for people and for programs. A writer makes each output from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from llmb_tui.answers.blocks import Block
from llmb_tui.answers.table import Table


def _no_table() -> Table:
    return Table((), ())


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer. Its parts are made when a writer asks for them."""

    title: str
    make_blocks: Callable[[], Sequence[Block]]
    """The answer for people."""
    make_document: Callable[[], Any]
    """The answer for programs: one JSON value (`--json`)."""
    make_table: Callable[[], Table] = _no_table
    """The table for CSV; it has no headings and no rows if the question has no CSV."""
    subtitle: str = ""
    made: str = ""
    """Last line of a report: the program's version and the time."""
    copy: str = ""
    """Text for the copy key, such as the option that excludes nodes; empty if there is nothing to copy."""
    no_copy: str = ""
    """Reason why there is nothing to copy, for a question whose answer can have a text to copy."""
