"""`df` on the login node: the shared file system is simulated, any other is this machine's own.

Nothing large is ever written there, so a laptop with a full disk walks the whole journey all the same.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from llmb_tui.demo.slurm.pyxis import SYSTEM_PATH
from llmb_tui.demo.slurm.store import Store

SIZE_KIB, USED_KIB = 500 * 1024**3, 320 * 1024**3
HEADING = "Filesystem     1024-blocks      Used Available Capacity Mounted on"


def main(store: Store, arguments: list[str]) -> int:
    """Run `df`."""
    shared = store.path.parent / "shared"
    if arguments[:1] == ["-Pk"] and len(arguments) == 2 and Path(arguments[1]).resolve().is_relative_to(shared):
        free = SIZE_KIB - USED_KIB
        sys.stdout.write(f"{HEADING}\nsimulated {SIZE_KIB} {USED_KIB} {free} {100 * USED_KIB // SIZE_KIB}% {shared}\n")
        return 0
    return subprocess.call(["df", *arguments], env={**os.environ, "PATH": SYSTEM_PATH})
