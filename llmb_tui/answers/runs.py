"""`runs`, `run`: the states of all runs, and of a single run. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import Grid
from llmb_tui.answers.run_columns import run_columns
from llmb_tui.answers.run_row import RunRow
from llmb_tui.answers.table import Table


def runs(rows: Sequence[RunRow], documents: Sequence[Mapping[str, Any]]) -> Answer:
    """The list of runs in the order of the rows; it has a column of notes if any run has a note."""
    return Answer("Runs", lambda: (Grid("", _table(rows)),), lambda: documents, lambda: _table(rows))


def run(row: RunRow, document: Mapping[str, Any]) -> Answer:
    """The current state of a run."""
    return Answer(f"Run {row.id}", lambda: (Grid("", _table([row])),), lambda: document, lambda: _table([row]))


def _table(rows: Sequence[RunRow]) -> Table:
    noted = any(row.note for row in rows)
    return Table.by([column for column in run_columns("jobs") if noted or column.name != "note"], rows)
