"""The fit as a file: what was found, from what, and how well it fits."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import tomli_w

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.fit.accuracy import errors_of
from llmb_tui.fit.observations import FITTED_ON, Observations
from llmb_tui.plan.measurements import Measurement, architecture, layout_of
from llmb_tui.plan.physics import TIMES
from llmb_tui.plan.step_model import StepModel

_HEAD = "# Written by `make fit`: do not edit. The coefficients of the terms of llmb_tui/plan/physics.py.\n\n"


def document(catalog: Catalog, sample: Observations, model: StepModel, date: str) -> dict[str, Any]:
    """The coefficients with their inputs and errors, as the file holds them. `date` is YYYY-MM-DD."""
    by_recipe: dict[str, int] = {}
    for each in sample.rows:
        by_recipe[each.recipe.id] = by_recipe.get(each.recipe.id, 0) + 1
    return {
        "date": date,
        "gpu": FITTED_ON,
        "inputs_sha256": inputs_sha256(catalog, sample),
        "stragglers": _short(model.stragglers),
        "rows": by_recipe,
        "errors": _errors(sample, model),
        "terms": {name: _short(value) for name, value in zip(TIMES, model.weights, strict=True)},
    }


def write(file: Path, stored: dict[str, Any]) -> None:
    """Write the file, with the comment that says who writes it."""
    file.write_text(_HEAD + tomli_w.dumps(stored), encoding="utf-8")


def inputs_sha256(catalog: Catalog, sample: Observations) -> str:
    """Of all that the fit reads, so that coefficients from other inputs are noticed."""
    chip = asdict(catalog.chips[FITTED_ON])
    text = json.dumps([{**chip, "source": ""}, [_inputs(each) for each in sample.rows]], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _inputs(each: Measurement) -> list[Any]:
    """Of one row: what it ran, on what, and how long a step took."""
    row, peaks = each.row, each.recipe.gpus[each.row.gpu].peak_tflops
    model = [*architecture(each.model), each.model.stage_extra_layers]
    runs = [row.size, row.dtype, row.gpus, *layout_of(row), row.gbs, row.seq_len, row.layers]
    return [each.recipe.id, model, runs, peaks["bf16"], peaks[row.dtype], each.step_time_s]


def _errors(sample: Observations, model: StepModel) -> dict[str, float]:
    dense = [index for index, each in enumerate(sample.rows) if each.model.experts == 1]
    modelled = [model.seconds(work) for work in sample.work]
    errors: dict[str, float] = {}
    for name, rows in (("all", range(len(modelled))), ("dense", dense)):
        of_rows = errors_of([(modelled[k], sample.rows[k].step_time_s) for k in rows])
        errors |= {f"{name}_{key}": value for key, value in of_rows.items()}
    return errors


def _short(value: float) -> float:
    """Six digits: far beyond what the rows can tell."""
    return float(f"{value:.6g}")
