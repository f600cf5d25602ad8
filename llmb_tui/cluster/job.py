"""`Job`: what Slurm says about one job at one moment."""

from __future__ import annotations

import re
from dataclasses import dataclass

from llmb_tui.diagnosis.rules import rules
from llmb_tui.language.text import clean_line

# Text of a state may carry a tail (`CANCELLED by 1000`): `Job.state` is its first word.
TERMINAL_STATES = frozenset(
    "BOOT_FAIL CANCELLED COMPLETED DEADLINE FAILED NODE_FAIL OUT_OF_MEMORY PREEMPTED REVOKED TIMEOUT".split()
)
WAITING_STATES = frozenset(
    "PENDING CONFIGURING EXPEDITING REQUEUED REQUEUED_CRON REQUEUE_FED REQUEUE_HOLD RESV_DEL_HOLD SPECIAL_EXIT".split()
)
"""States of a job whose batch script does not run yet, or not again yet."""

ENDED_UNHEARD = "Slurm's queue no longer has it, and accounting has not heard of its end"
"""The reason of a job that has ended, and nobody says how yet."""


@dataclass(frozen=True, slots=True)
class Job:
    """One job, in Slurm's own words."""

    id: str
    name: str
    state: str
    """First word of Slurm's state, such as PENDING or COMPLETED."""
    reason: str = ""
    """Why it waits, as Slurm prints it, or who cancelled it."""
    nodes: int | None = None
    elapsed_s: float | None = None
    exit_code: str | None = None
    """`code:signal` of a job that ended."""
    restarts: int = 0
    starts_at: float | None = None
    """While it waits: when Slurm expects to start it, Unix time; None where the scheduler has not come to it."""
    node_list: str = ""
    """Its nodes, such as `cn[001-004]`; empty before it has any."""
    bad_nodes: tuple[str, ...] = ()
    """After a node failure: those of its nodes that do not work, each with Slurm's reason."""

    @property
    def finished(self) -> bool:
        """True in a state that Slurm does not leave by itself."""
        return self.state in TERMINAL_STATES

    @property
    def goes_on(self) -> bool:
        """True where it is certain that nothing has ended it yet."""
        return not self.finished and self.state != "COMPLETING" and self.reason != ENDED_UNHEARD

    @property
    def waiting(self) -> bool:
        """True while its batch script does not run yet, or not again yet."""
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
    """Path of its batch script; empty where only accounting knows it."""


def words_of_job(job: Job) -> str:
    """Why it waits or who cancelled it, and how it ended where that was not well; may be empty."""
    ended = f"exit {job.exit_code}" if job.finished and job.exit_code not in (None, "0:0") else ""
    reason = pending_reason(job.reason) if job.waiting else clean_line(job.reason)
    return " · ".join(filter(None, (ended, reason)))


def pending_reason(reason: str) -> str:
    """Slurm's reason for waiting in plain words; Slurm's own, clean, where there are none."""
    word = reason.strip()
    word = word[1:-1] if word.startswith("(") and word.endswith(")") else word
    rule_set = rules("pending")
    match = rule_set.match(word) or rule_set.match(re.split(r"[,:]", word)[0])
    return match.diagnosis().sentences if match else clean_line(word)
