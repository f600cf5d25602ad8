"""Entry point of all programs on the simulated cluster, started by path: `command.py STATE NAME ARGUMENT…`.

It runs with `python -S -E`, which starts within some hundredths of a second: only the standard library is available,
and this file makes the package importable.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

TYPE_CHECKING = False  # importing it from `typing` takes too long
if TYPE_CHECKING:
    from llmb_tui.demo.slurm.store import Store

ACCOUNTING = ("sacct", "sacctmgr")
CLIENTS = ("sbatch", "scancel", "scontrol", "sinfo", "squeue", "srun")
"""Slurm's commands that ask the controller."""
LOGIN = ("curl", "df", "git")
NODE = ("hostname", "sudo", "nsys", "numactl")
TRAINERS = ("python", "python3")
MODULES = {
    "enroot": "enroot",
    **dict.fromkeys(ACCOUNTING, "slurm.accounting"),
    **dict.fromkeys(("scontrol", "sinfo"), "slurm.site"),
    **dict.fromkeys(("scancel", "squeue"), "slurm.queue"),
    **dict.fromkeys(TRAINERS, "trainer"),
    **dict.fromkeys(LOGIN, "login_programs"),
    **dict.fromkeys(NODE, "node_programs"),
}
"""Module of each program that is not a module of `slurm` with the same name."""
FOLDERS = {
    "bin": (*ACCOUNTING, *CLIENTS, *LOGIN, "enroot"),
    "node-bin": NODE[:2],
    "container-bin": (*TRAINERS, *NODE[2:]),
}
"""Programs on the PATH of the login node, first on that of a job, and on that of a step in a container."""


def main() -> int:
    """Run the command; return its exit status."""
    from llmb_tui.demo.slurm.options import RefusedError  # noqa: PLC0415  # the package can be imported only now
    from llmb_tui.demo.slurm.store import Store  # noqa: PLC0415

    state, name, *arguments = sys.argv[1:]
    store = Store(Path(state))
    try:
        if name in CLIENTS and store.fault("controller-down") is not None:
            raise RefusedError("slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
        return program(name)(store, arguments)
    except RefusedError as refusal:
        sys.stderr.write(f"{refusal.text}\n")
        return refusal.code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def program(name: str) -> Callable[[Store, list[str]], int]:
    """Function of a command: the state and the arguments in, the exit status out."""
    module = importlib.import_module(f"llmb_tui.demo.{MODULES.get(name, f'slurm.{name}')}")
    main_of: Callable[[Store, list[str]], int] = getattr(module, name, None) or module.main
    return main_of


if __name__ == "__main__":
    # The folder of the package replaces the folder of this file, behind the standard library.
    sys.path[:1] = []
    sys.path.append(str(Path(__file__).resolve().parents[2]))
    sys.exit(main())
