"""`expect`: the step time that published results promise for a draft; `estimate_of`: what follows from it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from llmb_tui.catalog.rows import ResultRow
from llmb_tui.plan import throughput
from llmb_tui.plan.curves import Curve, Curves, curve_key, hardware_key, is_own
from llmb_tui.plan.draft import Draft
from llmb_tui.plan.flops import flops_per_sample
from llmb_tui.plan.plan import Estimate, Method

# Half-widths in per cent. A release on another cluster differs by 4 % as a rule; the same configuration
# in another release by 10 % at the 90th percentile; log-log between published scales errs by 2 % at most.
_PUBLISHED = 4.0
_RELEASE = 10.0
_BETWEEN = 2.0
_BEYOND_PER_DOUBLING = 4.0
_BEYOND_AT_LEAST = 2.0
# Weak scaling slows down with the number of GPUs, seldom by more than this for each doubling.
_STEEPEST = 1.03
_REACH = 2
"""Furthest extrapolation, as a ratio of GPU counts."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """A step time in seconds, half its band in per cent, and what both rest on."""

    step_time_s: float
    half_width_pct: float
    method: Method
    anchor: str
    published: ResultRow | None = None
    """The row itself, where the recipe's own tables have this configuration."""


def expect(draft: Draft, curves: Curves) -> Expectation | str:
    """What to expect, or why nothing can be said."""
    asked = draft.selection
    if not draft.divides:
        return "No estimate: these numbers do not divide, so nothing can run."
    if asked.strong_scaling != draft.base.strong:
        return "No estimate: the recipe gives no configuration for this kind of scaling."
    if asked.dtype not in draft.gpu.peak_tflops:
        return f"No estimate: no peak of {asked.gpu.upper()} in {asked.dtype} is known."
    key = curve_key(draft.model, asked.gpu, asked.dtype, asked.scale, draft.parallelism)
    found = curves.of(key, draft.recipe)
    return _from(draft, found) or _why_none(draft, curves, found)


def estimate_of(draft: Draft, expected: Expectation) -> Estimate:
    """The expected step time with its band, and all that follows from it."""
    runs, step, half = draft.parallelism, expected.step_time_s, expected.half_width_pct / 100
    flops = flops_per_sample(draft.recipe.flops, draft.model, runs.layers, runs.seq_len)
    peak = draft.gpu.peak_tflops[draft.selection.dtype]
    tokens = throughput.tokens_per_s(runs.gbs, runs.seq_len, step)
    tflops = throughput.tflops_per_gpu(runs.gbs, flops, step, draft.selection.scale)
    return Estimate(
        step_time_s=step,
        low_s=step * (1 - half),
        high_s=step * (1 + half),
        method=expected.method,
        anchor=expected.anchor,
        tokens_per_s=tokens,
        mfu_pct=throughput.mfu_pct(tflops, peak),
        days_per_1t_tokens=None if draft.scaling == "proxy" else throughput.days_per_1t_tokens(tokens),
        tflops_per_gpu=tflops,
        model_flops_per_sample=flops,
        peak_tflops=peak,
        flops_formula=draft.recipe.flops.name,
    )


def _from(draft: Draft, found: list[Curve]) -> Expectation | None:
    """The most trusted method that one of the curves allows."""
    for curve in found:
        if draft.selection.scale in curve.points:
            return _exact(draft, curve)
    if draft.scaling == "proxy":
        return None
    expectations = (method(draft, curve) for method in (_between, _beyond) for curve in found)
    return next((expectation for expectation in expectations if expectation), None)


def _exact(draft: Draft, curve: Curve) -> Expectation:
    scale = draft.selection.scale
    result = curve.points[scale]
    hardware = f"{scale} x {result.gpu.upper()}"
    anchor = f"{curve.name} {result.size} {result.dtype}, {hardware}, {result.step_time_s:g} s"
    if is_own(curve, draft.recipe):
        return Expectation(result.step_time_s, _half(draft, curve), "published", anchor, result)
    return Expectation(result.step_time_s, _half(draft, curve), "other_release", anchor)


def _between(draft: Draft, curve: Curve) -> Expectation | None:
    """Log-log between the two neighbours. The batch for each GPU is the same, so the step times compare as they are."""
    scale = draft.selection.scale
    below = [gpus for gpus in curve.points if gpus < scale]
    above = [gpus for gpus in curve.points if gpus > scale]
    if not below or not above:
        return None
    left, right = below[-1], above[0]
    step = _at(curve, left) * _growth(curve, left, right) ** math.log2(scale / left)
    anchor = f"between {_named(curve, left)} and {_named(curve, right)} GPUs, {curve.name}"
    return Expectation(step, _half(draft, curve, _BETWEEN), "interpolated", anchor)


def _beyond(draft: Draft, curve: Curve) -> Expectation | None:
    """From the nearest end of the curve, with the slope of its two nearest points."""
    scale, gpus = draft.selection.scale, list(curve.points)
    near = [gpus[-1], gpus[-2:][0]] if scale > gpus[-1] else [gpus[0], gpus[:2][-1]]
    end, inner = near
    if max(scale, end) > _REACH * min(scale, end):
        return None
    doublings = math.log2(scale / end)
    growth = 1.0
    anchor = f"from {_named(curve, end)} GPUs alone, {curve.name}"
    if inner != end:
        growth = min(max(_growth(curve, *sorted(near)), 1.0), _STEEPEST)
        first, second = sorted(near)
        anchor = f"from {_named(curve, first)} and {_named(curve, second)} GPUs, {curve.name}"
    band = max(_BEYOND_AT_LEAST, _BEYOND_PER_DOUBLING * abs(doublings))
    return Expectation(_at(curve, end) * growth**doublings, _half(draft, curve, band), "extrapolated", anchor)


def _why_none(draft: Draft, curves: Curves, found: list[Curve]) -> str:
    asked = draft.selection
    if draft.scaling == "proxy":
        return "No estimate: with fewer layers than the model only a published configuration can be compared."
    if found:
        ends = [gpus for curve in found for gpus in curve.points]
        return (
            f"No estimate: results of this layout and batch are published from {min(ends)} to {max(ends)} GPUs, "
            f"and are not stretched to more than twice or less than half of that."
        )
    if hardware_key(draft.model, asked.gpu, asked.dtype) in curves.measured:
        return "No estimate: no result is published for this layout and batch for each GPU."
    return f"No estimate: no result of this model is published on {asked.gpu.upper()} in {asked.dtype}."


def _half(draft: Draft, curve: Curve, *steps: float) -> float:
    """Half the band in per cent: independent steps add up in quadrature."""
    return math.hypot(_PUBLISHED, *(() if is_own(curve, draft.recipe) else (_RELEASE,)), *steps)


def _growth(curve: Curve, left: int, right: int) -> float:
    """Factor of the step time for each doubling of the GPUs."""
    return math.pow(_at(curve, right) / _at(curve, left), 1 / math.log2(right / left))


def _at(curve: Curve, gpus: int) -> float:
    return curve.points[gpus].step_time_s


def _named(curve: Curve, gpus: int) -> str:
    return f"{gpus} ({_at(curve, gpus):g} s)"
