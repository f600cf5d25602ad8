"""What the views of results say: side by side, over scales, by nodes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from llmb_tui.analysis.compare import compare
from llmb_tui.analysis.difference import Change, RunDifference, TextDiff
from llmb_tui.analysis.groups import ResultGroup, grouped
from llmb_tui.analysis.result import RunResult
from llmb_tui.analysis.scaling import scaling_curves
from llmb_tui.analysis.slow_nodes import slow_nodes
from llmb_tui.ui.widgets.answers import ResultAnswer, by_nodes, column_names, compared, over_scales, side_by_side
from llmb_tui.watch.log_facts import LogFacts
from llmb_tui.watch.state import Step
from tests.kit.results import make_result
from tests.kit.runs import CREATED_AT, NEMOTRON

LARGER = replace(NEMOTRON, scale=128)
NOTHING = RunDifference("a", "b", (), (), ())


def text_of(answer: ResultAnswer, width: int = 100) -> str:
    return "\n".join(str(row) for block in answer.blocks if callable(block) for row in block(width))


def repeats(name: str, times: Sequence[float], **changes: Any) -> list[RunResult]:
    return [
        make_result(f"{name}{at}", seconds, submitted_at=CREATED_AT + at, **changes) for at, seconds in enumerate(times)
    ]


def of(results: Sequence[RunResult]) -> ResultGroup:
    (one,) = grouped(results, "configuration", {})
    return one


def answer(first: Sequence[RunResult], second: Sequence[RunResult], difference: RunDifference = NOTHING) -> str:
    marked = [of(first), of(second)]
    comparison = compare(second, first)
    return text_of(compared(marked, [first[-1], second[-1]], [comparison], [difference]))


def test_a_difference_within_the_noise_is_called_that() -> None:
    said = answer(repeats("a", (2.0, 2.04, 1.96)), repeats("b", (2.01, 2.05, 1.97), cluster="selene"))
    assert "≈ within the noise: +0.5 %" in said
    assert "slower (" not in said
    assert "! with care" not in said  # another cluster is what is compared


def test_a_difference_beyond_the_noise_is_a_word_not_a_colour() -> None:
    said = answer(repeats("a", (2.0, 2.01, 1.99)), repeats("b", (2.2, 2.21, 2.19), cluster="selene"))
    assert "▲ 10 % ±" in said
    assert "slower" in said


def test_what_is_not_alike_is_refused_in_words() -> None:
    said = answer(repeats("a", (2.0, 2.0)), [make_result("c", 3.0, replace(NEMOTRON, size="340b", scale=256))])
    assert "✗ not compared: The models differ" in said
    assert "≈" not in said


def test_runs_that_stand_on_both_sides_are_told() -> None:
    runs = repeats("a", (2.0, 2.04, 1.96))
    assert "! with care: 2 runs of both sides" in answer(runs, runs[:2])


def test_columns_are_named_by_what_differs_and_have_what_is_known() -> None:
    marked = [of(repeats("a", (2.0, 2.02))), of([make_result("c", 2.1, LARGER)])]
    names = column_names(marked)
    assert ["64 GPUs" in names[0], "128 GPUs" in names[1]] == [True, True]
    said = text_of(
        compared(marked, [one.first for one in marked], [compare(marked[1].runs, marked[0].runs)], [NOTHING])
    )
    rows = {row[:15].strip(): row[15:].split("  ") for row in said.splitlines()}
    assert "2 of 2 count" in rows["runs"][0]
    assert "2.01 s" in rows["step time"][0]
    assert any("c" in cell for cell in rows["runs"])
    assert rows["between runs"][-1].strip() == "–"


def test_of_a_loss_is_said_what_goes_with_its_numbers() -> None:
    losses = (10, *[14] * 9, *[12] * 40)
    steps = tuple(Step(at, len(losses), 2.0, loss=loss) for at, loss in enumerate(losses))
    first = replace(make_result("a", 2.0), facts=LogFacts("nemo2", steps, (), 1))
    said = " ".join(text_of(compared([of([first])], [first], [], [])).split())
    assert "falls: 13.6 to 12, means of the first and the last fifth" in said


def test_columns_that_do_not_fit_follow_below() -> None:
    rows = [("step time", [f"{number}.00 s" for number in range(6)])]
    drawn = side_by_side([f"run number {number}" for number in range(6)], rows, 60)
    assert max(row.cell_length for row in drawn) <= 60
    text = "\n".join(str(row) for row in drawn)
    assert all(f"{number}.00 s" in text for number in range(6))


def test_what_else_differs_is_shown_with_script_and_environment() -> None:
    changes = (Change("versions", "driver", "560.35", "570.86"), Change("environment", "NCCL_ALGO", None, "[/x]"))
    texts = (TextDiff("script", ("--- before", "+++ after", "@@ -1 +1 @@", "-old", "+new"), 3),)
    said = answer([make_result("a")], [make_result("b")], RunDifference("a", "b", changes, texts, ("No log of a.",)))
    for words in ("driver: 560.35 → 570.86", "NCCL_ALGO: not set → [/x]", "-old", "+new", "3 further lines", "No log"):
        assert words in said
    assert "--- before" not in said


def test_scaling_has_a_point_for_each_scale_beside_the_printed_ones() -> None:
    runs = [make_result("a", 2.0), make_result("b", 2.02), make_result("c", 2.2, LARGER)]
    (curve,) = scaling_curves(runs)
    said = text_of(over_scales([(curve, ())]))
    small, large = (row for row in said.splitlines() if row.startswith(("64 ", "128 ")))
    assert "100.0 %" in small
    assert "1.98 s" in small
    assert "91." in large


def test_a_slow_node_is_named_with_its_evidence_and_copied_as_an_option() -> None:
    runs = []
    for at in range(24):
        first = 1 + at % 4 * 8
        nodes = f"cn[{first:03}-{first + 7:03}]" if at % 3 else f"cn[{first:03}-{first + 6:03},040]"
        seconds = (2.0 + at % 5 * 0.002) * (1.0 if at % 3 else 1.06)
        runs.append(make_result(f"n{at}", seconds, nodes=nodes, submitted_at=CREATED_AT + at))
    found = by_nodes(slow_nodes(runs), ["eos"])
    assert found.copy == "--exclude=cn040"
    said = text_of(found)
    assert re.search(r"✗ cn040 +8 +16 +\+5\.9 %", said)
    assert "A node is suspected if" in said


def test_without_a_slow_node_there_is_nothing_to_copy_and_the_answer_says_why() -> None:
    runs = [make_result(f"n{at}", 2.0, nodes=f"cn[{1 + at % 3:03}-{8 + at % 3:03}]") for at in range(12)]
    found = by_nodes(slow_nodes(runs), ["eos"])
    assert (found.copy, found.no_copy) == ("", "No node is suspected, so there is nothing to leave out.")
    assert "No node is suspected" in text_of(found)
