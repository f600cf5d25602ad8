"""Naive predictions without a model, with which the estimate is compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import ne
from statistics import fmean

from llmb_tui.plan import throughput
from llmb_tui.plan.measurements import Measurement, architecture
from llmb_tui.plan.throughput import flops_per_sample

Baseline = Callable[[Measurement, Sequence[Measurement]], "float | None"]
"""Predicts a row's step time in seconds from rows with known step times; None if it cannot."""


def nearest_row_mfu(target: Measurement, rows: Sequence[Measurement]) -> float | None:
    """Step time by the MFU of the most similar row: GPU type, precision, model, layers, then scale."""
    return _at_mfu(target, mfu(min(rows, key=lambda row: _distance(target, row)))) if rows else None


def constant_mfu(target: Measurement, rows: Sequence[Measurement]) -> float | None:
    """Step time by the mean MFU of the same kind (dense, with experts) and precision, on the GPU type if possible."""
    alike = [row for row in rows if _distance(target, row)[1:3] == (False, False)]
    on_gpu = [measurement for measurement in alike if measurement.row.gpu == target.row.gpu] or alike
    return _at_mfu(target, fmean(map(mfu, on_gpu))) if on_gpu else None


def log_log_in_gpus(target: Measurement, rows: Sequence[Measurement]) -> float | None:
    """Step time on a line through log(GPUs) and log(GPU-seconds per sample) of the two nearest rows of the model."""
    alike = [row for row in rows if _distance(target, row)[:5] == (False,) * 5 and row.recipe is target.recipe]
    near = sorted(alike, key=lambda row: _distance(target, row))[:2]
    if not near:
        return None
    points = [(math.log(measurement.row.gpus), math.log(_gpu_seconds(measurement))) for measurement in near]
    (x, y), (other_x, other_y) = points[0], points[-1]
    slope = 0.0 if x == other_x else (other_y - y) / (other_x - x)
    seconds = math.exp(y + slope * (math.log(target.row.gpus) - x))
    return seconds * target.row.gbs / target.row.gpus


BASELINES: dict[str, Baseline] = {
    "nearest_row_mfu": nearest_row_mfu,
    "constant_mfu": constant_mfu,
    "log_log_in_gpus": log_log_in_gpus,
}


@lru_cache(maxsize=4096)
def mfu(measurement: Measurement) -> float:
    """Model FLOPs utilisation of a row, per cent, by the recipe's formula."""
    return _mfu_at(measurement, measurement.step_time_s)


def _mfu_at(measurement: Measurement, seconds: float) -> float:
    row, recipe = measurement.row, measurement.recipe
    flops = flops_per_sample(recipe.flops, measurement.model, row.layers, row.seq_len)
    sustained = throughput.tflops_per_gpu(row.gbs, flops, seconds, row.gpus)
    return throughput.mfu_pct(sustained, recipe.gpus[row.gpu].peak_tflops[row.dtype])


def _at_mfu(target: Measurement, goal: float) -> float:
    """Step time at which a row has a given MFU."""
    return _mfu_at(target, 1.0) / goal


def _gpu_seconds(measurement: Measurement) -> float:
    return measurement.step_time_s * measurement.row.gpus / measurement.row.gbs


@lru_cache(maxsize=1 << 15)
def _distance(target: Measurement, other: Measurement) -> tuple[bool, bool, bool, bool, bool, float]:
    """Differences of two rows, most important first.

    MFU is relative to the peak of a precision, and recipes count attention differently.
    """
    log_scale = abs(math.log2(target.row.gpus / other.row.gpus))
    gpu, dtype, experts, shape, layers = map(ne, _traits(target), _traits(other))
    return gpu, dtype, experts, shape, layers, log_scale


@lru_cache(maxsize=4096)
def _traits(measurement: Measurement) -> tuple[object, ...]:
    row, model = measurement.row, measurement.model
    return row.gpu, row.dtype, model.experts > 1, architecture(model), row.layers
