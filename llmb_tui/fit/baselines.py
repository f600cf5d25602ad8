"""What one would do without a model: the naive ways that the estimate has to beat."""

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
"""Seconds for a row whose step time is not known, from others whose are; None where the way says nothing."""


def nearest_row_mfu(target: Measurement, rows: Sequence[Measurement]) -> float | None:
    """The MFU of the row that has most in common: GPU type, precision, model, layers, then scale."""
    return _at_mfu(target, mfu(min(rows, key=lambda each: _distance(target, each)))) if rows else None


def constant_mfu(target: Measurement, rows: Sequence[Measurement]) -> float | None:
    """The mean MFU of dense models, or of those with experts, in that precision, on that GPU type if there are any."""
    alike = [each for each in rows if _distance(target, each)[1:3] == (False, False)]
    on_gpu = [each for each in alike if each.row.gpu == target.row.gpu] or alike
    return _at_mfu(target, fmean(map(mfu, on_gpu))) if on_gpu else None


def log_log_in_gpus(target: Measurement, rows: Sequence[Measurement]) -> float | None:
    """A line through the logarithms of GPUs and of GPU-seconds for a sample, of the two nearest rows of the model."""
    alike = [each for each in rows if _distance(target, each)[:5] == (False,) * 5 and each.recipe is target.recipe]
    near = sorted(alike, key=lambda each: _distance(target, each))[:2]
    if not near:
        return None
    points = [(math.log(each.row.gpus), math.log(_gpu_seconds(each))) for each in near]
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
def mfu(each: Measurement) -> float:
    """Model FLOPs utilisation of a row, per cent, by the recipe's formula."""
    return _mfu_at(each, each.step_time_s)


def _mfu_at(each: Measurement, seconds: float) -> float:
    row, recipe = each.row, each.recipe
    flops = flops_per_sample(recipe.flops, each.model, row.layers, row.seq_len)
    sustained = throughput.tflops_per_gpu(row.gbs, flops, seconds, row.gpus)
    return throughput.mfu_pct(sustained, recipe.gpus[row.gpu].peak_tflops[row.dtype])


def _at_mfu(target: Measurement, goal: float) -> float:
    """Step time at which a row has this MFU."""
    return _mfu_at(target, 1.0) / goal


def _gpu_seconds(each: Measurement) -> float:
    return each.step_time_s * each.row.gpus / each.row.gbs


@lru_cache(maxsize=1 << 15)
def _distance(one: Measurement, other: Measurement) -> tuple[bool, bool, bool, bool, bool, float]:
    """What differs, gravest first; MFU is relative to the peak of a precision, and counts attention in several ways."""
    log_scale = abs(math.log2(one.row.gpus / other.row.gpus))
    gpu, dtype, experts, shape, layers = map(ne, _traits(one), _traits(other))
    return gpu, dtype, experts, shape, layers, log_scale


@lru_cache(maxsize=4096)
def _traits(each: Measurement) -> tuple[object, ...]:
    row, model = each.row, each.model
    return row.gpu, row.dtype, model.experts > 1, architecture(model), row.layers
