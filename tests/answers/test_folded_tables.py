"""Tables that are wider than the terminal: no text is cut, and every cell keeps its tone."""

from __future__ import annotations

import pytest

from llmb_tui.answers.blocks import Fold, Grid, Section, Text
from llmb_tui.answers.table import Table, Toned
from llmb_tui.answers.writers.rows import rows
from llmb_tui.ui.widgets.answer_view import answer_rows

WORDS = "slow, but all runs with it are later or earlier than those without"
NODES = Table.of(
    ("node", "with", "difference %", ""), [("cn001", 8, 4.5, Toned(WORDS, "warning")), ("cn002", 12, 0.1, "–")]
)
SIDES = Table.of(
    ("", *(f"run number {number}" for number in range(6))),
    [("step s", *(f"{number}.00" for number in range(6))), ("loss", *([Toned(WORDS, "bad")] * 6))],
)


def drawn(table: Table, width: int, fold: Fold = "records") -> list[str]:
    return [row.plain.rstrip() for row in answer_rows((Grid("", table, fold),), width)]


def test_the_last_column_is_folded_if_the_others_fit() -> None:
    assert drawn(NODES, 60) == [
        "node   with  difference %",
        "cn001     8           4.5  slow, but all runs with it are",
        "                           later or earlier than those",
        "                           without",
        "cn002    12           0.1  –",
    ]


def test_rows_become_records_if_even_that_does_not_fit() -> None:
    drawn_rows = drawn(NODES, 40)
    assert drawn_rows[0] == "cn001"
    assert max(map(len, drawn_rows)) <= 40
    assert " ".join(" ".join(drawn_rows).split()).startswith(f"cn001 with 8, difference % 4.5, {WORDS} cn002")


@pytest.mark.parametrize("width", [40, 60, 76, 116])
def test_columns_that_do_not_fit_are_below_with_the_names_of_their_rows(width: int) -> None:
    drawn_rows = drawn(SIDES, width, "columns")
    assert max(map(len, drawn_rows)) <= width
    text = "\n".join(drawn_rows)
    assert all(f"{number}.00" in text for number in range(6))
    parts = text.count("step s")
    assert 1 < parts <= 6
    assert text.count("loss") == parts
    assert sum(line.split().count("slow,") for line in drawn_rows) == 6


@pytest.mark.parametrize(("table", "fold", "tone"), [(NODES, "records", "warning"), (SIDES, "columns", "bad")])
@pytest.mark.parametrize("width", [30, 60, 200, None])
def test_a_cell_keeps_its_tone_at_each_width(table: Table, fold: Fold, tone: str, width: int | None) -> None:
    spans = [span for row in rows((Grid("", table, fold),), width) for span in (*row.head, *row.body)]
    assert {span.tone for span in spans if "slow" in span.text} == {tone}


def test_a_long_title_of_a_section_is_folded() -> None:
    drawn_rows = answer_rows((Section("word " * 30, (Text("text"),)),), 40)
    assert max(row.cell_length for row in drawn_rows) <= 40
    assert sum(row.plain.split().count("word") for row in drawn_rows) == 30
