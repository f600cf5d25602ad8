"""`python` in the rig's stand-in for a container: takes the part of NeMo, prints its log, computes nothing.

The programs and their lines are those of the demo cluster's trainer, which is copied beside this file; any other
program is run by the real Python. Only rank 0 prints, the other ranks wait for it. Files in /run/rig: `speed` (how much
faster than real time), `faults/fail-at-step`, `faults/hang-at-step`, `faults/slow` (as the demo cluster has them) and
`faults/oom`: memory is taken until Slurm puts an end to it, or a limit is reached.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from llmb_tui.demo.slurm.store import Store

KNOBS = Path("/run/rig")
REAL = "/usr/bin/python3"
PROGRAMS = ("pretrain.py", "megatron_gpt_pretraining.py")
OOM_MB = 2000
"""How much memory is taken at most."""


class Clock:
    """What the trainer asks of a job: its number and its clock."""

    def __init__(self, number: int, speed: float) -> None:
        self.id = number
        self.speed = speed
        self._began = time.time()

    def now(self) -> float:
        """Seconds of Unix time, on the job's clock."""
        return self._began + (time.time() - self._began) * self.speed


class Jobs:
    """What the trainer asks of the demo cluster's Slurm."""

    path = KNOBS

    def read(self, number: int) -> Clock:
        """The job of that number."""
        return Clock(number, float((KNOBS / "speed").read_text()))


def main(words: list[str]) -> int:
    """Run `python`."""
    program = next((word for word in words if not word.startswith("-")), "")
    if os.path.basename(program) not in PROGRAMS or {"-c", "-m"} & set(words):
        os.execv(REAL, [REAL, *words])
    over = KNOBS / "training" / "{SLURM_JOB_ID}.{SLURM_STEP_ID}.{SLURM_RESTART_COUNT}".format_map(_Environment())
    if os.environ.get("SLURM_PROCID", "0") != "0":
        while not over.exists():
            time.sleep(0.2)
        return 0
    sys.path.insert(0, str(KNOBS / "lib"))
    from llmb_tui.demo import trainer
    from llmb_tui.demo.slurm.options import Refusal
    from llmb_tui.demo.slurm.pyxis import MOUNTS

    os.environ[MOUNTS] = json.dumps([["", "/"]])  # unlike on the demo cluster, everything is where it says

    if (KNOBS / "faults" / "oom").exists():
        take_memory()
    try:
        return trainer.main(cast("Store", Jobs()), words)
    except Refusal as refusal:
        sys.stderr.write(f"{refusal.text}\n")
        return refusal.code
    finally:
        over.touch()


def take_memory() -> None:
    """Take memory and keep it for a while, for Slurm to notice."""
    taken = [bytearray(os.urandom(1_000_000)) for _ in range(OOM_MB)]
    time.sleep(60)
    raise MemoryError(f"nobody minded {len(taken)} MB")


class _Environment(dict[str, Any]):
    def __missing__(self, name: str) -> str:
        return os.environ.get(name, "0")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
