"""`Selection`: what a person has chosen to run."""

from __future__ import annotations

from dataclasses import dataclass, fields


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
