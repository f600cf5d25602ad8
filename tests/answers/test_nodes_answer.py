"""Slow nodes: named with their evidence, and copied as an option."""

from __future__ import annotations

from llmb_tui.analysis.result import RunResult
from llmb_tui.analysis.slow_nodes import slow_nodes
from llmb_tui.answers.blocks import Grid, Text
from llmb_tui.answers.nodes import nodes
from llmb_tui.answers.table import bare, toned_text
from tests.kit.results import make_result
from tests.kit.runs import CREATED_AT


def with_a_slow_node() -> list[RunResult]:
    runs = []
    for at in range(24):
        first = 1 + at % 4 * 8
        names = f"cn[{first:03}-{first + 7:03}]" if at % 3 else f"cn[{first:03}-{first + 6:03},040]"
        seconds = (2.0 + at % 5 * 0.002) * (1.0 if at % 3 else 1.06)
        runs.append(make_result(f"n{at}", seconds, nodes=names, submitted_at=CREATED_AT + at))
    return runs


def test_a_slow_node_is_named_with_its_evidence_and_copied_as_an_option() -> None:
    answer = nodes(slow_nodes(with_a_slow_node()), ["eos"])
    assert (answer.title, answer.copy, answer.no_copy) == ("Slow nodes of eos", "--exclude=cn040", "")
    first, second, *blocks, rule = answer.make_blocks()
    assert first == Text("Suspected: cn040, by 24 runs.", "bad", strong=True)
    assert second == Text("To exclude them: --exclude=cn040")
    assert isinstance(rule, Text)
    assert rule.text.startswith("A node is suspected if")
    (grid,) = (block for block in blocks if isinstance(block, Grid))
    cells = [toned_text(cell) for cell in grid.table.rows[0]]
    assert cells[0] == ("cn040", "bad")
    assert [text for text, _ in cells[1:4]] == ["8", "16", "+5.9"]
    assert cells[-1] == ("slow", "bad")


def test_nodes_without_a_comparison_are_one_line_of_text_and_rows_in_csv() -> None:
    answer = nodes(slow_nodes(with_a_slow_node()), ["eos"])
    texts = [block.text for block in answer.make_blocks() if isinstance(block, Text)]
    compared = next(block for block in answer.make_blocks() if isinstance(block, Grid)).table
    table = answer.make_table()
    assert table.headings == ("node", "runs with", "without", "difference %", "noise %", "chance", "")
    unknown = [bare(row[0]) for row in table.rows if row[3] is None]
    assert len(unknown) + len(compared.rows) == len(table.rows)
    assert not unknown or any(f"{len(unknown)} nodes with nothing to compare with" in text for text in texts)


def test_without_a_slow_node_copy_is_disabled_with_a_reason() -> None:
    runs = [make_result(f"n{at}", 2.0, nodes=f"cn[{1 + at % 3:03}-{8 + at % 3:03}]") for at in range(12)]
    answer = nodes(slow_nodes(runs), ["eos"])
    assert (answer.copy, answer.no_copy) == ("", "No node is suspected, so there is nothing to exclude.")
    first = answer.make_blocks()[0]
    assert isinstance(first, Text)
    assert first.text.startswith("No node is suspected")
    assert first.tone == "plain"
