"""The points of the chart over the number of GPUs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.rows import rows
from llmb_tui.plan.make import plan
from llmb_tui.plan.over_scale import AtScale, over_scale
from llmb_tui.plan.selection import Overrides, RunOptions, Selection

NEMOTRON = Selection("nemotron4", "25.04", "15b", "h100", "bf16", 64)
GROK = Selection("grok1", "25.02", "314b", "h100", "bf16", 512)


def gpus(points: tuple[AtScale, ...]) -> list[int]:
    return [point.gpus for point in points]


def test_the_points_are_the_listed_scales_powers_of_two_and_one_larger_scale(catalog: Catalog) -> None:
    points = over_scale(catalog, NEMOTRON)
    assert gpus(points) == [16, 32, 64, 128, 256, 512, 1024, 2048, 4096]
    assert [point.published for point in points] == [True] * 8 + [False]


def test_powers_of_two_fill_the_gaps_between_listed_scales(catalog: Catalog) -> None:
    points = over_scale(catalog, Selection("llama3.1", "25.04", "405b", "h100", "bf16", 512))
    listed = [
        row.gpus for row in rows(catalog.recipe("llama3.1", "25.04")) if (row.size, row.dtype) == ("405b", "bf16")
    ]
    assert 256 not in listed
    assert gpus(points) == [256, 512, 1024, 2048, 4096]
    assert {point.gpus for point in points if point.published} == {512, 1024, 2048}


def test_the_largest_point_is_twice_the_largest_published_scale(catalog: Catalog) -> None:
    points = over_scale(catalog, Selection("llama3.1", "24.11", "405b", "h100", "fp8", 576))
    assert gpus(points) == [576, 1152, 2304, 4608]


def test_the_chosen_scale_is_one_of_the_points(catalog: Catalog) -> None:
    assert 96 in gpus(over_scale(catalog, replace(NEMOTRON, scale=96)))


def test_each_point_is_the_plan_of_that_scale(catalog: Catalog) -> None:
    for point in over_scale(catalog, NEMOTRON):
        run_plan = plan(catalog, replace(NEMOTRON, scale=point.gpus))
        assert (run_plan.estimate, run_plan.published is not None) == (point.estimate, point.published)


def test_a_scale_that_cannot_be_estimated_has_no_point(catalog: Catalog) -> None:
    assert 101 not in gpus(over_scale(catalog, replace(NEMOTRON, scale=101)))


@pytest.mark.parametrize(("scale", "found"), [(8, [8]), (32, [16, 32]), (512, [512, 1024, 2048, 4096])])
def test_only_scales_with_the_same_layers_are_compared(catalog: Catalog, scale: int, found: list[int]) -> None:
    assert gpus(over_scale(catalog, replace(GROK, scale=scale))) == found


def test_with_another_layout_nothing_is_published(catalog: Catalog) -> None:
    points = over_scale(catalog, replace(NEMOTRON, overrides=Overrides(mbs=1)))
    assert not any(point.published for point in points)


def test_steps_time_limit_and_options_change_no_point(catalog: Catalog) -> None:
    profiled = replace(NEMOTRON, steps=100, time_limit="01:00:00", options=RunOptions(profile=True))
    assert over_scale(catalog, profiled) == over_scale(catalog, NEMOTRON)
