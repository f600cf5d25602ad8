# ruff: noqa: ARG001 - the arguments are part of the stored configuration
"""Target of the configuration that NeMo-Run stores for the container: the rig's `python` reads it and simulates it."""

from __future__ import annotations


def pretrain(
    *,
    model: str,
    size: str,
    release: str,
    dtype: str,
    max_steps: int,
    global_batch_size: int,
    tensor_parallel: int,
    pipeline_parallel: int,
    context_parallel: int,
    enable_checkpointing: bool = False,
    checkpoint: str = "",
    profile_steps: str = "",
) -> None:
    """Never called. Raises RuntimeError."""
    raise RuntimeError("stand-in: there is nothing here that trains")
