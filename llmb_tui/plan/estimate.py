"""`expect`: the step time that published results predict for a selection; `estimate_of`: the figures from it.

Methods, most trusted first: the published row; the same configuration in another release; log-log interpolation between
published scales, and extrapolation to twice or half of them; beyond that and for all else, the hardware model, anchored
on the measurements of the most similar configuration (`anchoring`).
"""

from __future__ import annotations

import math
from dataclasses import replace

from llmb_tui.language.labels import gpus_label, workload_label
from llmb_tui.language.quantities import count, plain_number
from llmb_tui.plan import bands, throughput
from llmb_tui.plan.anchoring import anchored_estimate, other_variant
from llmb_tui.plan.evidence import Evidence
from llmb_tui.plan.measurements import Curve, curve_key, is_own
from llmb_tui.plan.physics import terms
from llmb_tui.plan.plan import Estimate, Expectation
from llmb_tui.plan.resolved import ResolvedSelection
from llmb_tui.plan.throughput import flops_per_sample

# Weak scaling seldom slows down by more than this factor for each doubling of the GPUs.
_STEEPEST = 1.03
_OTHER_SCALES = "the same layout on other scales"


def expect(resolved: ResolvedSelection, evidence: Evidence) -> Expectation | str:
    """The expectation, or the reason why there is none."""
    selection = resolved.selection
    if not resolved.divides:
        return "No estimate: these numbers do not divide, so the plan cannot run."
    if selection.strong_scaling != resolved.base.strong and "gbs" not in resolved.overrides:
        return "No estimate: the recipe has no global batch size for this kind of scaling."
    if selection.dtype not in resolved.gpu.peak_tflops:
        return f"No estimate: the peak of {selection.gpu.upper()} in {selection.dtype} is unknown."
    machine = evidence.machine(selection.gpu, resolved.gpu, selection.dtype)
    work = terms(resolved.model, machine, selection.scale, resolved.parallelism) if machine else None
    key = curve_key(resolved.model, selection.gpu, selection.dtype, selection.scale, resolved.parallelism)
    of_key = evidence.curves.get(key, ())
    curves = sorted(of_key, key=lambda curve: (curve.variant != resolved.variant, not is_own(curve, resolved.recipe)))
    expectation = _on_curves(resolved, evidence, curves)
    if expectation is None and work:
        expectation = anchored_estimate(resolved, evidence, work)
    if expectation is None:
        return _why_none(resolved, evidence)
    if evidence.model and work:
        return replace(expectation, breakdown=evidence.model.breakdown(work, expectation.step_time_s))
    return expectation


def estimate_of(resolved: ResolvedSelection, expected: Expectation) -> Estimate:
    """The expected step time with its band and the figures that follow from it."""
    runs, step, half = resolved.parallelism, expected.step_time_s, expected.half_width_pct / 100
    flops = flops_per_sample(resolved.recipe.flops, resolved.model, runs.layers, runs.seq_len)
    peak = resolved.gpu.peak_tflops[resolved.selection.dtype]
    tokens = throughput.tokens_per_s(runs.gbs, runs.seq_len, step)
    tflops = throughput.tflops_per_gpu(runs.gbs, flops, step, resolved.selection.scale)
    return Estimate(
        step_time_s=step,
        low_s=step * (1 - half),
        high_s=step * (1 + half),
        method=expected.method,
        anchor=expected.anchor,
        tokens_per_s=tokens,
        mfu_pct=throughput.mfu_pct(tflops, peak),
        days_per_1t_tokens=None if resolved.scaling == "proxy" else throughput.days_per_1t_tokens(tokens),
        tflops_per_gpu=tflops,
        model_flops_per_sample=flops,
        peak_tflops=peak,
        flops_formula=resolved.recipe.flops.name,
        basis=expected.basis,
        breakdown=expected.breakdown,
        other_variant=expected.other_variant,
        vboost=expected.vboost,
        container=expected.container,
    )


def _on_curves(resolved: ResolvedSelection, evidence: Evidence, curves: list[Curve]) -> Expectation | None:
    """The expectation by the most trusted method that a curve allows."""
    for curve in curves:
        if resolved.selection.scale in curve.points:
            return _from(resolved, curve, _exact(resolved, curve))
    if resolved.scaling == "proxy":
        return None  # a reduced model belongs to one scale and does not predict others
    between = ((curve, _between(resolved, curve)) for curve in curves)
    beyond = ((curve, _beyond(resolved, evidence, curve)) for curve in curves)
    pairs = ((curve, expected) for curve, expected in (*between, *beyond) if expected)
    return next((_from(resolved, curve, expected) for curve, expected in pairs), None)


def _from(resolved: ResolvedSelection, curve: Curve, expected: Expectation) -> Expectation:
    """The expectation with the properties of its curve's runs."""
    return replace(expected, other_variant=other_variant(resolved, curve.variant), vboost=curve.recipe.always_vboost)


def _exact(resolved: ResolvedSelection, curve: Curve) -> Expectation:
    scale = resolved.selection.scale
    result = curve.points[scale]
    name = workload_label(curve.name, result.size, result.dtype)
    anchor = f"{name}, {gpus_label(scale, result.gpu)}, {plain_number(result.step_time_s)} s"
    seconds, half = result.step_time_s, _half(resolved, curve)
    if is_own(curve, resolved.recipe):
        return Expectation(seconds, half, "published", anchor, "published", result, container=result.container)
    words = "published for another release"
    return Expectation(seconds, half, "other_release", anchor, words, container=result.container)


def _between(resolved: ResolvedSelection, curve: Curve) -> Expectation | None:
    """Log-log interpolation between the two neighbours, which have the same batch per GPU."""
    scale = resolved.selection.scale
    below = [gpus for gpus in curve.points if gpus < scale]
    above = [gpus for gpus in curve.points if gpus > scale]
    if not below or not above:
        return None
    left, right = below[-1], above[0]
    step = _at(curve, left) * _growth(curve, left, right) ** math.log2(scale / left)
    anchor = f"between {_point(curve, left)} and {_point(curve, right)} GPUs, {curve.name}"
    return Expectation(step, _half(resolved, curve, bands.BETWEEN), "interpolated", anchor, _OTHER_SCALES)


def _beyond(resolved: ResolvedSelection, evidence: Evidence, curve: Curve) -> Expectation | None:
    """Extrapolation from the nearest end: one doubling with the slope of its two nearest points, then by the model."""
    scale, gpus = resolved.selection.scale, list(curve.points)
    end, inner = (gpus[-1], gpus[-2:][0]) if scale > gpus[-1] else (gpus[0], gpus[:2][-1])
    doublings = math.log2(scale / end)
    near = max(-1.0, min(doublings, 1.0))
    growth = 1.0
    anchor = f"from {_point(curve, end)} GPUs only, {curve.name}"
    if inner != end:
        first, second = sorted((end, inner))
        growth = min(max(_growth(curve, first, second), 1.0), _STEEPEST)
        anchor = f"from {_point(curve, first)} and {_point(curve, second)} GPUs, {curve.name}"
    step = _at(curve, end) * growth**near
    if near != doublings:
        modelled = _modelled_growth(resolved, evidence, end)
        if modelled is None:
            return None
        step *= modelled ** (1 - near / doublings)
    half = _half(resolved, curve, bands.beyond(abs(doublings)))
    return Expectation(step, half, "extrapolated", anchor, _OTHER_SCALES)


def _modelled_growth(resolved: ResolvedSelection, evidence: Evidence, gpus: int) -> float | None:
    """Ratio of the modelled step times at the selected scale and at `gpus`, with the same batch per GPU."""
    selection, runs = resolved.selection, resolved.parallelism
    machine = evidence.machine(selection.gpu, resolved.gpu, selection.dtype)
    if evidence.model is None or machine is None:
        return None
    rescaled = replace(runs, gbs=runs.gbs * gpus // selection.scale)
    times = [terms(resolved.model, machine, n, at) for n, at in ((selection.scale, runs), (gpus, rescaled))]
    return evidence.model.seconds(times[0]) / evidence.model.seconds(times[1])


def _why_none(resolved: ResolvedSelection, evidence: Evidence) -> str:
    selection = resolved.selection
    if resolved.model.experts > 1:
        return (
            "No estimate: for a model with experts, only step times of the same model and GPU type are used; for "
            "another layout only those of the same release."
        )
    if selection.gpu not in evidence.chips:
        return f"No estimate: only the peak of {selection.gpu.upper()} is known."
    return "No estimate: no similar configuration was published."


def _half(resolved: ResolvedSelection, curve: Curve, *steps: float) -> float:
    release = 0.0 if is_own(curve, resolved.recipe) else bands.RELEASE
    variant = 0.0 if curve.variant == resolved.variant else bands.VARIANT
    return bands.quadrature(bands.CLUSTER, release, variant, *steps)


def _growth(curve: Curve, left: int, right: int) -> float:
    """Growth factor of the step time for each doubling of the GPUs."""
    return math.pow(_at(curve, right) / _at(curve, left), 1 / math.log2(right / left))


def _at(curve: Curve, gpus: int) -> float:
    return curve.points[gpus].step_time_s


def _point(curve: Curve, gpus: int) -> str:
    return f"{count(gpus)} ({plain_number(_at(curve, gpus))} s)"
