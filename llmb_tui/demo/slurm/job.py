"""`DemoJob`: one job of the simulated Slurm, and the clock that it runs on.

A job's own clock runs `speed` times faster than real time from the moment it was submitted: its waiting, its
run time and its time limit are simulated seconds, and the times that Slurm's commands print for it agree with
each other. A new job starts again at the real time, so the cluster never drifts away from its user.
"""

from __future__ import annotations

import time

from llmb_tui.demo.slurm import notation

PENDING, RUNNING, COMPLETING = "PENDING", "RUNNING", "COMPLETING"
COMPLETED, FAILED, CANCELLED, TIMEOUT, NODE_FAIL = "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"


class DemoJob:
    """One job. Moments are Unix times on the job's own clock; `created` is where that clock began.

    No dataclass: to import those takes as long as Python takes to start, and each of Slurm's commands would pay for it.
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
    """It waits in the queue at least until then."""
    state: str = PENDING
    reason: str = "Priority"
    node_names: list[str]
    started: float | None = None
    ended: float | None = None
    closed: float | None = None
    """When it ended, in real time."""
    exit_code: int = 0
    signal: int = 0
    completing: bool = False
    """Its end is decided and its processes are being ended."""
    cancelled_by: int | None = None
    """Id of the user who cancelled it."""
    steps: int = 0
    """How many steps were started."""
    dependency: str = ""
    """`afterok:1:2` or `afterany:1`: the jobs that it waits for; empty: none."""

    def __init__(self, **fields: object) -> None:
        """Of these fields; the others are as they are before it starts."""
        vars(self).update({"node_names": [], **fields})

    def record(self) -> dict[str, object]:
        """All its fields."""
        return {name: getattr(self, name) for name in DemoJob.__annotations__}

    @classmethod
    def of(cls, record: dict[str, object]) -> DemoJob:
        """The job of a record. Raises ValueError for the record of another version."""
        if record.keys() != cls.__annotations__.keys():
            raise ValueError("other fields than those of a job")
        return cls(**record)

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
        return notation.compress(self.node_names)

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
        """A file name of `--output`, with its number for `%j`, as an absolute path."""
        text = pattern.replace("%j", str(self.id))
        return text if text.startswith("/") else f"{self.work_dir}/{text}"

    def variables(self) -> dict[str, str]:
        """The SLURM_ variables of its script, and of task 0 of its steps."""
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
