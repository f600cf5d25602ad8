"""What the simulated site has: nodes, partitions, one account."""

from __future__ import annotations

from dataclasses import dataclass

VERSION = "22.05.8"
CLUSTER = "demo"
ACCOUNT = "demo"
QOS = "normal"

NODES = tuple(f"demo{number:03d}" for number in range(1, 289))
"""288 nodes: 2304 GPUs, the largest published scale."""
CPUS_PER_NODE = 112
MEMORY_MB = 2_000_000
GPU_TYPE = "h100"
GPUS_PER_NODE = 8
GRES = f"gpu:{GPU_TYPE}:{GPUS_PER_NODE}"

MIN_JOB_AGE_S = 300
"""How long the controller remembers a finished job, real seconds; accounting remembers all."""
KILL_WAIT_S = 2.0
"""From SIGTERM to SIGKILL, real seconds: processes need real time to end."""


@dataclass(frozen=True)
class Partition:
    """One partition; every node belongs to each of them."""

    name: str
    max_minutes: int
    default_minutes: int
    max_nodes: int | None
    default: bool = False
    priority_tier: int = 1

    @property
    def starred(self) -> str:
        """The name as `sinfo` prints it: the default partition carries a star."""
        return f"{self.name}*" if self.default else self.name

    @property
    def job_size(self) -> str:
        """Smallest and largest job, as `sinfo` prints them."""
        return f"1-{self.max_nodes or 'infinite'}"


PARTITIONS = (
    Partition("batch", max_minutes=240, default_minutes=60, max_nodes=None, default=True),
    Partition("debug", max_minutes=30, default_minutes=10, max_nodes=2, priority_tier=10),
)


def partition(name: str) -> Partition | None:
    """The partition of that name; None where there is none."""
    return next((p for p in PARTITIONS if p.name == name), None)
