"""Entry of everything that runs on the simulated cluster, started by path: `command.py STATE NAME ARGUMENT…`.

It is run as `python -S -E`, which starts in some hundredths of a second: only the standard library is there,
and this file makes the package importable.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

CLIENTS = ("sacct", "sacctmgr", "sbatch", "scancel", "scontrol", "sinfo", "squeue", "srun")
"""Slurm's commands."""
LOGIN_COMMANDS = (*CLIENTS, "curl", "df", "enroot", "git")
"""On the PATH of the login node."""
NODE_COMMANDS = ("hostname", "sudo")
"""Before all others on the PATH of a job."""
TRAINERS = ("python", "python3")
CONTAINER_COMMANDS = (*TRAINERS, "nsys", "numactl")
"""Before all others on the PATH of a step with a container image."""


def main() -> int:
    """Run the command; its exit status."""
    from llmb_tui.demo.slurm.options import Refusal  # noqa: PLC0415  # only now can the package be found
    from llmb_tui.demo.slurm.store import Store  # noqa: PLC0415

    state, name, *arguments = sys.argv[1:]
    store = Store(Path(state))
    module = "llmb_tui.demo.trainer" if name in TRAINERS else f"llmb_tui.demo.slurm.{name}"
    try:
        if name in CLIENTS and store.fault("controller-down") is not None and name not in ("sacct", "sacctmgr"):
            raise Refusal("slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
        return int(importlib.import_module(module).main(store, arguments))
    except Refusal as refusal:
        sys.stderr.write(f"{refusal.text}\n")
        return refusal.code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


if __name__ == "__main__":
    # The folder that holds the package takes the place of this file's, behind the standard library.
    sys.path[:1] = []
    sys.path.append(str(Path(__file__).resolve().parents[2]))
    sys.exit(main())
