"""Programs to compare with: an older version of this one, and other terminal programs. All are stored in `.bench`."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path

ROOT = str(Path(__file__).parent.parent)
OLD_COMMIT = "f0ad91f"
"""Commit of the older version; its rows are named `before`."""
_OLD_REQUIREMENT = "scipy>=1.15"
"""Package that only the older version imports."""
PEERS = {"toolong": ("toolong==1.5.0", "tl"), "harlequin": ("harlequin==2.17.0", "harlequin")}
_QUIET = ("--quiet", "--disable-pip-version-check")
_CACHE = Path(ROOT) / ".bench"


@functools.cache
def older_version() -> str:
    """Source tree of the older version, from `LLMB_BENCH_BEFORE` or this repository; empty if it is not available."""
    if override := os.environ.get("LLMB_BENCH_BEFORE", ""):
        return override
    tree = _CACHE / OLD_COMMIT
    if not tree.exists():
        archive = subprocess.run(["git", "archive", OLD_COMMIT], cwd=ROOT, capture_output=True, check=False)
        if archive.returncode:
            _report(f"the older version is not available: {_last_line(archive.stderr)}")
            return ""
        tree.mkdir(parents=True)
        subprocess.run(["tar", "-x", "-C", str(tree)], input=archive.stdout, check=True)
        pip = [sys.executable, "-m", "pip", "install", *_QUIET, "--no-deps", "--target", str(tree), _OLD_REQUIREMENT]
        if (process := subprocess.run(pip, capture_output=True, check=False)).returncode:
            _report(f"{_OLD_REQUIREMENT} cannot be installed for the older version: {_last_line(process.stderr)}")
    return str(tree)


@functools.cache
def peer_command(name: str) -> str:
    """Install another program into a separate environment; return its command's path, or empty if pip failed."""
    requirement, command = PEERS[name]
    home = _CACHE / requirement
    if not (home / "bin" / command).exists():
        _report(f"installing {requirement}")
        pip = [str(home / "bin" / "python"), "-m", "pip", "install", *_QUIET, requirement]
        for step in ([sys.executable, "-m", "venv", str(home)], pip):
            process = subprocess.run(step, capture_output=True, check=False)
            if process.returncode:
                _report(f"{requirement} cannot be installed: {_last_line(process.stderr)}")
                return ""
    return str(home / "bin" / command)


def _last_line(output: bytes) -> str:
    return (output.decode(errors="replace").strip().splitlines() or ["no error message"])[-1]


def _report(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
