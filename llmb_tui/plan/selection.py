"""`Selection`: what a person has chosen to run."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

Procedure = Literal["direct", "recipe"]
"""How a run is started: by our script in the container, or by the recipe's own scripts, as published."""


@dataclass(frozen=True, slots=True)
class Overrides:
    """Parallelism fields set by hand; None leaves the recipe's value. `vp=1` and `ep=1` mean none."""

    tp: int | None = None
    pp: int | None = None
    cp: int | None = None
    ep: int | None = None
    vp: int | None = None
    mbs: int | None = None
    gbs: int | None = None
    seq_len: int | None = None
    layers: int | None = None

    def given(self) -> dict[str, int]:
        """The fields that are set."""
        return {f.name: v for f in fields(self) if (v := getattr(self, f.name)) is not None}


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What a run does beside the benchmark itself, or otherwise than the benchmark."""

    hub_tokenizer: bool = False
    """Take the model's own tokenizer from the model hub instead of one that needs no download."""
    profile: bool = False
    """Make an Nsight Systems profile of some steps."""
    profile_start: int | None = None
    """First profiled step; None is the recipe's default."""
    profile_stop: int | None = None
    """The step that ends the profile and the run; None is the recipe's default."""
    nccl_trace: bool = False
    """Let NCCL log what it does, over a few steps."""
    save_checkpoint: bool = False
    load_checkpoint: str | None = None
    """Directory of a checkpoint on the cluster, the parent of `weights`. The run then takes one step."""


NOTHING_MORE = RunOptions()
"""The benchmark itself."""


@dataclass(frozen=True, slots=True)
class Selection:
    """One configuration, named as `llmb-run` names it. GPU type and precision are lower case."""

    workload: str
    release: str
    size: str
    gpu: str
    dtype: str
    scale: int
    """Number of GPUs."""
    strong_scaling: bool = False
    overrides: Overrides = Overrides()
    steps: int | None = None
    """Training steps; None is the recipe's default."""
    time_limit: str | None = None
    """Slurm time limit `HH:MM:SS`; None is the recipe's default."""
    options: RunOptions = NOTHING_MORE
