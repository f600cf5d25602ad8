"""The fit as a file: what was found, from what, and how well it fits."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import tomli_w

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.fit.errors import errors_of
from llmb_tui.fit.observations import FITTED_ON, Observations
from llmb_tui.plan.curves import layout_of
from llmb_tui.plan.measured import Measured, architecture
from llmb_tui.plan.physics import TIMES
from llmb_tui.plan.step_model import StepModel

_HEAD = "# Written by `make fit`: do not edit. The coefficients of the terms of llmb_tui/plan/physics.py.\n\n"


def document(catalog: Catalog, used: Observations, model: StepModel, date: str) -> dict[str, Any]:
    """What is stored. `date` is YYYY-MM-DD."""
    by_recipe: dict[str, int] = {}
    for each in used.rows:
        by_recipe[each.recipe.id] = by_recipe.get(each.recipe.id, 0) + 1
    return {
        "date": date,
        "gpu": FITTED_ON,
        "inputs_sha256": inputs_sha256(catalog, used),
        "stragglers": _short(model.stragglers),
        "rows": by_recipe,
        "errors": {name: round(value, 2) for name, value in _errors(used, model).items()},
        "terms": {name: _short(value) for name, value in zip(TIMES, model.weights, strict=True)},
    }


def write(file: Path, stored: dict[str, Any]) -> None:
    """Write the file."""
    file.write_text(_HEAD + tomli_w.dumps(stored), encoding="utf-8")


def inputs_sha256(catalog: Catalog, used: Observations) -> str:
    """Of all that the fit reads, so that coefficients from other inputs are noticed."""
    chip = asdict(catalog.chips[FITTED_ON])
    read = json.dumps([{**chip, "source": ""}, [_read(each) for each in used.rows]], sort_keys=True)
    return hashlib.sha256(read.encode()).hexdigest()


def _read(each: Measured) -> list[Any]:
    """Of one row: what it ran, on what, and how long a step took."""
    row, peaks = each.row, each.recipe.gpus[each.row.gpu].peak_tflops
    model = [*architecture(each.model), each.model.stage_extra_layers]
    runs = [row.size, row.dtype, row.gpus, *layout_of(row), row.gbs, row.seq_len, row.layers]
    return [each.recipe.id, model, runs, peaks["bf16"], peaks[row.dtype], each.step_time_s]


def _errors(used: Observations, model: StepModel) -> dict[str, float]:
    dense = [index for index, each in enumerate(used.rows) if each.model.experts == 1]
    modelled = [model.seconds(work) for work in used.work]
    errors: dict[str, float] = {}
    for name, chosen in (("all", range(len(modelled))), ("dense", dense)):
        found = errors_of([(modelled[k], used.rows[k].step_time_s) for k in chosen])
        errors |= {
            f"{name}_mean_pct": found.mean_pct,
            f"{name}_p90_pct": found.p90_pct,
            f"{name}_worst_pct": found.worst_pct,
        }
    return errors


def _short(value: float) -> float:
    """Six digits: far beyond what the rows can tell."""
    return float(f"{value:.6g}")
