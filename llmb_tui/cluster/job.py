"""`Job`: the state of one job at one moment, as the scheduler reports it."""

from __future__ import annotations

from dataclasses import dataclass

# The text of a state may have a tail (`CANCELLED by 1000`): `Job.state` is its first word.
TERMINAL_STATES = frozenset(
    "BOOT_FAIL CANCELLED COMPLETED DEADLINE ENDED FAILED NODE_FAIL OUT_OF_MEMORY PREEMPTED REVOKED TIMEOUT".split()
)
WAITING_STATES = frozenset(
    "PENDING CONFIGURING EXPEDITING REQUEUED REQUEUED_CRON REQUEUE_FED REQUEUE_HOLD RESV_DEL_HOLD SPECIAL_EXIT".split()
)
"""States of a job whose batch script waits for its first or its next start."""

LEFT_QUEUE = "LEFT_QUEUE"
"""State of a job that the queue does not list, if accounting cannot be queried. A new job may be listed
a moment later."""
END_UNKNOWN = "ENDED"
"""Last state of such a job: it has ended, and only its log shows how."""
NO_ACCOUNTING = "the queue no longer has it, and accounting cannot be queried"
"""Reason of both states."""
GONE_AFTER_S = 60.0
"""A job that the scheduler has not known for this long, although it answers, has ended."""

ENDED_UNHEARD = "Slurm's queue no longer has it, and accounting has not heard of its end"
"""Reason of a job that has ended but is not in accounting yet."""


@dataclass(frozen=True, slots=True)
class Job:
    """One job, in Slurm's own words."""

    id: str
    name: str
    state: str
    """First word of Slurm's state, such as PENDING or COMPLETED."""
    reason: str = ""
    """Slurm's reason why the job waits, or the user who cancelled it."""
    nodes: int | None = None
    elapsed_s: float | None = None
    exit_code: str | None = None
    """`code:signal` of a job that ended."""
    restarts: int = 0
    starts_at: float | None = None
    """Expected start of a waiting job, Unix time; None until Slurm has planned it."""
    node_list: str = ""
    """Its nodes, such as `cn[001-004]`; empty until nodes are allocated."""
    bad_nodes: tuple[str, ...] = ()
    """Broken nodes after a node failure, each with Slurm's reason."""

    @property
    def finished(self) -> bool:
        """True in a state that Slurm does not leave by itself."""
        return self.state in TERMINAL_STATES

    @property
    def goes_on(self) -> bool:
        """True if the job has certainly not ended."""
        return not self.finished and self.state not in ("COMPLETING", LEFT_QUEUE) and self.reason != ENDED_UNHEARD

    @property
    def waiting(self) -> bool:
        """True while its batch script waits for its first or its next start."""
        return self.state in WAITING_STATES


@dataclass(frozen=True, slots=True)
class OwnJob:
    """A job of the user. Its texts are Slurm's own, not clean."""

    id: str
    name: str
    submitted_at: float
    """Unix time, by the controller's clock."""
    folder: str
    """Its working directory, without symbolic links."""
    script: str = ""
    """Path of its batch script; empty if only accounting has the job."""
