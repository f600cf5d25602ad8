"""`fitted`: the coefficients of the step model that published step times ask for.

Bounded least squares on the logarithms of the step times, so that a per cent counts the same everywhere, with a
prior on each coefficient: terms that the rows cannot tell apart (the traffic terms, latency) stay near theirs.

What was chosen, and why. The error of a row is taken as 5 %, about what two releases of one recipe differ by. The
priors say what is known of kernels: they reach half to four fifths of the peak, and most traffic hides behind work.
They were set before anything was left out, with two exceptions that leaving out decided. The traffic terms tp, cp, pp
and dp were narrowed from 0.3 or 0.2 to 0.1: otherwise tensor parallel traffic comes out as free, which would make a
layout across nodes look good; the errors stay the same. And the output layer is the last stage's own (`physics.head`)
instead of everybody's: one size out went from 6.8 to 3.4 %. Terms that could go without any change of the errors
(latency, pp) stay for layouts that are not published.
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
"""The only GPU type that more than one model is published on. The others are reached by anchors: a factor that a fit
found for a type with one model would be that model's."""
_ERROR = 0.05
"""Standard deviation of the logarithm of a step time."""
_STEPS = 100
_CLOSE = 1e-8
"""Coefficients that move no more than this have been found."""


@dataclass(frozen=True, slots=True)
class Prior:
    """What is thought of a coefficient before any row is seen."""

    mean: float
    deviation: float
    least: float = 0.0
    """No kernel is faster than the peak, which is 1; a share of traffic that shows can be 0."""


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
"""By name of the term, and the share of stragglers for each doubling of the GPUs."""


def published_rows(catalog: Catalog) -> tuple[Measurement, ...]:
    """Every row of every result table; worked examples are none."""
    return tuple(each for each in measurements(catalog) if each.result is not None)


def fitted_rows(catalog: Catalog) -> tuple[Measurement, ...]:
    """All published rows of the GPU type that the model is fitted on, but those that it has no terms for."""
    return tuple(
        each
        for each in published_rows(catalog)
        if each.row.gpu == FITTED_ON and has_terms(each.recipe.gpus[FITTED_ON], each.row.dtype)
    )


def fit_model(rows: Sequence[Measurement], chip: Chip) -> StepModel:
    """The model that fits these step times best, of a GPU type with these data rates.

    A few milliseconds; the same rows give the same coefficients.
    """
    terms = np.array([work_of(each, chip) for each in rows], dtype=float)
    features = terms[:, : len(TIMES)].copy()
    features[:, : len(IN_STAGES)] *= 1 + terms[:, [Terms._fields.index("bubble")]]
    doublings = terms[:, Terms._fields.index("doublings")]
    targets = np.log([each.step_time_s for each in rows])
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


Of = Callable[[np.ndarray], np.ndarray]


def _least_squares(residuals: Of, slopes: Of, start: np.ndarray, least: np.ndarray) -> np.ndarray:
    """The smallest sum of squares above these bounds, by Gauss-Newton: what its bound holds back stays there.

    `slopes` must have full rank, as priors give it. The residuals are nearly linear, so a few steps do.
    """
    at: np.ndarray = np.maximum(start, least)
    for _ in range(_STEPS):
        here, slope = residuals(at), slopes(at)
        gradient = slope.T @ here
        free = (at > least) | (gradient < 0)
        step = np.zeros_like(at)
        step[free] = np.linalg.solve(slope[:, free].T @ slope[:, free], -gradient[free])
        ahead = np.maximum(at + step, least)
        while np.sum(residuals(ahead) ** 2) > here @ here and np.any(abs(ahead - at) > _CLOSE):
            step /= 2
            ahead = np.maximum(at + step, least)
        at, before = ahead, at
        if np.all(abs(at - before) <= _CLOSE):
            break
    return at
