"""The parts of the preview: figures, step time breakdown, chart, and their layout."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmb_tui.answers.writers.plot import ASCII, UNICODE
from llmb_tui.plan.calibration import ClusterEstimate
from llmb_tui.plan.make import plan
from llmb_tui.plan.over_scale import over_scale
from llmb_tui.plan.plan import Breakdown
from llmb_tui.plan.selection import Overrides, Selection
from llmb_tui.ui.widgets.figures import figures, strip, time_parts
from llmb_tui.ui.widgets.preview import PreviewLayout, preview_layout
from llmb_tui.ui.widgets.scale_chart import LEAST_HEIGHT, ScaleAxis, scale_lines
from tests.kit.runs import CATALOG

NEMOTRON = Selection("nemotron4", "25.04", "15b", "h100", "bf16", 64)
POINTS = over_scale(CATALOG, NEMOTRON)
HERE = ClusterEstimate(2.71, 2.60, 2.82, "2 runs of this configuration", ("250101-a", "250102-b"), same=True)


def drawn(chosen: int = 64, size: tuple[int, int] = (47, 8), points: object = POINTS) -> list[str]:
    assert isinstance(points, tuple)
    return ["".join(text for text, _ in row) for row in scale_lines(points, chosen, size)]


def texts(selection: Selection, here: ClusterEstimate | None = None, width: int = 47) -> dict[str, str]:
    """Figures by their labels, wrapped lines joined."""
    by_label: dict[str, str] = {}
    label = ""
    for row in figures(plan(CATALOG, selection), here, width):
        label = row.plain[:12].strip() or label
        by_label[label] = f"{by_label.get(label, '')} {row.plain[12:].strip()}".strip()
    return by_label


def test_a_published_step_time_has_method_band_and_published_row() -> None:
    words = texts(NEMOTRON)
    assert words["step time"] == "2.67 s   published"
    assert words["band"].endswith("2.563–2.777 s")
    assert words["based on"] == "nemotron4@25.04 15b bf16, 64 × H100, 2.67 s"


def test_a_modelled_step_time_has_its_basis() -> None:
    run_plan = plan(CATALOG, replace(NEMOTRON, overrides=Overrides(tp=4)))
    assert run_plan.estimate is not None
    words = texts(run_plan.selection)
    assert words["step time"].endswith(f"modelled: {run_plan.estimate.basis}")
    assert words["based on"] == run_plan.estimate.anchor


def test_memory_has_its_verdict() -> None:
    assert texts(NEMOTRON)["memory"].endswith("of 80 GB   fits")
    assert texts(replace(NEMOTRON, overrides=Overrides(mbs=8)))["memory"].endswith("needs recompute or sharding")


@pytest.mark.parametrize("width", [47, 68])
def test_a_step_time_measured_here_has_a_separate_row_with_the_runs(width: int) -> None:
    rows = [row.plain for row in figures(plan(CATALOG, NEMOTRON), HERE, width)]
    text = " ".join(" ".join(rows).split())
    assert "step time 2.67 s published band" in text
    assert "cluster 2.71 s 2.6–2.82 s measured here: 2 runs of this configuration (250101-a, 250102-b) tokens/s" in text
    assert all(len(row) <= width for row in rows)
    assert "cluster" not in texts(NEMOTRON)


def test_only_the_newest_of_many_runs_are_named() -> None:
    rows = [row.plain for row in figures(plan(CATALOG, NEMOTRON), replace(HERE, runs=("d", "c", "b", "a")), 68)]
    assert any(row.endswith("(d, c and 2 more)") for row in rows)


def test_the_strip_fits_eighty_columns_with_a_step_time_measured_here() -> None:
    rows = [row.plain for row in strip(plan(CATALOG, NEMOTRON), HERE)]
    assert "2.71 s measured here" in rows[1]
    assert "2.71 s adjusted" in strip(plan(CATALOG, NEMOTRON), replace(HERE, same=False))[1].plain, "no earlier run"
    assert all(len(row) <= 78 for row in rows)


def test_overridden_values_are_marked_and_derived_ones_are_not() -> None:
    rows = [row.plain for row in figures(plan(CATALOG, replace(NEMOTRON, overrides=Overrides(tp=4))), None, 47)]
    assert rows[2].split() == ["4†", "1", "1", "1", "16", "–", "2", "256", "8"]
    assert rows[3] == "† manual override"


def test_no_row_of_the_figures_is_wider_than_the_preview() -> None:
    for selection in (NEMOTRON, Selection("grok1", "25.02", "314b", "h100", "fp8", 2048)):
        assert all(row.cell_length <= 47 for row in figures(plan(CATALOG, selection), None, 47))


def test_the_step_time_breakdown_is_called_a_model_and_names_each_part() -> None:
    rows = [row.plain for row in time_parts(Breakdown(7.0, 2.0, 1.0, 0.01), 47)]
    assert rows[0] == "step time breakdown (modelled)"
    assert len(rows[1]) == 47
    assert set(rows[1]) == set("█▓▒░")
    assert " ".join(rows[2:]).split("  ") == [
        "█ compute 70 %",
        "▓ communication 20 % ▒ bubble 10 %",
        "░ optimizer < 1 %",
    ]


@given(st.lists(st.just(0.0) | st.floats(0.001, 100), min_size=4, max_size=4).filter(any), st.integers(20, 80))
def test_the_bar_fills_the_line_and_shows_every_part_that_takes_time(seconds: list[float], width: int) -> None:
    bar = time_parts(Breakdown(*seconds), width)[1].plain
    assert len(bar) == width
    assert {block for block, part in zip("█▓▒░", seconds, strict=True) if part > 0} == set(bar)


@pytest.mark.parametrize("size", [(47, 6), (47, 13), (68, 14), (68, 30), (30, 8)])
def test_the_chart_fills_its_space_exactly(size: tuple[int, int]) -> None:
    for glyphs in (UNICODE, ASCII):
        rows = scale_lines(POINTS, 64, size, glyphs)
        assert len(rows) == size[1]
        assert {sum(len(text) for text, _ in row) for row in rows} == {size[0]}


def test_the_chart_distinguishes_published_and_estimated_without_colour() -> None:
    plot = "".join(drawn()[1:-2])
    assert (plot.count("●"), plot.count("○")) == (8, 1)
    assert "░" in plot
    assert "● published ○ estimated ░ band" in drawn()[0]


def test_the_chosen_scale_is_always_named() -> None:
    for chosen in (16, 64, 96, 4096):
        points = over_scale(CATALOG, replace(NEMOTRON, scale=chosen))
        assert f"[{chosen}]" in drawn(chosen, points=points)[-2]


def test_the_scale_axis_is_logarithmic() -> None:
    axis = ScaleAxis(POINTS, 60)
    first, middle, last = (axis.column(gpus) for gpus in (16, 128, 1024))
    assert abs((middle - first) - (last - middle)) <= 1
    assert 0 <= first < axis.column(4096) < 60


def test_mfu_is_shown_as_figures_without_room_for_a_second_plot() -> None:
    low, high = drawn(size=(60, 10)), drawn(size=(60, 16))
    assert low[-1].startswith("MFU %")
    assert "58.5" in low[-1]
    assert any(row.startswith("MFU, %") for row in high)
    assert high[-1].startswith("GPUs")


def test_a_chart_without_points_shows_a_text() -> None:
    assert drawn(points=())[0].startswith("no step time estimate at any scale")


def test_all_parts_fit_into_36_lines() -> None:
    assert preview_layout(32, 14, 5, True, 4) == PreviewLayout(True, True, 8, True, False)


def test_long_remarks_scroll_and_leave_the_chart_its_minimum_height() -> None:
    assert preview_layout(32, 17, 5, True, 12) == PreviewLayout(True, True, LEAST_HEIGHT, True, True)


def test_the_blank_line_is_dropped_before_the_chart() -> None:
    assert preview_layout(32, 18, 5, True, 4) == PreviewLayout(True, True, LEAST_HEIGHT, True, True, blank=0)


def test_in_a_low_preview_first_the_chart_is_hidden_and_then_the_breakdown() -> None:
    assert preview_layout(26, 14, 5, True, 6) == PreviewLayout(True, True, 0, True, False)
    assert preview_layout(20, 14, 5, True, 6) == PreviewLayout(True, False, 0, True, False)


def test_empty_remarks_use_no_line() -> None:
    assert preview_layout(32, 14, 5, True, 0) == PreviewLayout(True, True, 12, False, False)


@given(st.integers(0, 60), st.integers(1, 20), st.sampled_from([0, 4, 5]), st.booleans(), st.integers(0, 30))
def test_the_layout_never_exceeds_the_height(
    height: int, figures_: int, breakdown: int, chart: bool, remarks_: int
) -> None:
    layout = preview_layout(height, figures_, breakdown, chart, remarks_)
    used = figures_ + breakdown * layout.breakdown + (layout.chart and layout.chart + layout.blank)
    assert used <= max(height, figures_)
    if layout.chart or layout.breakdown:
        assert height - used >= min(remarks_, 3), "remarks have priority"
