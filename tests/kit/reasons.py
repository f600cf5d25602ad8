"""Reasons of failures, as the program's rules give them: their words are tested in `tests/watch` and `tests/launch`."""

from __future__ import annotations

from llmb_tui.launch.step_state import explain
from llmb_tui.watch.failure import worst

OUT_OF_GPU_MEMORY = "torch.OutOfMemoryError: CUDA out of memory."
TIME_LIMIT = "slurmstepd: error: *** JOB 7 ON cn001 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***"
FULL_DISK = "Write failed because No space left on device"


def training_reason(line: str) -> str:
    """The reason for which a training failed, by a line of its log."""
    diagnosis = worst(f"{line}\n".encode())
    assert diagnosis is not None
    return diagnosis.reason


def install_reason(line: str) -> str:
    """The reason for which an install step failed, by a line of its log."""
    reason = explain([line]).reason
    assert reason
    return reason
