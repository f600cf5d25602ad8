"""What this program is compared with: its own older version, and other terminal programs. They are kept in `.bench`."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path

HERE = str(Path(__file__).parent.parent)
OLDER = "f0ad91f"
"""The commit that is called `before`."""
_OLDER_NEEDS = "scipy>=1.15"
"""What it imports and this version does not."""
PEERS = {"toolong": ("toolong==1.5.0", "tl"), "harlequin": ("harlequin==2.17.0", "harlequin")}
_QUIET = ("--quiet", "--disable-pip-version-check")
_KEPT = Path(HERE) / ".bench"


@functools.cache
def before() -> str:
    """A tree of the older version: `LLMB_BENCH_BEFORE`, or out of this repository; empty where there is none."""
    if named := os.environ.get("LLMB_BENCH_BEFORE", ""):
        return named
    tree = _KEPT / OLDER
    if not tree.exists():
        made = subprocess.run(["git", "archive", OLDER], cwd=HERE, capture_output=True, check=False)
        if made.returncode:
            _say(f"no older version to compare with: {_last_line(made.stderr)}")
            return ""
        tree.mkdir(parents=True)
        subprocess.run(["tar", "-x", "-C", str(tree)], input=made.stdout, check=True)
        pip = [sys.executable, "-m", "pip", "install", *_QUIET, "--no-deps", "--target", str(tree), _OLDER_NEEDS]
        if (done := subprocess.run(pip, capture_output=True, check=False)).returncode:
            _say(f"the older version lacks {_OLDER_NEEDS}: {_last_line(done.stderr)}")
    return str(tree)


@functools.cache
def peer(name: str) -> str:
    """The path of another program's command, installed into an environment of its own; empty where that cannot be."""
    wanted, command = PEERS[name]
    home = _KEPT / wanted
    if not (home / "bin" / command).exists():
        _say(f"installing {wanted}")
        pip = [str(home / "bin" / "python"), "-m", "pip", "install", *_QUIET, wanted]
        for step in ([sys.executable, "-m", "venv", str(home)], pip):
            done = subprocess.run(step, capture_output=True, check=False)
            if done.returncode:
                _say(f"{wanted} cannot be installed: {_last_line(done.stderr)}")
                return ""
    return str(home / "bin" / command)


def _last_line(said: bytes) -> str:
    return (said.decode(errors="replace").strip().splitlines() or ["it does not say why"])[-1]


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
