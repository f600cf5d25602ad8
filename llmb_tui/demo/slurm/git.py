"""`git` on the login node: the recipes' repository is simulated, anything else is the real program's."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from llmb_tui.demo.slurm.options import Parser, Refusal
from llmb_tui.demo.slurm.pyxis import SYSTEM_PATH
from llmb_tui.demo.slurm.store import Store

OPTIONS = "branch=/b depth= quiet/q single-branch"
REPOSITORY = re.compile(r"https://github\.com/NVIDIA/(dgxc-benchmarking|exemplar-performance)(\.git)?/?")
FILES = ("grok1/grok1_314b.yaml", "llama3.1/llama3.1_405b.yaml")
"""Configurations of the Hydra recipes; the training stand-in does not read them."""


def main(_: Store, arguments: list[str]) -> int:
    """Run `git`."""
    if arguments[:1] != ["clone"] or not any(REPOSITORY.fullmatch(word) for word in arguments):
        environment = {**os.environ, "PATH": SYSTEM_PATH}
        return subprocess.call(["git", *arguments], env=environment)
    asked = Parser("git clone", OPTIONS, refused=129, hint=False).parse(arguments[1:])
    name = asked.operands[1] if len(asked.operands) > 1 else "dgxc-benchmarking"
    if Path(name).exists():
        raise Refusal(f"fatal: destination path '{name}' already exists and is not an empty directory.", 128)
    if "quiet" not in asked:
        sys.stderr.write(f"Cloning into '{name}'...\n")
    for file in FILES:
        path = Path(name, file)
        path.parent.mkdir(parents=True)
        path.write_text(f"# simulated: stands for {file} at {asked.get('branch', 'main')}\n")
    return 0
