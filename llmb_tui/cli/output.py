"""How verbs print: one JSON document or plain text on stdout, everything else on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence

from llmb_tui.text import clean, clean_line


def print_json(document: object) -> None:
    """One JSON document on one line."""
    sys.stdout.write(json.dumps(document, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def say(text: str) -> None:
    """Progress and remarks, for a person; never part of a verb's answer."""
    print(clean(text), file=sys.stderr, flush=True)


def print_line(text: str) -> None:
    """One line of a verb's answer, at once; it may hold remote text."""
    print(clean(text), flush=True)


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Columns as wide as their widest cell, numbers to the right; cells may hold remote text."""
    lines = [list(headings), *([clean_line(cell) for cell in row] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(headings))]
    numeric = [all(_is_number(line[i]) for line in lines[1:]) for i in range(len(headings))]
    for line in lines:
        cells = (c.rjust(w) if right else c.ljust(w) for c, w, right in zip(line, widths, numeric, strict=True))
        print("  ".join(cells).rstrip())


def _is_number(cell: str) -> bool:
    return not cell.strip("-–0123456789.,%xs ")
