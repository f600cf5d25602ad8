"""Scaling curves in tables and charts."""

from __future__ import annotations

from dataclasses import replace

from llmb_tui.analysis.scaling import scaling_curves
from llmb_tui.answers.blocks import Grid, pictures
from llmb_tui.answers.scaling import scaling
from llmb_tui.answers.table import cell_text
from llmb_tui.plan.over_scale import over_scale
from tests.kit.results import make_result
from tests.kit.runs import CATALOG, NEMOTRON


def test_a_curve_has_a_row_for_each_scale_with_the_published_figures() -> None:
    larger = replace(NEMOTRON, scale=128)
    (curve,) = scaling_curves([make_result("a", 2.0), make_result("b", 2.02), make_result("c", 2.2, larger)])
    answer = scaling([(curve, over_scale(CATALOG, NEMOTRON))])
    assert answer.title == f"Scaling: {curve.label}"
    (grid,) = (block for block in answer.make_blocks() if isinstance(block, Grid))
    small, large = (dict(zip(grid.table.headings, map(cell_text, row), strict=True)) for row in grid.table.rows)
    assert (small["GPUs"], small["runs"], small["step s"], small["published s"]) == ("64", "2", "2.01", "1.98")
    assert (small["efficiency %"], large["efficiency %"]) == ("100.0", "91.4")
    assert [picture.name for picture in pictures(answer.make_blocks())] == ["scale-1", "efficiency-1"]


def test_charts_extend_to_twice_the_largest_measured_scale() -> None:
    runs = [make_result(f"r{gpus}", 2.0, replace(NEMOTRON, scale=gpus)) for gpus in (16, 64)]
    (curve,) = scaling_curves(runs)
    chart = pictures(scaling([(curve, over_scale(CATALOG, NEMOTRON))]).make_blocks())[0].chart
    assert max(chart.x.known) == 128


def test_the_pictures_of_several_curves_have_different_names() -> None:
    both = [replace(NEMOTRON, dtype=dtype, scale=gpus) for dtype in ("bf16", "fp8") for gpus in (16, 64)]
    curves = scaling_curves([make_result(f"r{index}", 2.0, selection) for index, selection in enumerate(both)])
    answer = scaling([(curve, ()) for curve in curves])
    names = [picture.name for picture in pictures(answer.make_blocks())]
    assert len(set(names)) == len(names) == 4
    assert [document["label"] for document in answer.make_document()] == [curve.label for curve in curves]
