"""Runs side by side: differences with their noise, excluded runs, figures, and further differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from llmb_tui.analysis.compare import compare
from llmb_tui.analysis.difference import Change, RunDifference, TextDiff
from llmb_tui.analysis.groups import ResultGroup, grouped
from llmb_tui.analysis.result import RunResult
from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import Block, Grid, remarks
from llmb_tui.answers.comparison import comparison, difference_blocks, side_by_side, side_names
from llmb_tui.answers.table import bare, cell_text, toned_text
from llmb_tui.answers.writers.markdown import blocks_markdown
from llmb_tui.answers.writers.rows import rows
from llmb_tui.plan.selection import Selection
from llmb_tui.watch.log_facts import LogFacts
from llmb_tui.watch.state import Step
from tests.kit.results import make_result
from tests.kit.runs import CREATED_AT, NEMOTRON

LARGER = replace(NEMOTRON, scale=128)
BF16 = replace(NEMOTRON, dtype="bf16")
NOTHING = RunDifference("a", "b", (), (), ())


def text_of(answer: Answer, width: int = 100) -> str:
    return "\n".join(row.text for row in rows(answer.make_blocks(), width))


def repeats(name: str, times: Sequence[float], selection: Selection = NEMOTRON, **changes: Any) -> list[RunResult]:
    return [
        make_result(f"{name}{index}", seconds, selection, submitted_at=CREATED_AT + index, **changes)
        for index, seconds in enumerate(times)
    ]


def group_of(results: Sequence[RunResult]) -> ResultGroup:
    (group,) = grouped(results, "configuration", {})
    return group


def two_sides(first: Sequence[RunResult], second: Sequence[RunResult], difference: RunDifference = NOTHING) -> Answer:
    marked = [group_of(first), group_of(second)]
    return side_by_side(marked, [first[-1], second[-1]], [compare(second, first)], [difference])


def difference_cell(blocks: Sequence[Block]) -> tuple[str, str]:
    """Text and tone of the only difference."""
    (grid,) = (block for block in blocks if isinstance(block, Grid) and "difference" in block.table.headings)
    (row,) = grid.table.rows
    return toned_text(row[grid.table.headings.index("difference")])


def labelled_remarks(blocks: Sequence[Block]) -> list[tuple[str, str]]:
    return [(remark.label.word, remark.text) for remark in remarks(blocks)]


def test_a_difference_within_the_noise_has_these_words() -> None:
    answer = two_sides(repeats("a", (2.0, 2.04, 1.96)), repeats("b", (2.01, 2.05, 1.97), cluster="selene"))
    text, tone = difference_cell(answer.make_blocks())
    assert text.startswith("within the noise: +0.5 %")
    assert tone == "quiet"
    assert labelled_remarks(answer.make_blocks()) == [], "another cluster is what is compared"


@pytest.mark.parametrize(("seconds", "word", "tone"), [(2.2, "slower", "warning"), (1.8, "faster", "good")])
def test_a_difference_beyond_the_noise_has_a_word_and_a_tone(seconds: float, word: str, tone: str) -> None:
    results = repeats("b", (seconds, seconds + 0.01, seconds - 0.01), cluster="selene")
    answer = two_sides(repeats("a", (2.0, 2.01, 1.99)), results)
    text, shown = difference_cell(answer.make_blocks())
    assert text.startswith("10 % ±")
    assert f"{word} (" in text
    assert shown == tone


def test_verb_screen_and_report_have_the_same_words_for_a_difference() -> None:
    first, second = repeats("a", (2.0, 2.02)), repeats("b", (2.7, 2.68), BF16)
    screen = two_sides(first, second).make_blocks()
    verb = comparison(compare(second, first), (), None).make_blocks()
    shared = tuple(difference_blocks(compare(second, first)))
    assert screen[: len(shared)] == verb[: len(shared)] == shared


def test_runs_that_are_not_comparable_are_refused_with_the_reason_and_have_no_difference() -> None:
    answer = two_sides(repeats("a", (2.0, 2.0)), [make_result("c", 3.0, replace(NEMOTRON, size="340b", scale=256))])
    label, text = next((remark.label, remark.text) for remark in remarks(answer.make_blocks()))
    assert (label.word, label.tone) == ("not comparable", "bad")
    assert text.startswith("The models differ")
    assert not any("difference" in block.table.headings for block in answer.make_blocks() if isinstance(block, Grid))


def test_a_weakness_of_a_comparison_is_a_warning() -> None:
    runs = [make_result("a"), make_result("b", 2.02, procedure="upstream")]
    blocks = comparison(compare(runs), (), None).make_blocks()
    (label, text) = next((remark.label, remark.text) for remark in remarks(blocks))
    assert (label.word, label.tone) == ("not alike", "warning")
    assert text.startswith("The launch methods differ")


def test_runs_on_both_sides_are_counted_in_a_warning() -> None:
    runs = repeats("a", (2.0, 2.04, 1.96))
    assert ("not alike", "2 runs on both sides, which makes the difference smaller than it is.") in labelled_remarks(
        two_sides(runs, runs[:2]).make_blocks()
    )


def test_excluded_runs_have_their_reason_if_no_run_counts() -> None:
    alone = labelled_remarks(comparison(compare([make_result("f", stage="failed")]), (), None).make_blocks())
    assert alone == [("not comparable", "None of these runs counts."), ("excluded", "Run f: state failed.")]


def test_a_side_without_a_counterpart_is_named() -> None:
    compared = compare(repeats("a", (2.0,)), [make_result("f", stage="failed")])
    words = labelled_remarks(comparison(compared, (), None).make_blocks())
    assert ("not comparable", "No run has a counterpart on the other side.") in words
    unpaired = "nemotron4 15b fp8 · 64 × H100, 25.04 on eos, our script: no comparable run on the other side."
    assert ("excluded", unpaired) in words


def test_repeats_have_their_noise_and_a_run_its_figures() -> None:
    """64 H100, 256 sequences of 4,096 tokens in 1.98 s: 529,584 tokens/s, as published."""
    compared = compare([*repeats("a", (1.98, 2.00)), *repeats("b", (2.67,), BF16)])
    answer = comparison(compared, (), None)
    _, runs, noise = (block.table for block in answer.make_blocks() if isinstance(block, Grid))
    first = dict(zip(runs.headings, runs.rows[0], strict=True))
    assert cell_text(first["tokens/s"]) == "529,584"
    assert toned_text(first["verdict"])[1] == "good"
    assert [len(table.rows) for table in (runs, noise)] == [3, 2]
    assert [cell_text(cell) for cell in noise.rows[0]][:3] == ["fp8 · delayed scaling", "2", "1.99"]


def test_csv_has_a_row_for_each_run_in_full() -> None:
    answer = comparison(compare([make_result("a"), make_result("b", 2.67, BF16)]), (), None)
    table = answer.make_table()
    row = dict(zip(table.headings, map(bare, table.rows[0]), strict=True))
    assert row["tokens/s"] == pytest.approx(256 * 4096 / 1.98)
    assert row["of published %"] == pytest.approx(100)
    assert row["verdict"] == "PASS"


def test_sides_are_named_by_their_differences_and_omit_unknown_figures() -> None:
    marked = [group_of(repeats("a", (2.0, 2.02))), group_of([make_result("c", 2.1, LARGER)])]
    names = side_names(marked)
    assert ["64 GPUs" in names[0], "128 GPUs" in names[1]] == [True, True]
    answer = side_by_side(
        marked, [group.first for group in marked], [compare(marked[1].runs, marked[0].runs)], [NOTHING]
    )
    grid = next(block for block in answer.make_blocks() if isinstance(block, Grid) and block.fold == "columns")
    known = {row[0]: [cell_text(cell) for cell in row[1:]] for row in grid.table.rows}
    assert grid.table.headings == ("", *names)
    assert known["runs"] == ["2 of 2 count", "c"]
    assert known["step s"] == ["2.01", "2.1"]
    assert known["noise %"] == ["0.7", "–"]
    assert "loss" not in known, "no log was read"


def test_a_side_has_the_tone_of_its_worst_verdict() -> None:
    answer = two_sides(repeats("a", (2.0, 2.02)), repeats("b", (2.7, 2.8), cluster="selene"))
    grid = next(block for block in answer.make_blocks() if isinstance(block, Grid) and block.fold == "columns")
    (verdicts,) = (row[1:] for row in grid.table.rows if row[0] == "verdicts")
    assert list(map(toned_text, verdicts)) == [("✓ PASS 2", "good"), ("✗ FAIL 2", "bad")]


def test_the_words_of_a_loss_agree_with_its_numbers() -> None:
    losses = (10, *[14] * 9, *[12] * 40)
    steps = tuple(Step(index, len(losses), 2.0, loss=loss) for index, loss in enumerate(losses))
    first = replace(make_result("a", 2.0), facts=LogFacts("nemo2", steps, (), 1))
    text = text_of(side_by_side([group_of([first])], [first], [], []))
    assert "falls: 13.6 to 12, means of the first and the last fifth" in text


def test_further_differences_include_script_and_environment() -> None:
    changes = (Change("versions", "driver", "560.35", "570.86"), Change("environment", "NCCL_ALGO", None, "[/x]"))
    texts = (TextDiff("script", ("--- before", "+++ after", "@@ -1 +1 @@", "-old", "+new", "---- x"), 3),)
    answer = two_sides(
        [make_result("a")], [make_result("b")], RunDifference("a", "b", changes, texts, ("No log of a.",))
    )
    text = text_of(answer)
    for words in ("driver: 560.35 → 570.86", "NCCL_ALGO: not set → [/x]", "-old", "+new", "3 further lines", "No log"):
        assert words in text
    assert "--- before" not in text
    assert "---- x" in text, "a removed line that begins with dashes"
    assert "```diff\n@@ -1 +1 @@\n-old\n+new\n" in blocks_markdown(answer.make_blocks())


def test_the_verb_shows_differences_of_texts_only_with_the_flag() -> None:
    changed = RunDifference("a", "b", (Change("plan", "dtype", "fp8", "bf16"),), (TextDiff("script", ("+new",)),), ())
    compared = compare([make_result("a"), make_result("b")])
    plain, full = (text_of(comparison(compared, (), changed, with_texts=given)) for given in (False, True))
    assert "dtype: fp8 → bf16" in plain
    assert "+new" not in plain
    assert "+new" in full
    assert "name two runs, or use --against" in text_of(comparison(compared, (), None, with_texts=True))
    assert "No difference between their scripts and files is known." in text_of(
        comparison(compared, (), NOTHING, with_texts=True)
    )
