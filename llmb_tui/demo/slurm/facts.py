"""Contents of the simulated site: nodes, partitions, one account."""

from __future__ import annotations

VERSION = "slurm 22.05.8"
CLUSTER = "demo"
ACCOUNT = "demo"
QOS = "normal"

NODES = tuple(f"demo{number:03d}" for number in range(1, 289))
"""288 nodes: 2304 GPUs, the largest published scale."""
CPUS_PER_NODE = 112
GPUS_PER_NODE = 8
GPU_TYPE = "h100"
GRES = f"gpu:{GPU_TYPE}:{GPUS_PER_NODE}"

MIN_JOB_AGE_S = 300
"""Real seconds for which the controller remembers a finished job; accounting remembers all jobs."""
KILL_WAIT_S = 2.0
"""Real seconds from SIGTERM to SIGKILL: processes need real time to end."""


class DemoPartition:
    """One partition; every node belongs to all partitions."""

    def __init__(self, name: str, *, max_minutes: int, default_minutes: int, max_nodes: int, mark: str = "") -> None:
        """`mark`: the star behind the name of the default partition."""
        self.name, self.mark = name, mark
        self.max_minutes, self.default_minutes, self.max_nodes = max_minutes, default_minutes, max_nodes


DEFAULT = DemoPartition("batch", max_minutes=240, default_minutes=60, max_nodes=len(NODES), mark="*")
PARTITIONS = {
    DEFAULT.name: DEFAULT,
    "debug": DemoPartition("debug", max_minutes=30, default_minutes=10, max_nodes=2),
}
