"""The list of layouts: each can run, no runnable one is missing, and the order is that of the estimate."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from hypothesis import given, settings
from hypothesis import strategies as st

from llmb_tui.plan.layouts import Layout, Layouts, layouts
from llmb_tui.plan.make import plan
from llmb_tui.plan.plan import Parallelism
from llmb_tui.plan.resolved import selections
from llmb_tui.plan.selection import Overrides, Selection
from tests.kit.runs import CATALOG

PUBLISHED = [selection for recipe in CATALOG.recipes for selection in selections(recipe)]
FREE = ("tp", "pp", "cp", "ep", "vp", "mbs")
N15B = Selection("nemotron4", "25.04", "15b", "h100", "bf16", 64)
N340B = Selection("nemotron4", "25.04", "340b", "h100", "bf16", 256)
L405B = Selection("llama3.1", "25.04", "405b", "h100", "bf16", 512)
GROK = Selection("grok1", "25.02", "314b", "h100", "fp8", 64)
EVERY = 10**6


@lru_cache(maxsize=4)
def all_of(selection: Selection) -> dict[Parallelism, Layout]:
    result = layouts(CATALOG, selection, EVERY)
    assert len(result.best) == result.valid
    by_numbers = {layout.parallelism: layout for layout in result.best}
    assert len(by_numbers) == result.valid, "each once"
    return by_numbers


def needs_more(layout: Layout) -> bool:
    return layout.memory is not None and layout.memory.verdict == "needs recompute or sharding"


@given(st.sampled_from(PUBLISHED))
@settings(max_examples=12)
def test_every_listed_layout_can_be_launched(selection: Selection) -> None:
    for layout in layouts(CATALOG, selection, 50).best:
        run_plan = plan(CATALOG, replace(selection, overrides=layout.overrides))
        assert run_plan.launchable, run_plan.problems
        assert (run_plan.parallelism, run_plan.estimate, run_plan.memory) == (
            layout.parallelism,
            layout.estimate,
            layout.memory,
        )


@given(
    st.sampled_from([N15B, N340B, L405B, GROK]),
    st.builds(Overrides, *[st.sampled_from([None, 1, 2, 3, 4, 6, 7, 8, 12, 16, 32, 64])] * 6),
)
@settings(max_examples=400)
def test_a_layout_is_listed_exactly_if_it_can_be_launched(selection: Selection, overrides: Overrides) -> None:
    run_plan = plan(CATALOG, replace(selection, overrides=overrides))
    beyond_node = any(p.field == "tp" and p.severity == "warning" for p in run_plan.problems)
    assert (run_plan.parallelism in all_of(selection)) == (run_plan.launchable and not beyond_node), run_plan.problems


@given(st.sampled_from([N15B, N340B, L405B, GROK]), st.data())
@settings(max_examples=100)
def test_every_valid_neighbour_of_a_listed_layout_is_listed(selection: Selection, data: st.DataObject) -> None:
    """Neighbours: one number multiplied or divided by a prime, and another number divided or multiplied by it."""
    start = data.draw(st.sampled_from(sorted(all_of(selection), key=repr)))
    up, down = data.draw(st.lists(st.sampled_from(FREE), min_size=2, max_size=2, unique=True))
    factor = data.draw(st.sampled_from([2, 3, 7]))
    values = {name: getattr(start, name) or 1 for name in FREE}
    values[up] *= factor
    values[down] = max(1, values[down] // factor)
    run_plan = plan(CATALOG, replace(selection, overrides=Overrides(**values)))
    beyond_node = any(p.field == "tp" and p.severity == "warning" for p in run_plan.problems)
    assert (run_plan.parallelism in all_of(selection)) == (run_plan.launchable and not beyond_node), run_plan.problems


@given(st.sampled_from(PUBLISHED), st.integers(1, 30))
@settings(max_examples=15)
def test_the_published_layout_is_always_there_and_nothing_is_unusual_about_it(selection: Selection, most: int) -> None:
    result = layouts(CATALOG, selection, most)
    (published,) = [layout for layout in result.best if layout.published]
    assert published.overrides == Overrides()
    assert published.unusual == ()
    assert published.parallelism == plan(CATALOG, selection).parallelism
    assert len(result.best) == min(most, result.valid)


@given(st.sampled_from([N15B, N340B, L405B, GROK]))
@settings(max_examples=4)
def test_layouts_that_fit_come_first_and_are_sorted_by_step_time(selection: Selection) -> None:
    result = list(all_of(selection).values())
    assert [needs_more(layout) for layout in result] == sorted(needs_more(layout) for layout in result)
    for group in (False, True):
        seconds = [
            layout.estimate.step_time_s if layout.estimate else float("inf")
            for layout in result
            if needs_more(layout) is group
        ]
        assert seconds == sorted(seconds)


def test_the_best_are_the_first_of_all() -> None:
    found = layouts(CATALOG, N340B, 10).best
    assert [layout.parallelism for layout in found[:9]] == list(all_of(N340B))[:9]
    assert found[9].published or found[9].parallelism == list(all_of(N340B))[9]


def test_layouts_that_do_not_fit_are_listed_if_none_fits() -> None:
    """405b with all layers on 64 GPUs: no layout fits, and the list says so."""
    selection = Selection("llama3.1", "25.04", "405b", "h100", "bf16", 64, overrides=Overrides(layers=126, pp=8))
    result = layouts(CATALOG, selection)
    assert result.best
    assert all(needs_more(layout) for layout in result.best)
    assert all(layout.overrides.layers == 126 for layout in result.best)


def test_layouts_keep_the_requested_batch_sequence_length_and_layers() -> None:
    asked = replace(N15B, overrides=Overrides(gbs=128, seq_len=8192, tp=4))
    for layout in layouts(CATALOG, asked).best:
        runs = layout.parallelism
        assert (runs.gbs, runs.seq_len, runs.layers) == (128, 8192, 32)
        assert (layout.overrides.gbs, layout.overrides.seq_len) == (128, 8192)
        assert not layout.published


def test_unusual_layouts_name_the_unusual_values() -> None:
    result = all_of(N340B)
    deep = next(layout for runs, layout in result.items() if (runs.pp, runs.vp, runs.mbs) == (16, 6, 1))
    assert "PP 16 is above the published 8." in deep.unusual
    flat = next(layout for runs, layout in result.items() if runs.pp == 8 and runs.vp is None)
    assert any("no virtual stages" in reason for reason in flat.unusual)
    assert max(runs.tp for runs in result) == 8, "tensor parallelism stays in its node"


def test_an_unlisted_scale_has_layouts_but_no_published_layout() -> None:
    result = layouts(CATALOG, replace(N15B, scale=96))
    assert result.valid > 20
    assert not any(layout.published for layout in result.best)
    for layout in result.best:
        run_plan = plan(CATALOG, replace(N15B, scale=96, overrides=layout.overrides))
        assert [p.field for p in run_plan.problems if p.severity == "error"] == ["scale"]


def test_an_indivisible_scale_or_batch_has_no_layouts() -> None:
    assert layouts(CATALOG, replace(N15B, scale=61, overrides=Overrides(gbs=60))) == Layouts((), 0)
    assert layouts(CATALOG, replace(N15B, overrides=Overrides(seq_len=4095, layers=31, gbs=63))) == Layouts((), 0)
