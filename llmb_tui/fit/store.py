"""The fit as a file: coefficients, their inputs and their errors."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import tomli_w

from llmb_tui.catalog.hardware import Chip
from llmb_tui.fit.accuracy import errors_of
from llmb_tui.fit.solve import FITTED_ON
from llmb_tui.plan.evidence import work_of
from llmb_tui.plan.measurements import Measurement, architecture, layout_of
from llmb_tui.plan.physics import TIMES
from llmb_tui.plan.step_model import StepModel

_HEAD = "# Written by `make fit`: do not edit. The coefficients of the terms of llmb_tui/plan/physics.py.\n\n"


def document(rows: Sequence[Measurement], chip: Chip, model: StepModel, day: str) -> dict[str, Any]:
    """Contents of the file: the coefficients with their inputs and errors. `day` is YYYY-MM-DD."""
    return {
        "date": day,
        "gpu": FITTED_ON,
        "inputs_sha256": inputs_sha256(rows, chip),
        "stragglers": _short(model.stragglers),
        "rows": dict(Counter(row.recipe.id for row in rows)),
        "errors": _errors(rows, chip, model),
        "terms": {name: _short(value) for name, value in zip(TIMES, model.weights, strict=True)},
    }


def write(file: Path, stored: dict[str, Any]) -> None:
    """Write the file, with a comment that names the program that writes it."""
    file.write_text(_HEAD + tomli_w.dumps(stored), encoding="utf-8")


def inputs_sha256(rows: Sequence[Measurement], chip: Chip) -> str:
    """SHA-256 of everything that the fit reads, so that coefficients from other inputs are noticed."""
    text = json.dumps([{**asdict(chip), "source": ""}, [_inputs(row) for row in rows]], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _inputs(measurement: Measurement) -> list[Any]:
    """Inputs from one row: its configuration, the peaks of its GPU and its step time."""
    row, recipe, shape = measurement.row, measurement.recipe, measurement.model
    peaks = recipe.gpus[row.gpu].peak_tflops
    model = [*architecture(shape), shape.query_groups, shape.stage_extra_layers]
    runs = [row.size, row.dtype, row.gpus, *layout_of(row), row.gbs, row.seq_len, row.layers]
    return [recipe.id, model, runs, peaks["bf16"], peaks[row.dtype], measurement.step_time_s]


def _errors(rows: Sequence[Measurement], chip: Chip, model: StepModel) -> dict[str, float]:
    dense = [row for row in rows if row.model.experts == 1]
    errors: dict[str, float] = {}
    for name, group in (("all", rows), ("dense", dense)):
        group_errors = errors_of([(model.seconds(work_of(row, chip)), row.step_time_s) for row in group])
        errors |= {f"{name}_{key}": value for key, value in group_errors.items()}
    return errors


def _short(value: float) -> float:
    """A value in six digits, far more than the rows can determine."""
    return float(f"{value:.6g}")
