"""Labels of runs: the workload with its size and precision, and its GPUs. Pure."""

from __future__ import annotations

from llmb_tui.language.quantities import count


def workload_label(name: str, size: str, dtype: str) -> str:
    """A model in one size and precision: `nemotron4 15b fp8`. `name` may name the release too."""
    return f"{name} {size} {dtype}"


def gpus_label(number: int, gpu_type: str) -> str:
    """Number and type of GPUs: `1,024 × H100`."""
    return f"{count(number)} × {gpu_type.upper()}"


def gpus_cell(number: int, gpu_type: str) -> str:
    """`gpus_label` for a narrow column: `1024×H100`."""
    return f"{number}×{gpu_type.upper()}"


def run_label(name: str, size: str, dtype: str, number: int, gpu_type: str) -> str:
    """A workload and its GPUs: `nemotron4 15b fp8 · 64 × H100`."""
    return f"{workload_label(name, size, dtype)} · {gpus_label(number, gpu_type)}"
