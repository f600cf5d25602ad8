"""`git` on the login node: what is on this machine is the real program's, and nothing is fetched from elsewhere.

The demo simulates the direct procedure, which needs no repository. The published one would clone and install gigabytes
on the user's own machine, so it ends here.
"""

from __future__ import annotations

import os
import re
import subprocess

from llmb_tui.demo.slurm.options import Refusal
from llmb_tui.demo.slurm.pyxis import SYSTEM_PATH
from llmb_tui.demo.slurm.store import Store

_ELSEWHERE = re.compile(r"(?:https?|ssh|git)://\S+|[\w.-]+@[\w.-]+:\S+")


def main(_: Store, arguments: list[str]) -> int:
    """Run `git`."""
    for word in arguments:
        if _ELSEWHERE.fullmatch(word):
            raise Refusal(
                f"fatal: unable to access '{word}': the demo cluster has no internet; choose the direct procedure", 128
            )
    return subprocess.call(["git", *arguments], env={**os.environ, "PATH": SYSTEM_PATH})
