"""Properties of every selection that can be parsed."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from llmb_tui.plan.document import document
from llmb_tui.plan.make import plan
from llmb_tui.plan.rules import divisors, multiples, neighbours
from llmb_tui.plan.selection import Overrides, Selection
from tests.kit.runs import CATALOG

NAMES = sorted((r.workload, r.release, size) for r in CATALOG.recipes for size in r.models)
SMALL = st.one_of(st.none(), st.sampled_from([1, 2, 3, 4, 8, 12, 16, 64]), st.integers(-(2**31), 2**31 - 1))
SCALE = st.one_of(
    st.sampled_from([8, 16, 32, 64, 100, 128, 256, 512, 768, 1024, 2048, 4096]), st.integers(1, 2**31 - 1)
)


@st.composite
def selections(draw: st.DrawFn) -> Selection:
    workload, release, size = draw(st.sampled_from(NAMES))
    return Selection(
        workload,
        release,
        size,
        draw(st.sampled_from(sorted(CATALOG.gpu_types()))),
        draw(st.sampled_from(sorted(CATALOG.dtypes()))),
        draw(SCALE),
        draw(st.booleans()),
        draw(st.builds(Overrides, *[SMALL] * 9)),
        draw(SMALL),
        draw(st.one_of(st.none(), st.text(max_size=12), st.just("01:00:00"))),
    )


@given(selections())
@settings(max_examples=600)
def test_every_selection_that_can_be_read_has_a_plan_that_adds_up(selection: Selection) -> None:
    run_plan = plan(CATALOG, selection)
    runs = run_plan.parallelism
    if runs.dp is not None:
        assert runs.tp * runs.pp * runs.cp * runs.dp == selection.scale
    else:
        assert selection.scale % (runs.tp * runs.pp * runs.cp)
    if runs.ga is not None:
        assert runs.dp is not None
        assert runs.mbs * runs.dp * runs.ga == runs.gbs
    if run_plan.launchable:
        assert runs.ga is not None
        assert runs.dp is not None
        assert runs.dp % runs.ep == 0
        assert run_plan.nodes * run_plan.gpus_per_node == selection.scale
        assert all(value > 0 for value in selection.overrides.set_fields().values())
    assert runs.vp != 1
    json.dumps(document(run_plan), allow_nan=False)


@given(selections())
@settings(max_examples=600)
def test_an_estimate_lies_in_its_band_and_its_absence_is_explained(selection: Selection) -> None:
    run_plan = plan(CATALOG, selection)
    explained = [p for p in run_plan.problems if p.field == "estimate"]
    if run_plan.estimate is None:
        assert len(explained) == 1
        assert run_plan.gpu_hours is None
        return
    assert all(p.severity == "note" for p in explained), "the run can be slower than its estimate"
    assert 0 < run_plan.estimate.low_s < run_plan.estimate.step_time_s < run_plan.estimate.high_s
    assert 0 < run_plan.estimate.mfu_pct < 100
    assert (run_plan.published is not None) == (run_plan.estimate.method == "published")
    assert run_plan.scaling != "proxy" or run_plan.estimate.method in {"published", "other_release", "modelled"}


@given(selections())
@settings(max_examples=300)
def test_every_problem_has_a_reason_and_every_error_has_a_fix(selection: Selection) -> None:
    problems = plan(CATALOG, selection).problems
    assert all(p.reason for p in problems)
    assert all(p.fix for p in problems if p.severity != "note")
    assert len({(p.field, p.reason) for p in problems}) == len(problems), "one cause, one problem"


@given(selections())
@settings(max_examples=600)
def test_a_batch_or_expert_group_that_a_fix_names_is_valid(selection: Selection) -> None:
    problems = [
        p for p in plan(CATALOG, selection).problems if p.severity == "error" and p.field in {"gbs", "mbs", "ep"}
    ]
    for problem in problems:
        for name, values in re.findall(r"(GBS|MBS|EP) ((?:\d+(?: or )?)+)", problem.fix):
            for value in re.findall(r"\d+", values):
                overrides = replace(selection.overrides, **{name.lower(): int(value)})
                after = plan(CATALOG, replace(selection, overrides=overrides)).problems
                assert not [p for p in after if p.severity == "error" and p.field == problem.field], problem


@given(st.integers(1, 10**6), st.integers(1, 10**4))
def test_multiples_are_the_nearest(value: int, unit: int) -> None:
    result = multiples(value, unit)
    assert all(number % unit == 0 and number > 0 and number != value for number in result)
    assert any(value < number <= value + unit for number in result)
    assert any(value - unit <= number < value for number in result) == (value > unit)


@given(st.integers(1, 5000))
def test_divisors_returns_all_divisors_in_order(number: int) -> None:
    assert divisors(number) == [n for n in range(1, number + 1) if number % n == 0]


@given(st.integers(0, 50), st.sets(st.integers(0, 50), min_size=1).map(sorted))
def test_neighbours_are_the_nearest_on_each_side(value: int, numbers: list[int]) -> None:
    below = [n for n in numbers if n < value][-1:]
    above = [n for n in numbers if n > value][:1]
    assert list(neighbours(value, numbers)) == below + above
