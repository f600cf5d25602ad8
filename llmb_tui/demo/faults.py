"""Faults that tests and users can switch on: one file each in `slurm/faults` below the cluster's root.

A simulated Run:ai has the first four, in `faults` below its root; they apply to later submissions.

| file | its text | what happens |
|---|---|---|
| `fail-at-step` | step number | the training program dies there with a Python traceback, exit status 1 |
| `hang-at-step` | step number | the training program stops there and prints nothing more |
| `slow` | factor | every training step takes that many times as long |
| `queue-wait` | simulated seconds | shortest time that a new job waits in the queue |
| `controller-down` | | every Slurm client reports that it cannot reach the controller |
| `no-accounting` | | `sacct` and `sacctmgr` report that there is no accounting |
| `answer-delay` | real seconds | `sbatch` submits at once and answers that much later: time to cut the connection |
| `no-space` | | `enroot import` runs out of disk space half-way |
| `socket` | | NCCL finds no InfiniBand: its network lines name sockets |

A running job reads `fail-at-step`, `hang-at-step` and `slow` before each step.
"""

from __future__ import annotations

from pathlib import Path


def folder(state: Path) -> Path:
    """Folder of the fault files in the state directory of the simulated Slurm."""
    return state / "faults"


def text(state: Path, name: str) -> str | None:
    """Text of an active fault, else None."""
    try:
        return (folder(state) / name).read_text().strip()
    except FileNotFoundError:
        return None


def number(state: Path, name: str) -> float | None:
    """Number of an active fault, else None."""
    digits = text(state, name)
    return None if digits is None else float(digits)
