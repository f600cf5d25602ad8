"""`DemoJob`: one job of the simulated Slurm, and its clock.

A job's own clock runs `speed` times faster than real time from its submission: its wait, run time and time limit are
simulated seconds, and the times that Slurm's commands print for it agree with each other. A new job starts at the real
time again, so that the cluster's time never drifts away from the user's.
"""

from __future__ import annotations

import time

from llmb_tui.demo.slurm import notation

PENDING, RUNNING, COMPLETING = "PENDING", "RUNNING", "COMPLETING"
COMPLETED, FAILED, CANCELLED, TIMEOUT, NODE_FAIL = "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"


class DemoJob:
    """One job. Times are Unix times on the job's own clock, which began at `created`.

    Not a dataclass: importing `dataclasses` takes as long as starting Python, for each of Slurm's commands.
    """

    id: int
    name: str
    partition: str
    nodes: int
    tasks: int
    tasks_per_node: int
    minutes: int
    """Time limit."""
    command: str
    """Path of the batch script; `(null)` without one."""
    work_dir: str
    output: str
    speed: float
    created: float
    eligible: float
    """Earliest time at which it may leave the queue."""
    state: str = PENDING
    reason: str = "Priority"
    node_names: list[str]
    started: float | None = None
    ended: float | None = None
    closed: float | None = None
    """Real time of its end."""
    exit_code: int = 0
    signal: int = 0
    completing: bool = False
    """True while its processes are being ended."""
    cancelled_by: int | None = None
    """Id of the user who cancelled it."""
    steps: int = 0
    """Number of started steps."""
    dependency: str = ""
    """Jobs that it waits for, as `afterok:1:2` or `afterany:1`; empty if there are none."""

    def __init__(self, **fields: object) -> None:
        """Sets the given fields; the others have their values before the start."""
        vars(self).update({"node_names": [], **fields})

    def record(self) -> dict[str, object]:
        """All its fields by name."""
        return {name: getattr(self, name) for name in DemoJob.__annotations__}

    @classmethod
    def of(cls, record: dict[str, object]) -> DemoJob:
        """Job of a record. Raises ValueError for the record of another version."""
        if record.keys() != cls.__annotations__.keys():
            raise ValueError("other fields than those of a job")
        return cls(**record)

    @property
    def active(self) -> bool:
        """True until its processes have ended."""
        return self.state in (PENDING, RUNNING) or self.completing

    @property
    def shown_state(self) -> str:
        """The state as `squeue` names it."""
        return COMPLETING if self.completing else self.state

    @property
    def node_list(self) -> str:
        """Its nodes as a host list; empty while it waits."""
        return notation.compress(self.node_names)

    def now(self) -> float:
        """Time on its clock."""
        return self.created + (time.time() - self.created) * self.speed

    def elapsed(self) -> float:
        """Simulated seconds of its run time, at most its time limit."""
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
        """File name of `--output`, with the job id for `%j`, as an absolute path."""
        text = pattern.replace("%j", str(self.id))
        return text if text.startswith("/") else f"{self.work_dir}/{text}"

    def variables(self) -> dict[str, str]:
        """SLURM_ variables of its script, and of task 0 of its steps."""
        return {
            "SLURM_JOB_ID": str(self.id),
            "SLURM_JOB_NAME": self.name,
            "SLURM_JOB_NODELIST": self.node_list,
            "SLURM_JOB_NUM_NODES": str(self.nodes),
            "SLURM_JOB_PARTITION": self.partition,
            "SLURM_NTASKS": str(self.tasks),
            "SLURM_NTASKS_PER_NODE": str(self.tasks_per_node),
            "SLURM_LOCALID": "0",
            "SLURM_NODEID": "0",
            "SLURM_PROCID": "0",
            "SLURMD_NODENAME": self.node_names[0],
        }
