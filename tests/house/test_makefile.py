from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_a_python_that_makes_no_environments_is_told_in_a_line_and_leaves_none(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("requirements.lock", "pyproject.toml"):
        (tmp_path / name).touch()
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\n[ "$1" = -c ] || mkdir .venv\nexit 1\n')
    python.chmod(0o755)
    command = ["make", "-C", str(tmp_path), f"PYTHON={python}", ".venv/.ready"]
    environment = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}  # of a `make` that tests
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    said = done.stderr.splitlines()
    assert said[0] == f"{python} cannot make environments: apt install python3-venv, or make PYTHON=ANOTHER"
    assert len(said) == 2, "make's own word that it failed"
    assert not (tmp_path / ".venv").exists()
