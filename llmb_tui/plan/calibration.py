"""`measured_here`: the estimate of a plan from runs on the same cluster, separate from published results."""

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
"""Half-width around a single run, per cent: it may include a slow node."""
_AT_LEAST = 2.0
"""Half-width around several runs, per cent: the difference between repeats without a change."""
_OTHER_MODEL = 6.0
"""Possible shift of a ratio on another model, and again in another precision, per cent: a slow part of a cluster, such
as its network, has another share of the step. In published results the factors between a GPU type and its model differ
by 5 % for one architecture and by 9 % for several."""
_LOWEST = 0.1
"""Lower limit of a band, as a share of the step time."""


@dataclass(frozen=True, slots=True)
class ClusterResult:
    """A finished run on this cluster with its plan and its step time by the recipe's rule."""

    run_id: str
    plan: Plan
    step_time_s: float
    ended_at: float
    """Time of the last line of its log, Unix time."""
    procedure: ProcedureId
    procedure_title: str
    """Title of its procedure, such as `our script`."""


@dataclass(frozen=True, slots=True)
class ClusterEstimate:
    """The step time expected from this cluster's runs, with its band in seconds."""

    step_time_s: float
    low_s: float
    high_s: float
    basis: str
    """The runs in words."""
    runs: tuple[str, ...]
    """Ids of the runs, newest first."""
    same: bool
    """True if this configuration ran; else the estimate was scaled by other configurations."""

    @property
    def label(self) -> str:
        """Name of the number: `measured here` only for a configuration that ran."""
        return "measured here" if self.same else "adjusted by earlier runs"


def measured_here(plan: Plan, results: Sequence[ClusterResult]) -> ClusterEstimate | None:
    """The estimate of a plan from results on one cluster; None if no result is comparable.

    Runs of the same configuration give their mean. Otherwise the plan's estimate is multiplied by the ratio of measured
    and expected step times of other runs on the same GPU type.
    """
    newest = sorted(results, key=lambda result: result.ended_at, reverse=True)
    same = [result for result in newest if _configuration(result.plan) == _configuration(plan)]
    return _repeated(same) if same else _scaled(plan, newest)


def _repeated(same: Sequence[ClusterResult]) -> ClusterEstimate:
    """The mean of repeats. Its band contains every run, down to `_LOWEST`."""
    mean = fmean(result.step_time_s for result in same)
    farthest = max(abs(result.step_time_s / mean - 1) for result in same) * 100
    half = (_ONE_RUN if len(same) == 1 else max(_AT_LEAST, farthest)) / 100
    basis = f"{plural(len(same), 'run')} of this configuration on this cluster, {_procedures(same)}"
    low = max(_LOWEST, 1 - half)
    return ClusterEstimate(mean, mean * low, mean * (1 + half), basis, _ids(same), same=True)


def _scaled(plan: Plan, newest: Sequence[ClusterResult]) -> ClusterEstimate | None:
    """The estimate times the weighted geometric mean of measured / expected.

    The weight of a run is the inverse square of its half-width, so runs of the same model and precision with a
    published expectation weigh most. Each side of the estimate's band loses the part for another cluster, which
    is known now. The runs' half-width and the spread of their ratios are added in quadrature; the half-width does not
    shrink with the number of runs, because they share systematic errors.
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
    return ClusterEstimate(step, step * low, step * (1 + above), _ratio_words(plan, runs, mean), _ids(runs), same=False)


def _compared(plan: Plan, newest: Sequence[ClusterResult]) -> Iterator[tuple[ClusterResult, float, float]]:
    """(run, logarithm of measured / expected, its half-width in per cent) for runs on the same GPU type."""
    selection = plan.selection
    for result in newest:
        ran, expected = result.plan.selection, result.plan.estimate
        if ran.gpu != selection.gpu or expected is None:
            continue
        shifts = [
            _OTHER_MODEL * ((ran.workload, ran.size) != (selection.workload, selection.size)),
            _OTHER_MODEL * (_precision(result.plan) != _precision(plan)),
        ]
        expected_half = _without_cluster(max(_sides_pct(expected)))
        yield result, math.log(result.step_time_s / expected.step_time_s), quadrature(_ONE_RUN, expected_half, *shifts)


def _weighted(values: Sequence[float], weights: Sequence[float]) -> float:
    return sum(value * weight for value, weight in zip(values, weights, strict=True)) / sum(weights)


def _sides_pct(estimate: Estimate) -> tuple[float, float]:
    """Widths of the band below and above, per cent of the step time."""
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


def _ratio_words(plan: Plan, runs: Sequence[ClusterResult], mean: float) -> str:
    longer = 100 * (math.exp(mean) - 1)
    took = f"{percent(abs(longer))} {'longer' if longer > 0 else 'less'} than expected"
    counted = f"{plural(len(runs), 'run')} of other configurations on {plan.selection.gpu.upper()} of this cluster"
    return f"{counted} took {took}, {_procedures(runs)}"


def _procedures(runs: Sequence[ClusterResult]) -> str:
    """Procedures of the runs, which may have different settings."""
    titles = {result.procedure: result.procedure_title for result in runs}
    return " and ".join(titles[name] for name in sorted(titles))


def _ids(runs: Sequence[ClusterResult]) -> tuple[str, ...]:
    return tuple(result.run_id for result in runs)
