"""`Job`: what Slurm says about one job at one moment."""

from __future__ import annotations

from dataclasses import dataclass

# Text of a state may carry a tail (`CANCELLED by 1000`): `Job.state` is its first word.
TERMINAL_STATES = frozenset(
    "BOOT_FAIL CANCELLED COMPLETED DEADLINE FAILED NODE_FAIL OUT_OF_MEMORY PREEMPTED REVOKED TIMEOUT".split()
)


@dataclass(frozen=True, slots=True)
class Job:
    """One job, in Slurm's own words."""

    id: str
    name: str
    state: str
    """First word of Slurm's state, such as PENDING or COMPLETED."""
    reason: str = ""
    """Why it waits or how it ended, as Slurm prints it."""
    nodes: int | None = None
    elapsed_s: float | None = None
    exit_code: str | None = None
    """`code:signal`, known only to accounting."""
    restarts: int = 0

    @property
    def finished(self) -> bool:
        """True in a state that Slurm does not leave by itself."""
        return self.state in TERMINAL_STATES
