"""The memory cgroup of a rig: with it Slurm ends jobs OUT_OF_MEMORY, in the words of most sites.

Slurm's own limits of memory are enforced by watching where the machine has no such cgroup (version 1): its jobs end
FAILED, with other words.
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
    """True where rigs can have one."""
    return (MEMORY / "memory.limit_in_bytes").exists() and os.access(MEMORY, os.W_OK)


def mount(machine: Machine) -> None:
    """Give the rig a part of its own for the whole."""
    own = MEMORY / machine.root.name
    remove(machine)
    own.mkdir()
    (own / "memory.use_hierarchy").write_text("1")
    machine.run(["mount", "--bind", str(own), str(MEMORY)], check=True)


def remove(machine: Machine) -> None:
    """Remove it, when the processes in it have ended."""
    own = MEMORY / machine.root.name
    if own.exists():
        until(lambda: _remove(own), "the rig's cgroup is empty")


def _remove(own: Path) -> bool:
    for folder, _, _ in os.walk(own, topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(folder)
    return not own.exists()
