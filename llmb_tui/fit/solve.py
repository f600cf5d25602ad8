"""Fit of the step model's coefficients to the published step times.

The fit is bounded least squares on the logarithms of the step times, so that a relative error has the same weight
everywhere. Each coefficient has a prior: terms that the rows cannot separate (the traffic terms, latency) stay near
theirs.

Reasons for the choices: the error of a row is assumed to be 5 %, which is about the difference of two releases of one
recipe. The priors contain known facts about kernels: they reach half to four fifths of the peak, and most traffic
overlaps with computation. They were set before any row was left out, except for two, which leaving rows out decided.
The priors of the traffic terms tp, cp, pp and dp were narrowed from 0.3 or 0.2 to 0.1: otherwise the fit finds tensor
parallel traffic to be free, which would make a layout across nodes look good; the errors stay the same. The output
layer counts for the last stage only (`physics.head`), not for all stages: the error of one size left out fell from 6.8
to 3.4 %. Terms whose removal would not change the errors (latency, pp) are kept for layouts that are not published.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.hardware import Chip
from llmb_tui.plan.evidence import work_of
from llmb_tui.plan.measurements import Measurement, measurements
from llmb_tui.plan.physics import IN_STAGES, TIMES, Terms, has_terms
from llmb_tui.plan.step_model import StepModel

FITTED_ON = "h100"
"""The only GPU type with published results of more than one model. Anchors give the estimates for the others: a factor
that is fitted for a GPU type with a single model would be that of the model."""
_ERROR = 0.05
"""Standard deviation of the logarithm of a step time."""
_STEPS = 100
_CLOSE = 1e-8
"""The fit ends when no coefficient changes by more than this."""


@dataclass(frozen=True, slots=True)
class Prior:
    """Assumption about a coefficient before any row is used."""

    mean: float
    deviation: float
    least: float = 0.0
    """Lower bound: no kernel is faster than the peak, which is 1; a share of traffic that is not hidden can be 0."""


PRIORS = {
    "linear_bf16": Prior(1.3, 0.25, 1.05),
    "linear_fp8": Prior(1.4, 0.35, 1.05),
    "attention": Prior(1.8, 0.6, 1.05),
    "memory": Prior(1.2, 0.5),
    "cast": Prior(0.3, 0.3),
    "moe": Prior(2.5, 2.0),
    "tp": Prior(0.3, 0.1),
    "cp": Prior(0.3, 0.1),
    "ep": Prior(0.7, 0.5),
    "latency": Prior(0.1, 0.1),
    "head": Prior(1.4, 0.3, 1.05),
    "pp": Prior(0.3, 0.1),
    "dp": Prior(0.2, 0.1),
    "optimizer": Prior(1.0, 0.3),
    "stragglers": Prior(0.002, 0.004),
}
"""Priors by name of the term; `stragglers` is the share for each doubling of the number of GPUs."""


def published_rows(catalog: Catalog) -> tuple[Measurement, ...]:
    """Every row of every result table, without worked examples."""
    return tuple(row for row in measurements(catalog) if row.result is not None)


def fitted_rows(catalog: Catalog) -> tuple[Measurement, ...]:
    """Published rows of the GPU type that the model is fitted on, except those for which it has no terms."""
    return tuple(
        measurement
        for measurement in published_rows(catalog)
        if measurement.row.gpu == FITTED_ON and has_terms(measurement.recipe.gpus[FITTED_ON], measurement.row.dtype)
    )


def fit_model(rows: Sequence[Measurement], chip: Chip) -> StepModel:
    """Fit the model to the step times of rows on a GPU type with the data rates of `chip`.

    Takes a few milliseconds; the same rows give the same coefficients.
    """
    terms = np.array([work_of(row, chip) for row in rows], dtype=float)
    features = terms[:, : len(TIMES)].copy()
    features[:, : len(IN_STAGES)] *= 1 + terms[:, [Terms._fields.index("bubble")]]
    doublings = terms[:, Terms._fields.index("doublings")]
    targets = np.log([row.step_time_s for row in rows])
    priors = [PRIORS[name] for name in (*TIMES, "stragglers")]
    mean, deviation = np.array([p.mean for p in priors]), np.array([p.deviation for p in priors])

    def residuals(weights: np.ndarray) -> np.ndarray:
        modelled = np.log(features @ weights[:-1]) + np.log1p(weights[-1] * doublings)
        return np.concatenate([(modelled - targets) / _ERROR, (weights - mean) / deviation])

    def slopes(weights: np.ndarray) -> np.ndarray:
        stage = features / (features @ weights[:-1])[:, None]
        straggling = doublings / (1 + weights[-1] * doublings)
        return np.vstack([np.column_stack([stage, straggling]) / _ERROR, np.diag(1 / deviation)])

    least = np.array([p.least for p in priors])
    weights = _least_squares(residuals, slopes, mean, least)
    return StepModel(tuple(float(value) for value in weights[:-1]), float(weights[-1]))


ArrayFunction = Callable[[np.ndarray], np.ndarray]


def _least_squares(residuals: ArrayFunction, slopes: ArrayFunction, start: np.ndarray, least: np.ndarray) -> np.ndarray:
    """Minimize the sum of squares above lower bounds by Gauss-Newton. A weight that its bound holds back stays there.

    `slopes` must have full rank, which priors ensure. The residuals are nearly linear, so a few steps are enough.
    """
    weights: np.ndarray = np.maximum(start, least)
    for _ in range(_STEPS):
        current, slope = residuals(weights), slopes(weights)
        gradient = slope.T @ current
        free = (weights > least) | (gradient < 0)
        step = np.zeros_like(weights)
        step[free] = np.linalg.solve(slope[:, free].T @ slope[:, free], -gradient[free])
        candidate = np.maximum(weights + step, least)
        while np.sum(residuals(candidate) ** 2) > current @ current and np.any(abs(candidate - weights) > _CLOSE):
            step /= 2
            candidate = np.maximum(weights + step, least)
        weights, previous = candidate, weights
        if np.all(abs(weights - previous) <= _CLOSE):
            break
    return weights
