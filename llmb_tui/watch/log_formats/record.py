"""Parser for the values of one step's record."""

from __future__ import annotations

from math import inf, isfinite
from typing import Any

from llmb_tui.watch.state import LONGEST_STEP_S, MOST_STEPS, MOST_TFLOPS, SHORTEST_STEP_S

LONGEST_RECORD = 2000
"""Length in bytes of the longest record that is read as a step; usual records have some 300."""

# Fields of `Step` by the names in NeMo's versions. Lines differ in their fields and in the order of them.
NEMO_FIELDS = {
    b"global_step": "global_step",
    b"train_step_timing in s": "step_time_s",
    b"reduced_train_loss": "loss",
    b"consumed_samples": "consumed_samples",
    b"peak_memory_usage": "memory_peak_bytes",
    b"max_memory_reserved": "memory_peak_bytes",
    b"memory_allocated": "memory_allocated_bytes",
    b"TFLOPS_per_GPU": "tflops_per_gpu",
    b"tflops_per_sec_per_gpu": "tflops_per_gpu",
    b"global_batch_size": "batch",
    b"grad_norm": "grad_norm",
}
_POSSIBLE = {
    "global_step": (0.0, MOST_STEPS),
    "step_time_s": (SHORTEST_STEP_S, LONGEST_STEP_S),
    "tflops_per_gpu": (0.0, MOST_TFLOPS),
}
_MAY_BE_NAN = ("loss", "grad_norm")


def step_values(record: bytes, gap: bytes, mark: bytes, names: dict[bytes, str]) -> dict[str, Any]:
    """Values of a record by the field names of `Step`.

    A value that is not a number is omitted, because another rank's text may be mixed in. So is an impossible value,
    such as a step time of zero. A loss that is not finite is kept, because it is a fault that checks look for.
    """
    values = dict[str, Any]()
    for item in record.split(gap):
        key, _, text = item.rpartition(mark)
        name = names.get(key)
        if name is None:
            continue
        try:
            value = float(text)
        except ValueError:
            continue
        if name == "consumed_samples" and mark != b"=" and b"e" in text.lower():
            continue  # rounded, so differences between steps would be wrong
        low, high = _POSSIBLE.get(name, (-inf, inf))
        if name in _MAY_BE_NAN or (isfinite(value) and low <= value <= high):
            values[name] = value
    return values
