"""`accuracy`: how far the estimate is off on published rows that it has not seen, case by case, beside naive ways.

`dense` are the models without experts on the GPU type that the model is fitted on; `other_gpus` are the rows of all
other types. With experts, a size or recipe that is left out takes every row of its model along: there is no estimate.
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
    """By case: `n`, `mean_pct`, `p90_pct`, `worst_pct`, `coverage_pct` (of the band), and `baselines` with the same.

    A second or two. A case for which the catalog has no rows is left out.
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
    yield "between_gpu_counts", [each for each in rows_out if each.expected.method == "interpolated"]
    yield "beyond_gpu_counts", [each for each in rows_out if each.expected.method == "extrapolated"]
    yield "one_batch_out_other_gpus", trial.leave_out(elsewhere, _batch)
    for name, group in (("one_layout_out", _layout), ("one_precision_out", _precision)):
        yield from _and_dense(name, trial.leave_out(fitted_on, group))
        yield f"{name}_other_gpus", trial.leave_out(elsewhere, group)
    dense = [row for row in fitted_on if _is_dense(row)]
    yield "one_size_out_dense", trial.leave_out(dense, _size)
    yield "one_recipe_out_dense", trial.leave_out(dense, _recipe)
    yield "one_gpu_type_out", trial.leave_out(elsewhere, lambda each: each.row.gpu)


def _and_dense(name: str, predictions: list[Prediction]) -> Iterator[tuple[str, list[Prediction]]]:
    yield name, predictions
    yield f"{name}_dense", [each for each in predictions if _is_dense(each.row)]


def _on_fitted(each: Measurement) -> bool:
    return each.row.gpu == FITTED_ON


def _is_dense(each: Measurement) -> bool:
    return each.model.experts == 1


def _row(each: Measurement) -> Key:
    return (each.recipe, each.row)


def _batch(each: Measurement) -> Key:
    return (*_layout(each), each.row.gbs / each.row.gpus)


def _layout(each: Measurement) -> Key:
    return (*_precision(each), layout_of(each.row), each.row.layers, each.row.seq_len)


def _precision(each: Measurement) -> Key:
    return (*_size(each), each.row.gpu, each.row.dtype)


def _size(each: Measurement) -> Key:
    return architecture(each.model)


def _recipe(each: Measurement) -> str:
    return each.recipe.id


def _in_sample(trial: Trial) -> list[Prediction]:
    """The model alone, without any anchor, on the rows that it was fitted on; the band is that of another model."""
    model, half = trial.model(), bands.quadrature(bands.CLUSTER, bands.SIZE)
    steps = ((row, model.seconds(work_of(row, trial.chip))) for row in trial.fitted)
    return [Prediction(row, Expectation(seconds, half, "modelled", "", ""), ()) for row, seconds in steps]


def _summary(predictions: Sequence[Prediction]) -> dict[str, Any]:
    pairs = [(each.expected.step_time_s, each.row.step_time_s) for each in predictions]
    hits = sum(_inside(each) for each in predictions)
    return _numbers(pairs) | {
        "coverage_pct": round(100 * hits / len(predictions), 1),
        "baselines": {name: errors for name, way in BASELINES.items() if (errors := _baseline(predictions, way))},
    }


def _inside(each: Prediction) -> bool:
    """True where the published step time is inside the band."""
    expected = each.expected
    return abs(each.row.step_time_s / expected.step_time_s - 1) * 100 <= expected.half_width_pct


def _baseline(predictions: Sequence[Prediction], way: Baseline) -> dict[str, Any] | None:
    """A naive way on the same rows, as far as it has an answer."""
    pairs = [
        (seconds, each.row.step_time_s) for each in predictions if (seconds := way(each.row, each.rows)) is not None
    ]
    return _numbers(pairs) if pairs else None


def _numbers(pairs: Sequence[tuple[float, float]]) -> dict[str, Any]:
    return {"n": len(pairs), **errors_of(pairs)}


Group = Callable[[Measurement], Hashable]


@dataclass(frozen=True, slots=True)
class Prediction:
    """A published row, what was expected of it, and the rows that were known."""

    row: Measurement
    expected: Expectation
    rows: tuple[Measurement, ...]


class Trial:
    """The published rows of a catalog, and how well some are predicted from the others."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.rows = published_rows(catalog)
        self.fitted = fitted_rows(catalog)
        self.chip = catalog.chips[FITTED_ON]
        self._models: dict[frozenset[Measurement], StepModel] = {}

    def leave_out(self, rows: Iterable[Measurement], group: Group) -> list[Prediction]:
        """Each row from all of other groups, worked examples too. Rows that get no estimate are passed over."""
        groups: dict[Hashable, list[Measurement]] = {}
        for row in rows:
            groups.setdefault(group(row), []).append(row)
        predictions = []
        for name, members in groups.items():
            rest = tuple(each for each in measurements(self.catalog) if group(each) != name)
            proof = self._evidence(rest)
            tables = tuple(each for each in rest if each.result)
            for row in members:
                expected = expect(self._resolved(row), proof)
                if isinstance(expected, Expectation):
                    predictions.append(Prediction(row, expected, tables))
        return predictions

    def model(self, left_out: frozenset[Measurement] = frozenset()) -> StepModel:
        """The model fitted without some rows."""
        if left_out not in self._models:
            self._models[left_out] = fit_model([each for each in self.fitted if each not in left_out], self.chip)
        return self._models[left_out]

    def _evidence(self, rows: tuple[Measurement, ...]) -> Evidence:
        present = set(rows)
        left_out = frozenset(each for each in self.fitted if each not in present)
        return evidence(self.catalog, rows, self.model(left_out))

    def _resolved(self, target: Measurement) -> ResolvedSelection:
        """The selection of a published configuration, as a person would make it."""
        row, recipe = target.row, target.recipe
        names = (recipe.workload, recipe.release, row.size, row.gpu, row.dtype)
        resolved = resolve(self.catalog, Selection(*names, row.gpus, row.scaling == "strong"))
        return replace(resolved, variant=target.variant)  # a row of another release may have had another one


def errors_of(pairs: Sequence[tuple[float, float]]) -> dict[str, float]:
    """Absolute errors of (predicted, published) seconds, per cent of the published ones, to two digits.

    There must be one pair at least.
    """
    errors = np.array([abs(predicted / actual - 1) * 100 for predicted, actual in pairs])
    percentages = {"mean_pct": errors.mean(), "p90_pct": np.percentile(errors, 90), "worst_pct": errors.max()}
    return {name: round(float(value), 2) for name, value in percentages.items()}
