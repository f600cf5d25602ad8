"""`accuracy`: how far the estimate is off on published rows that it has not seen, case by case, beside naive ways.

`dense` are the models without experts on the GPU type that the model is fitted on; `other_gpus` are the rows of all
other types. With experts, a size or recipe that is left out takes every row of its model along: there is no estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.fit.baselines import BASELINES, Baseline
from llmb_tui.fit.errors import Errors, errors_of
from llmb_tui.fit.leave_out import Prediction, Trial
from llmb_tui.fit.observations import FITTED_ON
from llmb_tui.plan import bands
from llmb_tui.plan.curves import layout_of
from llmb_tui.plan.estimate import Expectation
from llmb_tui.plan.measured import Key, Measured, architecture

Rows = Callable[[Measured], bool]


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


def _on_fitted(each: Measured) -> bool:
    return each.row.gpu == FITTED_ON


def _is_dense(each: Measured) -> bool:
    return each.model.experts == 1


def _row(each: Measured) -> Key:
    return (each.recipe, each.row)


def _batch(each: Measured) -> Key:
    return (*_layout(each), each.row.gbs / each.row.gpus)


def _layout(each: Measured) -> Key:
    return (*_precision(each), layout_of(each.row), each.row.layers, each.row.seq_len)


def _precision(each: Measured) -> Key:
    return (*_size(each), each.row.gpu, each.row.dtype)


def _size(each: Measured) -> Key:
    return architecture(each.model)


def _recipe(each: Measured) -> str:
    return each.recipe.id


def _in_sample(trial: Trial) -> list[Prediction]:
    """The model alone, without any anchor, on the rows that it was fitted on; the band is that of another model."""
    model, half = trial.model(), bands.quadrature(bands.CLUSTER, bands.SIZE)
    return [
        Prediction(row, Expectation(model.seconds(work), half, "modelled", "", ""), ())
        for row, work in zip(trial.used.rows, trial.used.work, strict=True)
    ]


def _summary(predictions: Sequence[Prediction]) -> dict[str, Any]:
    pairs = [(each.expected.step_time_s, each.row.step_time_s) for each in predictions]
    hits = sum(_inside(each) for each in predictions)
    baselines = {name: found for name, way in BASELINES.items() if (found := _baseline(predictions, way))}
    return _numbers(errors_of(pairs)) | {
        "coverage_pct": round(100 * hits / len(predictions), 1),
        "baselines": {name: _numbers(found) for name, found in baselines.items()},
    }


def _inside(each: Prediction) -> bool:
    """True where the published step time is inside the band."""
    expected = each.expected
    return abs(each.row.step_time_s / expected.step_time_s - 1) * 100 <= expected.half_width_pct


def _baseline(predictions: Sequence[Prediction], way: Baseline) -> Errors | None:
    """A naive way on the same rows, as far as it has an answer."""
    pairs = [(found, each.row.step_time_s) for each in predictions if (found := way(each.row, each.known)) is not None]
    return errors_of(pairs) if pairs else None


def _numbers(found: Errors) -> dict[str, Any]:
    return {
        "n": found.n,
        "mean_pct": round(found.mean_pct, 2),
        "p90_pct": round(found.p90_pct, 2),
        "worst_pct": round(found.worst_pct, 2),
    }
