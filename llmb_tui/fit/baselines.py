"""What one would do without a model: the naive ways that the estimate has to beat."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import fmean

from llmb_tui.plan import throughput
from llmb_tui.plan.flops import flops_per_sample
from llmb_tui.plan.measured import Measured, architecture

Baseline = Callable[[Measured, Sequence[Measured]], "float | None"]
"""Seconds for a row whose step time is not known, from others whose are; None where the way says nothing."""


def nearest_row_mfu(asked: Measured, known: Sequence[Measured]) -> float | None:
    """The MFU of the row that has most in common: GPU type, precision, model, layers, then scale."""
    return _at_mfu(asked, mfu(min(known, key=lambda each: _distance(asked, each)))) if known else None


def constant_mfu(asked: Measured, known: Sequence[Measured]) -> float | None:
    """The mean MFU of dense models, or of those with experts, in that precision, on that GPU type if there are any."""
    alike = [each for each in known if _distance(asked, each)[1:3] == (False, False)]
    there = [each for each in alike if each.row.gpu == asked.row.gpu] or alike
    return _at_mfu(asked, fmean(map(mfu, there))) if there else None


def log_log_in_gpus(asked: Measured, known: Sequence[Measured]) -> float | None:
    """A line through the logarithms of GPUs and of GPU-seconds for a sample, of the two nearest rows of the model."""
    alike = [each for each in known if _distance(asked, each)[:5] == (False,) * 5 and each.recipe is asked.recipe]
    near = sorted(alike, key=lambda each: _distance(asked, each))[:2]
    if not near:
        return None
    points = [(math.log(each.row.gpus), math.log(_gpu_seconds(each))) for each in near]
    (x, y), (other_x, other_y) = points[0], points[-1]
    slope = 0.0 if x == other_x else (other_y - y) / (other_x - x)
    seconds = math.exp(y + slope * (math.log(asked.row.gpus) - x))
    return seconds * asked.row.gbs / asked.row.gpus


BASELINES: dict[str, Baseline] = {
    "nearest_row_mfu": nearest_row_mfu,
    "constant_mfu": constant_mfu,
    "log_log_in_gpus": log_log_in_gpus,
}


def mfu(each: Measured) -> float:
    """Model FLOPs utilisation of a row, per cent, by the recipe's formula."""
    return _mfu_at(each, each.step_time_s)


def _mfu_at(each: Measured, seconds: float) -> float:
    row, recipe = each.row, each.recipe
    flops = flops_per_sample(recipe.flops, each.model, row.layers, row.seq_len)
    sustained = throughput.tflops_per_gpu(row.gbs, flops, seconds, row.gpus)
    return throughput.mfu_pct(sustained, recipe.gpus[row.gpu].peak_tflops[row.dtype])


def _at_mfu(asked: Measured, wanted: float) -> float:
    """Step time at which a row has this MFU."""
    return _mfu_at(asked, 1.0) / wanted


def _gpu_seconds(each: Measured) -> float:
    return each.step_time_s * each.row.gpus / each.row.gbs


def _distance(one: Measured, other: Measured) -> tuple[bool, bool, bool, bool, bool, float]:
    """What differs, gravest first; MFU is relative to the peak of a precision, and counts attention in several ways."""
    return (
        one.row.gpu != other.row.gpu,
        one.row.dtype != other.row.dtype,
        (one.model.experts > 1) != (other.model.experts > 1),
        architecture(one.model) != architecture(other.model),
        one.row.layers != other.row.layers,
        abs(math.log2(one.row.gpus / other.row.gpus)),
    )
