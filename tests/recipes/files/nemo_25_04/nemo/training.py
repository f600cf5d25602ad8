# ruff: noqa: ARG001 - the arguments are what is written down
"""What NeMo-Run writes down for the container: there, the rig's `python` reads it and plays the training."""

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
