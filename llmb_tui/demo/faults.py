"""Faults that tests and curious people switch on: one file each in `slurm/faults` below the cluster's root.

A simulated Run:ai has the first four of them, in `faults` below its root; what is submitted from then on has them.

| file | its text | what happens |
|---|---|---|
| `fail-at-step` | step number | the training program dies there with a Python traceback, exit status 1 |
| `hang-at-step` | step number | the training program stops there and prints nothing more |
| `slow` | factor | every training step takes that many times as long |
| `queue-wait` | simulated seconds | how long a new job waits in the queue at least |
| `controller-down` | | every Slurm client says that it cannot reach the controller |
| `no-accounting` | | `sacct` and `sacctmgr` say that there is no accounting |
| `answer-delay` | real seconds | `sbatch` submits at once and answers that much later: time to cut the line |
| `no-space` | | `enroot import` runs out of disk space half-way |
| `socket` | | NCCL finds no InfiniBand: its lines about the network name sockets |

A running job reads `fail-at-step`, `hang-at-step` and `slow` before each step.
"""

from __future__ import annotations

from pathlib import Path


def folder(state: Path) -> Path:
    """Where the files lie, from the state directory of the small Slurm."""
    return state / "faults"


def text(state: Path, name: str) -> str | None:
    """The text of a fault that is switched on, else None."""
    try:
        return (folder(state) / name).read_text().strip()
    except FileNotFoundError:
        return None


def number(state: Path, name: str) -> float | None:
    """The number of a fault that is switched on, else None."""
    digits = text(state, name)
    return None if digits is None else float(digits)
