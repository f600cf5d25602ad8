"""`python` in the rig's stand-in for a container: rank 0 of a training prints its log, the other ranks wait for it.

The real Python runs all other programs. A job has many ranks, and each rank imports this file.
"""

from __future__ import annotations

import os
import sys
import time

REAL = "/usr/bin/python3"
RANK_ZERO = "/run/rig/lib/rank_zero.py"
PROGRAMS = ("pretrain.py", "megatron_gpt_pretraining.py")
RUNNER = "nemo_run.core.runners.fdl_runner"


def main(words: list[str]) -> None:
    """Run `python`."""
    program = next((word for word in words if not word.startswith("-")), "")
    trains = os.path.basename(program) in PROGRAMS and not {"-c", "-m"} & set(words)
    if not trains and words[:2] != ["-m", RUNNER]:
        os.execv(REAL, [REAL, *words])
    numbers = (os.environ.get(f"SLURM_{name}", "0") for name in ("JOB_ID", "STEP_ID", "RESTART_COUNT"))
    end_file = f"/run/rig/training/{'.'.join(numbers)}"
    if os.environ.get("SLURM_PROCID", "0") == "0":
        os.execv(REAL, [REAL, "-I", RANK_ZERO, end_file, *words])
    while not os.path.exists(end_file):
        time.sleep(0.2)


if __name__ == "__main__":
    main(sys.argv[1:])
