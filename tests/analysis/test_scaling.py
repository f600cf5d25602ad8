"""Scaling curves: efficiency against the smallest scale, next to the efficiency of the published rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llmb_tui.analysis.compare import why_left_out
from llmb_tui.analysis.scaling import scaling_curves
from tests.kit.results import make_result
from tests.kit.runs import NEMOTRON


def test_weak_scaling_next_to_the_published_rows() -> None:
    """Published for nemotron4 15b fp8: 1.98 s on 16 and 64 GPUs, 2.03 s on 1,024."""
    times = {1024: 2.2, 16: 2.0, 64: 2.05}
    runs = [make_result(f"r{gpus}", s, replace(NEMOTRON, scale=gpus)) for gpus, s in times.items()]
    (curve,) = scaling_curves(runs)
    assert curve.scaling == "weak"
    assert [point.gpus for point in curve.points] == [16, 64, 1024]
    assert [point.efficiency_pct for point in curve.points] == pytest.approx([100, 200 / 2.05, 200 / 2.2])
    assert [point.published_efficiency_pct for point in curve.points] == pytest.approx([100, 100, 198 / 2.03])
    assert curve.points[0].tokens_per_s == pytest.approx(64 * 4096 / 2.0)


def test_strong_scaling_has_the_batch_of_every_scale() -> None:
    """Twice the GPUs for the same batch in 60 % of the time: 0.5 / 0.6 of the throughput of a GPU."""
    base = replace(NEMOTRON, workload="nemotron4-340b", release="25.12", size="340b", gpu="b200", strong_scaling=True)
    runs = [make_result(f"r{gpus}", s, replace(base, scale=gpus)) for gpus, s in ((256, 10.0), (512, 6.0))]
    (curve,) = scaling_curves(runs)
    assert curve.scaling == "strong"
    assert len({point.group.configuration.layout.gbs for point in curve.points}) == 1
    assert curve.points[1].efficiency_pct == pytest.approx(50 / 0.6)


def test_the_interval_of_an_efficiency() -> None:
    """2.2 s ± 0.1 % of 2.0 s: 90.9 % ± 0.1 % × 0.909²."""
    runs = [make_result(f"r{gpus}", s, replace(NEMOTRON, scale=gpus)) for gpus, s in ((16, 2.0), (64, 2.2))]
    (curve,) = scaling_curves(runs)
    assert curve.points[1].efficiency_half_width_pct == pytest.approx(0.1 * (2.0 / 2.2) ** 2)


def test_one_scale_makes_no_curve_and_two_precisions_make_two() -> None:
    both = [replace(NEMOTRON, dtype=dtype, scale=gpus) for dtype in ("bf16", "fp8") for gpus in (16, 64)]
    assert scaling_curves([make_result("a"), make_result("b")]) == ()
    assert len(scaling_curves([make_result(f"r{index}", 2.0, one) for index, one in enumerate(both)])) == 2


@pytest.mark.parametrize("absurd", [1e300, 1e-300])
def test_an_impossible_step_time_is_on_no_curve(absurd: float) -> None:
    times = {16: absurd, 32: 2.0, 64: 2.05, 128: absurd}
    runs = [make_result(f"r{gpus}", s, replace(NEMOTRON, scale=gpus)) for gpus, s in times.items()]
    (curve,) = scaling_curves(runs)
    assert [point.gpus for point in curve.points] == [32, 64]
    assert why_left_out(runs[0]) == f"its step time, {absurd:g} s, is not a possible step time"
