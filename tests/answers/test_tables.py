"""Tables as CSV, Markdown and JSON."""

from __future__ import annotations

import io
import json
import math
from csv import reader

from llmb_tui.answers.table import Table, cell_text
from llmb_tui.answers.writers.csv import csv
from llmb_tui.answers.writers.markdown import table_markdown, unmarked
from llmb_tui.cli.output import json_line

TABLE = Table.of(
    ("run", "step_s", "nodes"),
    [("a|b *c*", 2.693123, 8), ('say "hi", twice\nplease', None, 1024), ("\x1b[31mred", math.nan, None)],
)


def test_csv_has_every_digit_and_reads_back() -> None:
    rows = list(reader(io.StringIO(csv(TABLE))))
    assert rows == [
        ["run", "step_s", "nodes"],
        ["a|b *c*", "2.693123", "8"],
        ['say "hi", twice\ufffdplease', "", "1024"],
        ["red", "", ""],
    ]


def test_no_text_is_a_formula_of_a_spreadsheet() -> None:
    texts = ("=HYPERLINK(A1)", "+1", " -2+3", "@SUM(1)", "a=b", "-")
    table = Table.of(("text", "number"), [(text, -1.5) for text in texts])
    rows = list(reader(io.StringIO(csv(table))))
    assert [row[0] for row in rows[1:]] == ["'=HYPERLINK(A1)", "'+1", "' -2+3", "'@SUM(1)", "a=b", "-"]
    assert {row[1] for row in rows[1:]} == {"-1.5"}


def test_markdown_escapes_mathematics() -> None:
    assert unmarked("$SCRATCH/x:$PATH a^2") == r"\$SCRATCH/x:\$PATH a\^2"


def test_markdown_escapes_markup_and_aligns_numbers_to_the_right() -> None:
    assert table_markdown(TABLE).splitlines() == [
        r"| run | step\_s | nodes |",
        "| --- | ---: | ---: |",
        r"| a\|b \*c\* | 2.693 | 8 |",
        '| say "hi", twice\ufffdplease | – | 1,024 |',
        "| red | – | – |",
    ]


def test_people_read_four_digits_and_no_powers_of_ten() -> None:
    assert [cell_text(cell) for cell in (392725.4, 0.01234567, 2.0, 12345, math.inf)] == [
        "392,725", "0.01235", "2", "12,345", "–",
    ]  # fmt: skip


def test_json_has_null_for_numbers_that_are_not_finite() -> None:
    assert json.loads(json_line({"loss": math.nan, "all": (1, math.inf)})) == {"loss": None, "all": [1, None]}
