"""Results as groups: which runs belong together, and the messages about each group."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from llmb_tui.analysis.groups import Grouping, grouped, narrow, over
from llmb_tui.analysis.result import RunResult
from llmb_tui.launch.note import Note
from llmb_tui.plan.selection import Overrides
from llmb_tui.watch.state import Progress
from tests.kit.results import make_result, profiled, with_changes
from tests.kit.runs import CREATED_AT, NEMOTRON

DAY_S = 86_400.0
LARGER = replace(NEMOTRON, scale=128)
OTHER_LAYOUT = replace(NEMOTRON, overrides=Overrides(tp=4))


def at_day(result: RunResult, day: float) -> RunResult:
    return with_changes(result, submitted_at=CREATED_AT + day * DAY_S)


REPEATS = [at_day(make_result(f"r{day}", seconds), day) for day, seconds in enumerate((2.0, 2.02, 1.98))]
FAILED = make_result("bad", stage="failed", progress=Progress(steps_done=3, steps_total=50), verdict=None)


def test_repeats_form_one_row_with_their_mean_and_noise() -> None:
    (result_group,) = grouped([*REPEATS, at_day(FAILED, 3)], "configuration", {})
    assert (result_group.title, result_group.scales, result_group.clusters, result_group.distinction) == (
        "nemotron4 15b fp8",
        (64,),
        ("eos",),
        "",
    )
    assert [run.id for run in result_group.runs] == ["bad", "r2", "r1", "r0"]
    assert (result_group.counted, result_group.left_out) == (3, {"state failed": 1})
    assert result_group.repeats is not None
    assert math.isclose(result_group.repeats.mean_s, 2.0)
    assert result_group.ratio is not None
    assert math.isclose(result_group.ratio, (1.98 / 2.0 + 1.98 / 2.02 + 1.0) / 3)
    assert result_group.verdicts == {"PASS": 3}
    assert result_group.first.made_at == CREATED_AT + 3 * DAY_S


def test_a_profiled_run_has_a_separate_row_and_is_excluded() -> None:
    plain, result_group = grouped(
        [at_day(make_result("a"), 1), make_result("b", selection=profiled())], "configuration", {}
    )
    assert plain.distinction != result_group.distinction
    assert "profile" in result_group.distinction.lower()
    assert (result_group.counted, result_group.repeats, result_group.ratio, result_group.changed) == (0, None, None, ())
    assert result_group.worst == "WARN"


def test_rows_with_the_same_title_show_their_differences() -> None:
    results = [make_result("a"), make_result("b", selection=OTHER_LAYOUT), make_result("c", procedure="upstream")]
    apart = {row.first.id: row.distinction for row in grouped(results, "configuration", {})}
    assert "TP 4" in apart["b"]
    assert "TP 2" in apart["a"]
    assert apart["a"] != apart["c"]
    elsewhere = make_result("d", cluster="selene")
    assert [row.distinction for row in grouped([*REPEATS, elsewhere], "configuration", {})] == ["", ""]


@pytest.mark.parametrize(
    ("by", "titles"),
    [
        ("configuration", ["nemotron4 15b fp8", "nemotron4 15b fp8", "nemotron4 15b fp8"]),
        ("cluster", ["selene", "eos"]),
        ("release", ["nemotron4@25.04"]),
        ("tag", ["#driver-570", "#night", "without a tag"]),
        ("none", ["nemotron4 15b fp8"] * 4),
    ],
)
def test_groups_by_each_grouping(by: Grouping, titles: list[str]) -> None:
    results = [
        make_result("a", 2.0),
        at_day(make_result("b", 2.1), 1),
        at_day(make_result("c", 2.0, LARGER), 2),
        at_day(make_result("d", 3.0, cluster="selene"), 3),
    ]
    groups = grouped(results, by, {"d": Note(tags=("driver-570", "night")), "a": Note(tags=("night",))})
    assert [group.title for group in groups] == titles


def test_step_times_of_different_configurations_are_no_figure_but_their_ratios_are() -> None:
    (eos,) = grouped([make_result("a", 1.98), make_result("b", 3.98, LARGER)], "cluster", {})
    assert (eos.scales, eos.repeats, eos.counted) == ((64, 128), None, 2)
    assert eos.ratio is not None
    assert math.isclose(eos.ratio, 0.75)
    assert (eos.worst, eos.verdicts["FAIL"]) == ("FAIL", 1)
    assert eos.relative == ()  # neither has a repeat for comparison


def test_a_change_is_detected_among_repeats_alone() -> None:
    times = (2.0, 2.01, 1.99, 2.0, 2.2, 2.19)
    slower = [at_day(make_result(f"s{day}", seconds), day) for day, seconds in enumerate(times)]
    results = [at_day(make_result(f"o{day}", 1.99, LARGER), day) for day in range(6)]
    for row in (*grouped(slower, "configuration", {}), *grouped([*slower, *results], "cluster", {})):
        ((repeats, change),) = row.changed
        assert repeats.runs[change.at].id == "s4"
        assert change.percent > 9
        assert len(row.relative) == len(row.runs)


def test_words_find_runs_by_the_texts_of_a_row_and_by_notes() -> None:
    results = [make_result("a"), make_result("b", cluster="selene"), with_changes(FAILED, id="c")]
    ids = {
        words: "".join(one.id for one in narrow(results, words, {"b": Note("slept", ("night",))}))
        for words in ("", "FP8 eos", "selene pass", "failed", "NIGHT", "slept", "64×h100 25.04 direct", "night eos")
    }
    assert list(ids.values()) == ["abc", "ac", "b", "c", "b", "b", "abc", ""]


def test_an_active_run_has_no_result_yet() -> None:
    assert [one.id for one in over([make_result("a"), make_result("b", stage="measuring")])] == ["a"]
