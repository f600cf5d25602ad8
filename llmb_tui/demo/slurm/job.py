"""`Job`: one job of the small Slurm, and the clock that it runs on.

A job's own clock runs `speed` times faster than real time from the moment it was submitted: its waiting, its
run time and its time limit are simulated seconds, and the times that Slurm's commands print for it agree with
each other. A new job starts again at the real time, so the cluster never drifts away from its user.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from llmb_tui.demo.slurm import facts, hostlist

PENDING, RUNNING, COMPLETING = "PENDING", "RUNNING", "COMPLETING"
COMPLETED, FAILED, CANCELLED, TIMEOUT, NODE_FAIL = "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"
SHORT_STATES = {
    PENDING: "PD",
    RUNNING: "R",
    COMPLETING: "CG",
    COMPLETED: "CD",
    FAILED: "F",
    CANCELLED: "CA",
    TIMEOUT: "TO",
    NODE_FAIL: "NF",
}
ALL_STATES = (
    "PENDING,RUNNING,SUSPENDED,COMPLETED,CANCELLED,FAILED,TIMEOUT,NODE_FAIL,PREEMPTED,BOOT_FAIL,DEADLINE,"
    "OUT_OF_MEMORY,COMPLETING,CONFIGURING,RESIZING,RESV_DEL_HOLD,REQUEUED,REQUEUE_FED,REQUEUE_HOLD,REVOKED,"
    "SIGNALING,SPECIAL_EXIT,STAGE_OUT,STOPPED"
)
"""What Slurm calls valid; only those above occur here."""


@dataclass
class Step:
    """One step of a job, as accounting shows it. Moments are on the job's clock."""

    id: str
    name: str
    nodes: int
    tasks: int
    started: float
    state: str = RUNNING
    ended: float | None = None
    exit_code: int = 0
    signal: int = 0


@dataclass
class Job:
    """One job. Moments are Unix times on the job's own clock; `created` is where that clock began."""

    id: int
    name: str
    user: str
    uid: int
    account: str
    partition: str
    nodes: int
    tasks: int
    tasks_per_node: int
    gpus_per_node: int
    minutes: int
    """Time limit."""
    command: str
    """Path of the batch script; `(null)` without one."""
    work_dir: str
    output: str
    error: str
    """Empty: the same file as `output`."""
    append: bool
    requeue: bool
    submit_line: str
    speed: float
    created: float
    eligible: float
    """It waits in the queue at least until then."""
    state: str = PENDING
    reason: str = "None"
    node_names: list[str] = field(default_factory=list)
    started: float | None = None
    ended: float | None = None
    closed: float | None = None
    """When it ended, in real time."""
    exit_code: int = 0
    signal: int = 0
    restarts: int = 0
    completing: bool = False
    """Its end is decided and its processes are being ended."""
    cancelled_by: int | None = None
    requeue_wanted: bool = False
    steps: list[Step] = field(default_factory=list)

    @property
    def active(self) -> bool:
        """True until its processes are gone."""
        return self.state in (PENDING, RUNNING) or self.completing

    @property
    def shown_state(self) -> str:
        """The state as `squeue` names it."""
        return COMPLETING if self.completing else self.state

    @property
    def node_list(self) -> str:
        """Its nodes as a host list; empty while it waits."""
        return hostlist.compress(self.node_names)

    @property
    def cpus(self) -> int:
        """CPUs that it has, or asks for while it waits: nodes are given whole."""
        return self.nodes * facts.CPUS_PER_NODE if self.node_names else self.tasks

    @property
    def tres(self) -> str:
        """Its resources, as `scontrol` and `sacct` list them."""
        gpus = f",gres/gpu={self.nodes * self.gpus_per_node}" if self.gpus_per_node else ""
        return f"cpu={self.cpus},mem={self.nodes * facts.MEMORY_MB}M,node={self.nodes},billing={self.cpus}{gpus}"

    def now(self) -> float:
        """The time on its clock."""
        return self.created + (time.time() - self.created) * self.speed

    def elapsed(self) -> float:
        """Simulated seconds that it has run; never more than its time limit."""
        if self.started is None:
            return 0.0
        end = self.now() if self.ended is None else self.ended
        return max(0.0, min(end - self.started, self.minutes * 60.0))

    def close(self) -> None:
        """End it now, or at its time limit if that has passed."""
        self.completing = False
        self.ended, self.closed = self.now(), time.time()
        if self.started is not None:
            self.ended = min(self.ended, self.started + self.minutes * 60)

    def fill(self, pattern: str) -> str:
        """A file name pattern of `--output`, with %j, %x and the like filled in, as an absolute path."""
        words = {"j": str(self.id), "A": str(self.id), "J": str(self.id), "x": self.name, "u": self.user}
        words |= {"N": (self.node_names or [""])[0], "n": "0", "t": "0", "s": "0", "%": "%"}
        text, position = "", 0
        while position < len(pattern):
            letter = pattern[position + 1 : position + 2]
            if pattern[position] == "%" and letter in words:
                text += words[letter]
                position += 2
            else:
                text += pattern[position]
                position += 1
        return text if text.startswith("/") else f"{self.work_dir}/{text}"


def from_document(document: dict[str, Any]) -> Job:
    """The job of a state file."""
    return Job(**{**document, "steps": [Step(**step) for step in document["steps"]]})
