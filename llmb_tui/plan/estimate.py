"""`expect`: the step time that published results promise for a draft; `estimate_of`: what follows from it.

The methods, most trusted first: the published row; the same configuration in another release; log-log between its
published scales, and up to twice beyond; from then on, and for everything else, the model of the hardware, anchored on
what was measured for the most similar configuration (`anchored`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from llmb_tui.catalog.rows import ResultRow
from llmb_tui.plan import bands, throughput
from llmb_tui.plan.anchored import anchored
from llmb_tui.plan.curves import Curve, curve_key, is_own
from llmb_tui.plan.draft import Draft
from llmb_tui.plan.evidence import Evidence
from llmb_tui.plan.flops import flops_per_sample
from llmb_tui.plan.physics import Terms, terms
from llmb_tui.plan.plan import Breakdown, Estimate, Method

# Weak scaling slows down with the number of GPUs, seldom by more than this for each doubling.
_STEEPEST = 1.03
_OTHER_SCALES = "the same layout on other scales"


@dataclass(frozen=True, slots=True)
class Expectation:
    """A step time in seconds, half its band in per cent, and what both rest on."""

    step_time_s: float
    half_width_pct: float
    method: Method
    anchor: str
    basis: str
    published: ResultRow | None = None
    """The row itself, where the recipe's own tables have this configuration."""
    breakdown: Breakdown | None = None
    new_layout: bool = False
    """True where nobody has measured the layout."""


def expect(draft: Draft, evidence: Evidence) -> Expectation | str:
    """What to expect, or why nothing can be said."""
    asked = draft.selection
    if not draft.divides:
        return "No estimate: these numbers do not divide, so nothing can run."
    if asked.strong_scaling != draft.base.strong and "gbs" not in draft.own:
        return "No estimate: the recipe gives no global batch for this kind of scaling."
    if asked.dtype not in draft.gpu.peak_tflops:
        return f"No estimate: no peak of {asked.gpu.upper()} in {asked.dtype} is known."
    machine = evidence.machine(asked.gpu, draft.gpu, asked.dtype)
    work = terms(draft.model, machine, asked.scale, draft.parallelism) if machine else None
    key = curve_key(draft.model, asked.gpu, asked.dtype, asked.scale, draft.parallelism)
    found = _on_curves(draft, evidence, evidence.curves.of(key, draft.recipe)) or _modelled(draft, evidence, work)
    if found is None:
        return _why_none(draft, evidence)
    if evidence.model and work:
        return replace(found, breakdown=evidence.model.breakdown(work, found.step_time_s))
    return found


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
        basis=expected.basis,
        breakdown=expected.breakdown,
    )


def _on_curves(draft: Draft, evidence: Evidence, found: list[Curve]) -> Expectation | None:
    """The most trusted method that one of the curves allows."""
    for curve in found:
        if draft.selection.scale in curve.points:
            return _exact(draft, curve)
    if draft.scaling == "proxy":
        return None  # a proxy is made for its scale: its layers are no measure of another one
    between = (_between(draft, curve) for curve in found)
    beyond = (_beyond(draft, evidence, curve) for curve in found)
    return next((expectation for expectation in (*between, *beyond) if expectation), None)


def _exact(draft: Draft, curve: Curve) -> Expectation:
    scale = draft.selection.scale
    result = curve.points[scale]
    hardware = f"{scale} x {result.gpu.upper()}"
    anchor = f"{curve.name} {result.size} {result.dtype}, {hardware}, {result.step_time_s:g} s"
    if is_own(curve, draft.recipe):
        return Expectation(result.step_time_s, _half(draft, curve), "published", anchor, "published", result)
    return Expectation(
        result.step_time_s, _half(draft, curve), "other_release", anchor, "published for another release"
    )


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
    return Expectation(step, _half(draft, curve, bands.BETWEEN), "interpolated", anchor, _OTHER_SCALES)


def _beyond(draft: Draft, evidence: Evidence, curve: Curve) -> Expectation | None:
    """From the nearest end of the curve: one doubling with the slope of its two nearest points, then by the model."""
    scale, gpus = draft.selection.scale, list(curve.points)
    end, inner = (gpus[-1], gpus[-2:][0]) if scale > gpus[-1] else (gpus[0], gpus[:2][-1])
    doublings = math.log2(scale / end)
    near = max(-1.0, min(doublings, 1.0))
    growth = 1.0
    anchor = f"from {_named(curve, end)} GPUs alone, {curve.name}"
    if inner != end:
        first, second = sorted((end, inner))
        growth = min(max(_growth(curve, first, second), 1.0), _STEEPEST)
        anchor = f"from {_named(curve, first)} and {_named(curve, second)} GPUs, {curve.name}"
    step = _at(curve, end) * growth**near
    if near != doublings:
        modelled = _modelled_growth(draft, evidence, end)
        if modelled is None:
            return None
        step *= modelled ** (1 - near / doublings)
    half = _half(draft, curve, bands.beyond(abs(doublings)))
    return Expectation(step, half, "extrapolated", anchor, _OTHER_SCALES)


def _modelled_growth(draft: Draft, evidence: Evidence, gpus: int) -> float | None:
    """Factor of the modelled step time from so many GPUs to the scale that is asked, with the same batch for each."""
    asked, runs = draft.selection, draft.parallelism
    machine = evidence.machine(asked.gpu, draft.gpu, asked.dtype)
    if evidence.model is None or machine is None:
        return None
    there = replace(runs, gbs=runs.gbs * gpus // asked.scale)
    times = [terms(draft.model, machine, n, at) for n, at in ((asked.scale, runs), (gpus, there))]
    return evidence.model.seconds(times[0]) / evidence.model.seconds(times[1])


def _modelled(draft: Draft, evidence: Evidence, work: Terms | None) -> Expectation | None:
    found = anchored(draft, evidence, work) if work else None
    if found is None:
        return None
    expected = Expectation(found.step_time_s, found.half_width_pct, "modelled", found.anchor, found.basis)
    return replace(expected, new_layout=found.new_layout)


def _why_none(draft: Draft, evidence: Evidence) -> str:
    asked = draft.selection
    if draft.model.experts > 1:
        return (
            "No estimate: with experts only step times of the same model on the same GPU type are compared, and in "
            "another layout only those of the same release."
        )
    if asked.gpu not in evidence.chips:
        return f"No estimate: nothing is known of {asked.gpu.upper()} beside its peak."
    return "No estimate: nothing was published that is near enough to this."


def _half(draft: Draft, curve: Curve, *steps: float) -> float:
    return bands.quadrature(bands.CLUSTER, *(() if is_own(curve, draft.recipe) else (bands.RELEASE,)), *steps)


def _growth(curve: Curve, left: int, right: int) -> float:
    """Factor of the step time for each doubling of the GPUs."""
    return math.pow(_at(curve, right) / _at(curve, left), 1 / math.log2(right / left))


def _at(curve: Curve, gpus: int) -> float:
    return curve.points[gpus].step_time_s


def _named(curve: Curve, gpus: int) -> str:
    return f"{gpus} ({_at(curve, gpus):g} s)"
