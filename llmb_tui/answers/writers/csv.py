"""`csv`: a table as CSV for programs and spreadsheets."""

from __future__ import annotations

import csv as standard_csv
import io
import math

from llmb_tui.answers.table import Cell, Table, bare
from llmb_tui.language.text import clean_line

_FORMULA = ("=", "+", "-", "@")
"""A spreadsheet evaluates a text that starts with one of these."""


def csv(table: Table) -> str:
    """Write a table with every number in full precision and unknown values empty. Lines end with a newline.

    A text that a spreadsheet would evaluate gets a `'` in front.
    """
    out = io.StringIO()
    writer = standard_csv.writer(out, lineterminator="\n")
    writer.writerow(table.headings)
    writer.writerows([_text(cell) for cell in row] for row in table.rows)
    return out.getvalue()


def _text(cell: Cell) -> str:
    value = bare(cell)
    if isinstance(value, str):
        text = clean_line(value)
        return f"'{text}" if len(text) > 1 and text.lstrip().startswith(_FORMULA) else text
    return "" if value is None or not math.isfinite(value) else repr(value)
