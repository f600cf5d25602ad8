"""The fit as a file: what was found, from what, and how well it fits."""

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
    """The coefficients with their inputs and errors, as the file holds them. `day` is YYYY-MM-DD."""
    return {
        "date": day,
        "gpu": FITTED_ON,
        "inputs_sha256": inputs_sha256(rows, chip),
        "stragglers": _short(model.stragglers),
        "rows": dict(Counter(each.recipe.id for each in rows)),
        "errors": _errors(rows, chip, model),
        "terms": {name: _short(value) for name, value in zip(TIMES, model.weights, strict=True)},
    }


def write(file: Path, stored: dict[str, Any]) -> None:
    """Write the file, with the comment that says who writes it."""
    file.write_text(_HEAD + tomli_w.dumps(stored), encoding="utf-8")


def inputs_sha256(rows: Sequence[Measurement], chip: Chip) -> str:
    """Of all that the fit reads, so that coefficients from other inputs are noticed."""
    text = json.dumps([{**asdict(chip), "source": ""}, [_inputs(each) for each in rows]], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _inputs(each: Measurement) -> list[Any]:
    """Of one row: what it ran, on what, and how long a step took."""
    row, peaks = each.row, each.recipe.gpus[each.row.gpu].peak_tflops
    model = [*architecture(each.model), each.model.query_groups, each.model.stage_extra_layers]
    runs = [row.size, row.dtype, row.gpus, *layout_of(row), row.gbs, row.seq_len, row.layers]
    return [each.recipe.id, model, runs, peaks["bf16"], peaks[row.dtype], each.step_time_s]


def _errors(rows: Sequence[Measurement], chip: Chip, model: StepModel) -> dict[str, float]:
    dense = [each for each in rows if each.model.experts == 1]
    errors: dict[str, float] = {}
    for name, group in (("all", rows), ("dense", dense)):
        of_group = errors_of([(model.seconds(work_of(each, chip)), each.step_time_s) for each in group])
        errors |= {f"{name}_{key}": value for key, value in of_group.items()}
    return errors


def _short(value: float) -> float:
    """Six digits: far beyond what the rows can tell."""
    return float(f"{value:.6g}")
