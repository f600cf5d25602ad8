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
    (one,) = grouped([*REPEATS, at_day(FAILED, 3)], "configuration", {})
    assert (one.title, one.scales, one.clusters, one.apart) == ("nemotron4 15b fp8", (64,), ("eos",), "")
    assert [run.id for run in one.runs] == ["bad", "r2", "r1", "r0"]
    assert (one.counted, one.left_out) == (3, {"state failed": 1})
    assert one.repeats is not None
    assert math.isclose(one.repeats.mean_s, 2.0)
    assert one.ratio is not None
    assert math.isclose(one.ratio, (1.98 / 2.0 + 1.98 / 2.02 + 1.0) / 3)
    assert one.verdicts == {"PASS": 3}
    assert one.first.made_at == CREATED_AT + 3 * DAY_S


def test_a_profiled_run_has_a_separate_row_and_is_excluded() -> None:
    plain, other = grouped([at_day(make_result("a"), 1), make_result("b", selection=profiled())], "configuration", {})
    assert plain.apart != other.apart
    assert "profile" in other.apart.lower()
    assert (other.counted, other.repeats, other.ratio, other.changed) == (0, None, None, ())
    assert other.worst == "WARN"


def test_rows_with_the_same_title_show_their_differences() -> None:
    results = [make_result("a"), make_result("b", selection=OTHER_LAYOUT), make_result("c", procedure="upstream")]
    apart = {row.first.id: row.apart for row in grouped(results, "configuration", {})}
    assert "TP 4" in apart["b"]
    assert "TP 2" in apart["a"]
    assert apart["a"] != apart["c"]
    elsewhere = make_result("d", cluster="selene")
    assert [row.apart for row in grouped([*REPEATS, elsewhere], "configuration", {})] == ["", ""]


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
    other = [at_day(make_result(f"o{day}", 1.99, LARGER), day) for day in range(6)]
    for row in (*grouped(slower, "configuration", {}), *grouped([*slower, *other], "cluster", {})):
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
