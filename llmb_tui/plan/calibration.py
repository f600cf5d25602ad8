"""`measured_here`: what a cluster's own runs say about a plan, beside what is published and never mixed with it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from llmb_tui.language.quantities import percent
from llmb_tui.language.text import plural
from llmb_tui.plan.bands import CLUSTER, quadrature
from llmb_tui.plan.plan import Estimate, Plan
from llmb_tui.plan.selection import ProcedureId

_ONE_RUN = CLUSTER
"""Half-width in per cent around a single run: it may have met a slow node, as one published row may."""
_AT_LEAST = 2.0
"""Half-width around several runs: what a repeated run differs by although nothing was changed."""
_OTHER_MODEL = 6.0
"""What a ratio may shift by on another model, and again in another precision: what a cluster is slow in, such as its
network, takes another share of the step. The factors by which a GPU type differs from a model of it lie 5 % apart for
one model, and 9 % for several, in what is published."""
_LOWEST = 0.1
"""A band never reaches below this share of the step time."""


@dataclass(frozen=True, slots=True)
class OwnResult:
    """A finished benchmark on this cluster: what ran, and its step time by the recipe's rule."""

    run_id: str
    plan: Plan
    step_time_s: float
    ended_at: float
    """Unix time at which its log last grew."""
    procedure: ProcedureId
    procedure_title: str
    """Title of the procedure that started it, such as `direct procedure`."""


@dataclass(frozen=True, slots=True)
class MeasuredHere:
    """The step time that this cluster's own runs let one expect, with its band in seconds."""

    step_time_s: float
    low_s: float
    high_s: float
    basis: str
    """Which runs, in words."""
    runs: tuple[str, ...]
    """Their ids, newest first."""
    same: bool
    """True where this very configuration ran; else the estimate was scaled by how others did."""

    @property
    def label(self) -> str:
        """What the number is: only what ran was measured."""
        return "measured here" if self.same else "by runs here"


def measured_here(plan: Plan, results: Sequence[OwnResult]) -> MeasuredHere | None:
    """What to expect of a plan on the cluster of these results; None where they say nothing about it.

    Runs of the same configuration answer with their mean. Else the plan's estimate is multiplied by how much longer
    than expected other runs took on the same GPU type.
    """
    newest = sorted(results, key=lambda result: result.ended_at, reverse=True)
    same = [result for result in newest if _configuration(result.plan) == _configuration(plan)]
    return _repeated(same) if same else _scaled(plan, newest)


def _repeated(same: Sequence[OwnResult]) -> MeasuredHere:
    """The mean. Its band holds every run that was measured, down to `_LOWEST`."""
    mean = fmean(result.step_time_s for result in same)
    farthest = max(abs(result.step_time_s / mean - 1) for result in same) * 100
    half = (_ONE_RUN if len(same) == 1 else max(_AT_LEAST, farthest)) / 100
    basis = f"{plural(len(same), 'run')} of this configuration on this cluster, {_procedures(same)}"
    low = max(_LOWEST, 1 - half)
    return MeasuredHere(mean, mean * low, mean * (1 + half), basis, _ids(same), same=True)


def _scaled(plan: Plan, newest: Sequence[OwnResult]) -> MeasuredHere | None:
    """The estimate, times the weighted geometric mean of measured / expected.

    The weight of a run is one over the square of its own half-width, so those of the same model and precision, whose
    expectation was published, weigh most. Each side of the estimate's band keeps all of its width but the part for
    another cluster, since this one is now known; in quadrature with it stand the runs' own half-width, which does not
    shrink with their number because they share what they miss, and how far their ratios lie apart.
    """
    estimate, near = plan.estimate, list(_compared(plan, newest))
    if estimate is None or not near:
        return None
    weights = [1 / half**2 for _, _, half in near]
    mean = _weighted([ratio for _, ratio, _ in near], weights)
    apart = 100 * math.sqrt(_weighted([(ratio - mean) ** 2 for _, ratio, _ in near], weights))
    runs_half = math.sqrt(_weighted([half**2 for _, _, half in near], weights))
    step, runs = estimate.step_time_s * math.exp(mean), [result for result, _, _ in near]
    below, above = (quadrature(_without_cluster(side), runs_half, apart) / 100 for side in _sides_pct(estimate))
    low = max(_LOWEST, 1 - below)
    return MeasuredHere(step, step * low, step * (1 + above), _ratio_words(plan, runs, mean), _ids(runs), same=False)


def _compared(plan: Plan, newest: Sequence[OwnResult]) -> Iterator[tuple[OwnResult, float, float]]:
    """Runs on the same GPU type, the logarithm of measured / expected, and its half-width in per cent."""
    selection = plan.selection
    for result in newest:
        ran, expected = result.plan.selection, result.plan.estimate
        if ran.gpu != selection.gpu or expected is None:
            continue
        shifts = [
            _OTHER_MODEL * ((ran.workload, ran.size) != (selection.workload, selection.size)),
            _OTHER_MODEL * (_precision(result.plan) != _precision(plan)),
        ]
        doubt = _without_cluster(max(_sides_pct(expected)))
        yield result, math.log(result.step_time_s / expected.step_time_s), quadrature(_ONE_RUN, doubt, *shifts)


def _weighted(values: Sequence[float], weights: Sequence[float]) -> float:
    return sum(value * weight for value, weight in zip(values, weights, strict=True)) / sum(weights)


def _sides_pct(estimate: Estimate) -> tuple[float, float]:
    """How far the band reaches below and above, in per cent of the step time."""
    step = estimate.step_time_s
    return 100 * (step - estimate.low_s) / step, 100 * (estimate.high_s - step) / step


def _without_cluster(half_pct: float) -> float:
    return math.sqrt(max(0.0, half_pct**2 - CLUSTER**2))


def _configuration(plan: Plan) -> tuple[object, ...]:
    selection = plan.selection
    names = (selection.workload, selection.release, selection.size, selection.gpu, selection.dtype, selection.scale)
    return (*names, plan.parallelism)


def _precision(plan: Plan) -> tuple[object, ...]:
    return plan.selection.dtype, plan.precision_variant


def _ratio_words(plan: Plan, runs: Sequence[OwnResult], mean: float) -> str:
    longer = 100 * (math.exp(mean) - 1)
    took = f"{percent(abs(longer))} {'longer' if longer > 0 else 'less'} than expected"
    counted = f"{plural(len(runs), 'run')} of other configurations on {plan.selection.gpu.upper()} of this cluster"
    return f"the estimate, and {counted} that took {took}, {_procedures(runs)}"


def _procedures(runs: Sequence[OwnResult]) -> str:
    """By which procedure they ran: they do not always set the same."""
    titles = {result.procedure: result.procedure_title for result in runs}
    return " and ".join(titles[name] for name in sorted(titles))


def _ids(runs: Sequence[OwnResult]) -> tuple[str, ...]:
    return tuple(result.run_id for result in runs)
