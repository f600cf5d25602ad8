"""`accuracy`: errors of the estimate on published rows that it has not seen, by case, compared with naive predictions.

`dense` are the models without experts on the GPU type that the model is fitted on; `other_gpus` are the rows of all
other types. A model with experts has no estimate if its size or its recipe is left out, because no row of it remains.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.fit.baselines import BASELINES, Baseline
from llmb_tui.fit.solve import FITTED_ON, fit_model, fitted_rows, published_rows
from llmb_tui.plan import bands
from llmb_tui.plan.estimate import expect
from llmb_tui.plan.evidence import Evidence, evidence, work_of
from llmb_tui.plan.measurements import Key, Measurement, architecture, layout_of, measurements
from llmb_tui.plan.plan import Expectation
from llmb_tui.plan.resolved import ResolvedSelection, resolve
from llmb_tui.plan.selection import Selection
from llmb_tui.plan.step_model import StepModel


def accuracy(catalog: Catalog, progress: Callable[[str], None] = lambda _: None) -> dict[str, dict[str, Any]]:
    """Errors by case: `n`, `mean_pct`, `p90_pct`, `worst_pct`, `coverage_pct` (of the band), and errors of `baselines`.

    Takes a second or two. A case for which the catalog has no rows is omitted.
    """
    trial = Trial(catalog)
    cases = {}
    for name, predictions in _cases(trial):
        progress(name.replace("_", " "))
        if predictions:
            cases[name] = _summary(predictions)
    return cases


def _cases(trial: Trial) -> Iterator[tuple[str, list[Prediction]]]:
    fitted_on = [row for row in trial.rows if _on_fitted(row)]
    elsewhere = [row for row in trial.rows if not _on_fitted(row)]
    yield from _and_dense("in_sample", _in_sample(trial))
    rows_out = trial.leave_out(fitted_on, _row)
    yield from _and_dense("one_row_out", rows_out)
    yield "one_row_out_other_gpus", trial.leave_out(elsewhere, _row)
    yield "between_gpu_counts", [row for row in rows_out if row.expected.method == "interpolated"]
    yield "beyond_gpu_counts", [row for row in rows_out if row.expected.method == "extrapolated"]
    yield "one_batch_out_other_gpus", trial.leave_out(elsewhere, _batch)
    for name, group in (("one_layout_out", _layout), ("one_precision_out", _precision)):
        yield from _and_dense(name, trial.leave_out(fitted_on, group))
        yield f"{name}_other_gpus", trial.leave_out(elsewhere, group)
    dense = [row for row in fitted_on if _is_dense(row)]
    yield "one_size_out_dense", trial.leave_out(dense, _size)
    yield "one_recipe_out_dense", trial.leave_out(dense, _recipe)
    yield "one_gpu_type_out", trial.leave_out(elsewhere, lambda measurement: measurement.row.gpu)


def _and_dense(name: str, predictions: list[Prediction]) -> Iterator[tuple[str, list[Prediction]]]:
    yield name, predictions
    yield f"{name}_dense", [prediction for prediction in predictions if _is_dense(prediction.row)]


def _on_fitted(measurement: Measurement) -> bool:
    return measurement.row.gpu == FITTED_ON


def _is_dense(measurement: Measurement) -> bool:
    return measurement.model.experts == 1


def _row(measurement: Measurement) -> Key:
    return (measurement.recipe, measurement.row)


def _batch(measurement: Measurement) -> Key:
    return (*_layout(measurement), measurement.row.gbs / measurement.row.gpus)


def _layout(measurement: Measurement) -> Key:
    row = measurement.row
    return (*_precision(measurement), layout_of(row), row.layers, row.seq_len)


def _precision(measurement: Measurement) -> Key:
    return (*_size(measurement), measurement.row.gpu, measurement.row.dtype)


def _size(measurement: Measurement) -> Key:
    return architecture(measurement.model)


def _recipe(measurement: Measurement) -> str:
    return measurement.recipe.id


def _in_sample(trial: Trial) -> list[Prediction]:
    """Predictions by the model without anchors for the rows that it was fitted on, with the band for another model."""
    model, half = trial.model(), bands.quadrature(bands.CLUSTER, bands.SIZE)
    steps = ((row, model.seconds(work_of(row, trial.chip))) for row in trial.fitted)
    return [Prediction(row, Expectation(seconds, half, "modelled", "", ""), ()) for row, seconds in steps]


def _summary(predictions: Sequence[Prediction]) -> dict[str, Any]:
    pairs = [(prediction.expected.step_time_s, prediction.row.step_time_s) for prediction in predictions]
    hits = sum(map(_is_in_band, predictions))
    return _numbers(pairs) | {
        "coverage_pct": round(100 * hits / len(predictions), 1),
        "baselines": {
            name: errors for name, predict in BASELINES.items() if (errors := _baseline(predictions, predict))
        },
    }


def _is_in_band(prediction: Prediction) -> bool:
    """Whether the published step time is inside the band."""
    expected = prediction.expected
    return abs(prediction.row.step_time_s / expected.step_time_s - 1) * 100 <= expected.half_width_pct


def _baseline(predictions: Sequence[Prediction], predict: Baseline) -> dict[str, Any] | None:
    """Errors of a naive prediction on the rows of a case that it can predict; None if it predicts none."""
    pairs = [
        (seconds, prediction.row.step_time_s)
        for prediction in predictions
        if (seconds := predict(prediction.row, prediction.rows)) is not None
    ]
    return _numbers(pairs) if pairs else None


def _numbers(pairs: Sequence[tuple[float, float]]) -> dict[str, Any]:
    return {"n": len(pairs), **errors_of(pairs)}


Group = Callable[[Measurement], Hashable]


@dataclass(frozen=True, slots=True)
class Prediction:
    """A published row, its predicted step time, and the rows that the prediction could use."""

    row: Measurement
    expected: Expectation
    rows: tuple[Measurement, ...]


class Trial:
    """The published rows of a catalog, and predictions of some of them from the others."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.rows = published_rows(catalog)
        self.fitted = fitted_rows(catalog)
        self.chip = catalog.chips[FITTED_ON]
        self._models: dict[frozenset[Measurement], StepModel] = {}

    def leave_out(self, rows: Iterable[Measurement], group: Group) -> list[Prediction]:
        """Predict each row from the rows and worked examples of other groups. Rows without an estimate are omitted."""
        groups: dict[Hashable, list[Measurement]] = {}
        for row in rows:
            groups.setdefault(group(row), []).append(row)
        predictions = []
        for name, members in groups.items():
            rest = tuple(row for row in measurements(self.catalog) if group(row) != name)
            basis = self._evidence(rest)
            tables = tuple(row for row in rest if row.result)
            for row in members:
                expected = expect(self._resolved(row), basis)
                if isinstance(expected, Expectation):
                    predictions.append(Prediction(row, expected, tables))
        return predictions

    def model(self, left_out: frozenset[Measurement] = frozenset()) -> StepModel:
        """The model, fitted without the rows in `left_out`."""
        if left_out not in self._models:
            self._models[left_out] = fit_model([row for row in self.fitted if row not in left_out], self.chip)
        return self._models[left_out]

    def _evidence(self, rows: tuple[Measurement, ...]) -> Evidence:
        present = set(rows)
        left_out = frozenset(row for row in self.fitted if row not in present)
        return evidence(self.catalog, rows, self.model(left_out))

    def _resolved(self, target: Measurement) -> ResolvedSelection:
        """The selection of a published configuration, as a user would make it."""
        row, recipe = target.row, target.recipe
        names = (recipe.workload, recipe.release, row.size, row.gpu, row.dtype)
        resolved = resolve(self.catalog, Selection(*names, row.gpus, row.scaling == "strong"))
        return replace(resolved, variant=target.variant)  # another release may use another variant


def errors_of(pairs: Sequence[tuple[float, float]]) -> dict[str, float]:
    """Absolute errors of (predicted, published) seconds in per cent of the published ones, to two digits.

    There must be at least one pair.
    """
    errors = np.array([abs(predicted / actual - 1) * 100 for predicted, actual in pairs])
    percentages = {"mean_pct": errors.mean(), "p90_pct": np.percentile(errors, 90), "worst_pct": errors.max()}
    return {name: round(float(value), 2) for name, value in percentages.items()}
