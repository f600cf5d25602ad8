"""Blocks as rows: aligned if they fit, else folded; a pipe gets every cell on one line."""

from __future__ import annotations

from llmb_tui.answers.blocks import Fact, Facts, Grid, Listing, Remark, Remarks, Text
from llmb_tui.answers.table import Quantity, State, Table, Toned
from llmb_tui.answers.writers.rows import rows
from llmb_tui.language.quantities import step_time_digits
from llmb_tui.language.states import severity_label, state_label

TIMES = Table.of(
    ("run", "step s", "GPUs"),
    [
        ("a", Quantity(1.984, step_time_digits), 8),
        ("b", Quantity(24.0, step_time_digits), 1024),
        ("c", None, 64),
    ],
)


def texts(*blocks: Text | Facts | Grid | Listing | Remarks, width: int | None = None) -> list[str]:
    return [row.text for row in rows(blocks, width)]


def test_decimal_points_of_a_column_are_aligned() -> None:
    assert texts(Grid("", TIMES)) == [
        "run  step s   GPUs",
        "a     1.984      8",
        "b    24      1,024",
        "c     –         64",
    ]


def test_a_table_without_room_writes_each_row_under_its_name() -> None:
    assert texts(Grid("", TIMES), width=12)[:2] == ["a", "  step s 1.984, GPUs 8"]


def test_a_comparison_without_room_is_written_in_parts() -> None:
    table = Table.of(("", "first", "second"), [("step time", "1.984 s", "2.012 s")])
    assert texts(Grid("", table, fold="columns"), width=20) == [
        "           first",
        "step time  1.984 s",
        "",
        "           second",
        "step time  2.012 s",
    ]


def test_cells_and_remarks_keep_their_tone() -> None:
    table = Table.of(("state", "note"), [(State("failed", state_label("failed")), Toned("8 % slower", "warning"))])
    (_, row) = rows([Grid("", table)])
    assert [(span.text.strip(), span.tone) for span in row.head] == [("failed", "bad"), ("8 % slower", "warning")]
    (remark,) = rows([Remarks((Remark(severity_label("warning"), "Two releases."),))])
    assert remark.text == "! warning: Two releases."
    assert remark.head[0].tone == "warning"


def test_labels_share_a_column_and_a_long_label_is_above_its_value() -> None:
    facts = Facts((Fact("nodes", "8"), Fact("a label that is longer than any column", "x"), Fact("steps", "50")))
    assert texts(facts) == ["nodes  8", "a label that is longer than any column", "       x", "steps  50"]


def test_lines_of_a_difference_have_tones() -> None:
    listed = list(rows([Listing("script", "-old\n+new\n same", diff=True)]))
    assert [row.body[0].tone for row in listed[1:]] == ["bad", "good", "quiet"]
