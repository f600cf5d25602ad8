"""`numactl` and `nsys` in the rig's stand-in for a container: copies of the demo's programs next to this file."""

from __future__ import annotations

import json
import os
import sys


def main(program: str, words: list[str]) -> int:
    """Run a program; returns its exit status."""
    sys.path.insert(0, "/run/rig/lib")
    from llmb_tui.demo import node_programs
    from llmb_tui.demo.slurm.options import RefusedError
    from llmb_tui.demo.slurm.pyxis import MOUNTS

    if program == "nsys" and words in (["--version"], ["status", "--env"]):
        sys.stdout.write("Test double of nsys: nothing is ever profiled\n")
        return 0
    os.environ[MOUNTS] = json.dumps([["", "/"]])  # unlike on the demo cluster, paths need no translation
    try:
        return {"numactl": node_programs.numactl, "nsys": node_programs.nsys}[program](None, words)
    except RefusedError as refusal:
        sys.stderr.write(f"{refusal.text}\n")
        return refusal.code


if __name__ == "__main__":
    sys.exit(main(os.path.basename(sys.argv[0]), sys.argv[1:]))
