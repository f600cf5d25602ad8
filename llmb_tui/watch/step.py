"""`Step`: one training step as the log reports it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """One step. Fields that the log does not carry are None."""

    index: int
    """0-based training step."""
    total: int | None
    """Number of steps of the run."""
    step_time_s: float | None = None
    loss: float | None = None
    consumed_samples: float | None = None
    memory_peak_bytes: float | None = None
    memory_allocated_bytes: float | None = None
    tflops_per_gpu: float | None = None
