"""The memory cgroup of a rig: with it Slurm ends jobs as OUT_OF_MEMORY, with the message that most sites see.

On a machine without such a cgroup (version 1) Slurm enforces memory limits by sampling: jobs end as FAILED, with
another message.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from tests.kit.waiting import until
from tests.rig.machine import Machine

MEMORY = Path("/sys/fs/cgroup/memory")
CONF = "CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\nConstrainRAMSpace=yes\nConstrainSwapSpace=yes\n"


def available() -> bool:
    """True if rigs on this machine can have a memory cgroup."""
    return (MEMORY / "memory.limit_in_bytes").exists() and os.access(MEMORY, os.W_OK)


def mount(machine: Machine) -> None:
    """Mount the rig's own part of the memory cgroup in place of the whole."""
    group = MEMORY / machine.root.name
    remove(machine)
    group.mkdir()
    (group / "memory.use_hierarchy").write_text("1")
    machine.run(["mount", "--bind", str(group), str(MEMORY)], check=True)


def remove(machine: Machine) -> None:
    """Remove the cgroup after its processes have ended."""
    group = MEMORY / machine.root.name
    if group.exists():
        until(lambda: _remove(group), "the rig's cgroup is empty")


def _remove(group: Path) -> bool:
    for folder, _, _ in os.walk(group, topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(folder)
    return not group.exists()
