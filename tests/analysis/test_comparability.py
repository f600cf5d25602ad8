"""Comparability of runs: which pairs may be compared, in which respects, and the messages about all others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from llmb_tui.analysis.comparability import PURPOSES, Aspect, Purpose, assess_comparability
from llmb_tui.analysis.result import RunResult
from llmb_tui.plan.selection import Overrides
from tests.kit.results import make_result, profiled, with_changes
from tests.kit.runs import NEMOTRON

BASE = make_result("base")
BIG = replace(NEMOTRON, size="340b", scale=256)
BIG_AGAIN = replace(BIG, workload="nemotron4-340b", release="25.12")


def other(**changes: Any) -> RunResult:
    return make_result("other", selection=replace(NEMOTRON, **changes))


@pytest.mark.parametrize(
    ("run", "refused"),
    [
        (other(dtype="bf16"), {"precision"}),
        (other(scale=128), {"GPUs", "batch"}),
        (other(overrides=Overrides(gbs=128)), {"batch"}),
        (other(overrides=Overrides(seq_len=2048)), {"sequence length"}),
        (other(overrides=Overrides(tp=4)), {"layout"}),
        (other(overrides=Overrides(layers=16)), {"layers"}),
        (make_result("other", selection=profiled()), {"options"}),
        (make_result("other", selection=replace(NEMOTRON, release="25.04", size="340b", scale=256)), {"model", "GPUs"}),
    ],
)
def test_repeats_are_alike_in_everything(run: RunResult, refused: set[Aspect]) -> None:
    assert assess_comparability([BASE, make_result("again")], "repeats").comparable
    assert refused <= {remark.aspect for remark in assess_comparability([BASE, run], "repeats").refusals}


@pytest.mark.parametrize(
    ("run", "aspect"),
    [
        (with_changes(BASE, id="other", procedure="upstream"), "procedure"),
        (with_changes(BASE, id="other", cluster="selene"), "cluster"),
        (with_changes(BASE, id="other", steps_total=100), "steps"),
        (with_changes(BASE, id="other", plan=replace(BASE.plan, container="nvidia/nemo:25.04")), "container"),
        (with_changes(BASE, id="other", plan=replace(BASE.plan, precision_variant="current")), "variant"),
    ],
)
def test_an_allowed_difference_is_a_warning(run: RunResult, aspect: Aspect) -> None:
    result = assess_comparability([BASE, run], "repeats")
    assert result.comparable
    assert [remark.aspect for remark in result.warnings] == [aspect]
    assert "base" in result.warnings[0].words
    assert "other" in result.warnings[0].words


@pytest.mark.parametrize(
    ("run", "purpose"),
    [
        (with_changes(BASE, id="other"), "repeats"),
        (with_changes(BASE, id="other", plan=replace(BASE.plan, container="nvidia/nemo:25.04")), "changes"),
        (with_changes(BASE, id="other", cluster="selene"), "clusters"),
        (other(scale=128), "scales"),
        (other(dtype="bf16"), "precisions"),
        (other(overrides=Overrides(tp=4)), "layouts"),
    ],
)
def test_the_purpose_follows_from_the_differences(run: RunResult, purpose: Purpose) -> None:
    result = assess_comparability([BASE, run])
    assert (result.purpose, result.refusals, result.warnings) == (purpose, (), ())
    assert assess_comparability([BASE, run], purpose) == result


def test_release_against_release_names_the_other_rule() -> None:
    """340b on 256 GPUs: the last step against the mean of iterations 35–44, and another way of scaling fp8."""
    result = assess_comparability([make_result("a", selection=BIG), make_result("b", selection=BIG_AGAIN)], "releases")
    assert {"rule", "variant"} <= {remark.aspect for remark in result.warnings}
    assert "model" not in {remark.aspect for remark in result.refusals}
    words = next(remark.words for remark in result.warnings if remark.aspect == "rule")
    assert words.startswith("The recipes count different steps: last step (a), mean of iterations 35–44 (b).")


def test_a_refusal_names_the_runs_or_how_many() -> None:
    runs = [BASE, *(other(dtype="bf16") for _ in range(12))]
    result = assess_comparability(runs, "repeats")
    assert result.refusals[0].words == "The precisions differ: fp8 (base), bf16 (12 runs)."


def test_two_batch_sizes_at_one_scale_are_refused() -> None:
    runs = [BASE, other(overrides=Overrides(gbs=128)), make_result("more", selection=replace(NEMOTRON, scale=128))]
    assert [remark.aspect for remark in assess_comparability(runs, "scales").refusals] == ["batch"]
    weak = [make_result("weak", selection=replace(NEMOTRON, scale=scale)) for scale in (16, 64, 2048)]
    assert assess_comparability(weak, "scales").warnings == ()


def test_every_purpose_accepts_repeats() -> None:
    for purpose in PURPOSES:
        assert assess_comparability([BASE, make_result("again")], purpose).comparable
