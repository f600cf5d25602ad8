"""`Timing`: how often the runs are looked at, here and on their clusters."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """How often the watch looks, in seconds."""

    read_every_s: float = 2.0
    """The folders of the runs on this machine."""
    look_every_s: float = 10.0
    """Slurm is asked about the jobs of a cluster, while something changes; see `job_poller`."""
    settle_every_s: float = 10.0
    """A cluster is asked again what became of a submission: a launch by the recipe's own scripts takes minutes."""
