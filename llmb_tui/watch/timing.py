"""`Timing`: intervals between checks of the runs, on this machine and on their clusters."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """Intervals of the watch, in seconds."""

    read_every_s: float = 2.0
    """Between reads of the run folders on this machine."""
    look_every_s: float = 10.0
    """Between queries of Slurm about the jobs of a cluster, while something changes; see `job_poller`."""
    settle_every_s: float = 10.0
    """Between queries about an unknown submission: a launch by the recipe's scripts takes minutes."""
