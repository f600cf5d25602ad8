"""Comparison of runs: noise of repeats, and differences within and beyond it. Expected values are calculated here."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from llmb_tui.analysis.compare import compare, group
from llmb_tui.analysis.result import RunResult
from llmb_tui.language.quantities import two_digits
from llmb_tui.plan.selection import Selection
from tests.kit.results import make_result, profiled
from tests.kit.runs import CREATED_AT, NEMOTRON

BF16 = replace(NEMOTRON, dtype="bf16")


def repeats(name: str, *seconds: float, selection: Selection = NEMOTRON, **changes: Any) -> list[RunResult]:
    return [
        make_result(f"{name}{index}", step_s, selection, submitted_at=CREATED_AT + index, **changes)
        for index, step_s in enumerate(seconds)
    ]


def test_the_noise_of_repeats() -> None:
    """1.98, 2.00, 1.99: deviation 0.01 s, and t = 4.303 for two degrees of freedom."""
    (found,) = group(repeats("a", 1.98, 2.00, 1.99))
    assert math.isclose(found.mean_s, 1.99)
    assert found.noise_pct == pytest.approx(100 * 0.01 / 1.99)
    assert found.half_width_pct == pytest.approx(100 * 4.303 * 0.01 / math.sqrt(3) / 1.99)
    assert found.of_published_pct == pytest.approx(100 * 1.98 / 1.99)
    assert found.within_run_pct is None
    assert found.noise_words == "mean 1.99 s of 3 runs, deviation 0.5 %, 95 % interval of the mean ± 1.2 %"


def test_a_change_of_a_factor_two_is_shown_in_whole_per_cent() -> None:
    """0.5 and 9.5 s: deviation 6.364 s, mean 5; t = 12.706 for one degree of freedom. Welch: √36.25 × 12.706 / 5."""
    (contrast,) = compare(repeats("slow", 4.9, 5.0, 5.1), repeats("fast", 1.98, 1.99, 2.00)).contrasts
    assert contrast.words.startswith("151 % ± 13 % slower (by the noise between repeats")
    (noisy,) = compare(repeats("slow", 0.5, 9.5), repeats("fast", 1.0, 9.0)).contrasts
    assert noisy.words.startswith("within the noise: 0 % ± 1,530 % (")
    assert "deviation 127 %, 95 % interval of the mean ± 1,144 %" in noisy.other.noise_words
    assert [two_digits(value) for value in (0.0123, 4.56, 99.49, 99.5, 100.0, -250.0, 12345.0)] == [
        "0.012", "4.6", "99", "100", "100", "-250", "12,345",
    ]  # fmt: skip
    assert [two_digits(value, "+") for value in (0.04, 250.0, -99.9)] == ["+0.04", "+250", "-100"]


def test_welch_between_repeats() -> None:
    """Variances 1e-4 / 3 and 2e-4 / 2, Welch–Satterthwaite: 1.6 degrees of freedom, so t of 1, 12.706."""
    (contrast,) = compare([*repeats("a", 1.98, 2.00, 1.99), *repeats("b", 2.66, 2.68, selection=BF16)]).contrasts
    assert contrast.difference_pct == pytest.approx(100 * (2.67 / 1.99 - 1))
    half = 12.706 * math.sqrt(1e-4 / 3 + 2e-4 / 2) / 1.99
    assert contrast.half_width_pct == pytest.approx(100 * half)
    assert (contrast.basis, contrast.outcome) == ("repeats", "slower")


def test_the_base_of_a_comparison_comes_first() -> None:
    """`compare A B` is read from A to B, and so is `compare B --against A`."""
    (old,), (new,) = repeats("old", 1.98), repeats("new", 2.2)
    for comparison in (compare([old, new]), compare([new], against=[old])):
        assert [run.id for run in comparison.runs] == ["old0", "new0"]
        assert [contrast.other.runs[0].id for contrast in comparison.contrasts] == ["new0"]


def test_repeats_without_a_submission_time_are_ordered_by_their_logs() -> None:
    late, early = (
        make_result(name, 2.0, submitted_at=None, log_grew_at=at) for name, at in (("late", 9.0), ("early", 5.0))
    )
    (found,) = group([late, early])
    assert [run.id for run in found.runs] == ["early", "late"]


def test_a_difference_inside_the_noise_is_called_that() -> None:
    comparison = compare(repeats("new", 1.99, 2.02, 1.98), against=repeats("old", 1.97, 2.00, 2.01))
    (contrast,) = comparison.contrasts
    assert contrast.difference_pct == pytest.approx(100 * (5.99 / 5.98 - 1))
    assert contrast.outcome == "within the noise"
    assert contrast.words.startswith("within the noise: +0.17 % ± 2.")
    assert comparison.comparability.purpose == "changes"
    assert [name.partition(" (")[2] for name in comparison.names] == ["old0, old1, old2)", "new0, new1, new2)"]


def test_one_run_against_repeats_uses_their_noise_for_both() -> None:
    (contrast,) = compare(repeats("new", 2.05), against=repeats("old", 1.98, 2.00, 1.99)).contrasts
    deviation, ratio = 0.01 / 1.99, 2.05 / 1.99
    assert contrast.half_width_pct == pytest.approx(100 * 4.303 * deviation * math.hypot(1 / math.sqrt(3), ratio))
    assert (contrast.basis, contrast.outcome) == ("one side's repeats", "slower")


def test_single_runs_state_that_the_noise_between_runs_is_unknown() -> None:
    """45 steps after the warm-up, by turns 1.98 and 2.00 s, and the last one counts: t of 30 and more is 2.042."""
    steps = [1.98 + 0.02 * (index % 2) for index in range(50)]
    old, new = make_result("old", steps), make_result("new", [s + 0.01 for s in steps])
    (contrast,) = compare([new], against=[old]).contrasts
    spread = old.steady
    assert spread is not None
    assert spread.count == 45
    assert contrast.base.within_run_pct == pytest.approx(100 * 2.042 * (spread.stdev or 0) / 2.00)
    assert contrast.outcome == "within the noise"
    assert "the noise between runs is unknown: repeat them" in contrast.words


def test_two_runs_of_one_configuration_are_compared() -> None:
    runs = repeats("r", 1.98, 2.05)
    (contrast,) = compare(runs).contrasts
    assert [contrast.base.runs[0].id, contrast.other.runs[0].id] == ["r0", "r1"]
    assert contrast.basis == "single runs"
    (group_of_both,) = compare(runs, purpose="repeats").groups
    assert len(group_of_both.runs) == 2


def test_no_interval_is_narrower_than_the_digits_of_a_log() -> None:
    (contrast,) = compare(repeats("new", 1.981, 1.981), against=repeats("old", 1.98, 1.98)).contrasts
    assert contrast.half_width_pct == contrast.base.half_width_pct == 0.1
    assert contrast.outcome == "within the noise"


def test_scales_are_compared_by_the_time_of_a_gpu_for_a_token() -> None:
    runs = [make_result("small", 2.0), make_result("large", 2.2, replace(NEMOTRON, scale=256))]
    comparison = compare(runs)
    assert comparison.comparability.purpose == "scales"
    assert comparison.contrasts[0].difference_pct == pytest.approx(10)
    assert comparison.names == ("64 GPUs", "256 GPUs")


def test_runs_that_are_not_alike_have_no_difference() -> None:
    comparison = compare(repeats("a", 1.98) + repeats("b", 2.9, selection=replace(BF16, scale=128)), purpose="scales")
    assert not comparison.comparability.comparable
    assert comparison.contrasts == ()


def test_only_runs_of_the_same_precision_are_compared() -> None:
    """Two scales in two precisions are two curves."""
    runs = [
        make_result(f"{dtype}{scale}", seconds, replace(NEMOTRON, dtype=dtype, scale=scale))
        for dtype, seconds in (("fp8", 2.0), ("bf16", 2.7))
        for scale in (64, 256)
    ]
    comparison = compare(runs)
    pairs = [(contrast.base.runs[0].id, contrast.other.runs[0].id) for contrast in comparison.contrasts]
    assert pairs == [("fp864", "fp8256"), ("bf1664", "bf16256")]
    assert comparison.comparability.comparable
    words = {remark.aspect: remark.words for remark in comparison.comparability.warnings}
    assert words["precision"].endswith("Each is compared with its own kind.")
    assert not compare(runs, purpose="scales").comparability.comparable
    assert not compare([runs[0], runs[3]]).comparability.comparable


def test_other_rules_are_compared_by_medians() -> None:
    old = replace(NEMOTRON, size="340b", scale=256)
    new = replace(old, workload="nemotron4-340b", release="25.12")
    comparison = compare([make_result("a", 3.0, old), make_result("b", 3.3, new)], purpose="releases")
    assert comparison.measure == "median"
    assert [group.mean_s for group in comparison.groups] == [3.0, 3.3]


def test_two_sides_are_paired_by_configuration() -> None:
    old = repeats("old", 1.98, 1.99) + repeats("oldb", 2.67, selection=BF16)
    new = repeats("newb", 2.70, selection=BF16) + repeats("new", 2.00, 2.01)
    alone = repeats("alone", 1.98, selection=replace(NEMOTRON, scale=16))
    comparison = compare([*new, *alone], against=old)
    pairs = [(contrast.base.runs[0].id, contrast.other.runs[0].id) for contrast in comparison.contrasts]
    assert pairs == [("oldb0", "newb0"), ("old0", "new0")]
    assert len(comparison.unpaired) == 1
    assert "16 × H100" in comparison.unpaired[0]


def test_a_single_pair_may_differ_in_comparable_aspects() -> None:
    fast, slow = repeats("f", 1.98), repeats("b", 2.67, selection=BF16)
    assert compare(slow, against=fast).comparability.purpose == "precisions"
    assert not compare(slow, against=fast, purpose="changes").comparability.comparable


def test_a_run_without_a_usable_result_is_left_out_with_the_reason() -> None:
    failed = make_result("failed", stage="failed")
    active = make_result("going", stage="measuring")
    comparison = compare([make_result("good"), failed, active, make_result("slow", selection=profiled())])
    assert dict(comparison.left_out)["failed"] == "state failed"
    assert dict(comparison.left_out)["going"] == "last known state measuring"
    assert "profiled" in dict(comparison.left_out)["slow"]
    assert [run.id for group in comparison.groups for run in group.runs] == ["good"]
