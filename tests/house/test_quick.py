"""`make quick` omits tests that start a program or a server, and runs the others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM, SERVER, NEITHER = "house/test_makefile.py", "cluster/test_shell.py", "house/test_contracts.py"


def test_a_test_that_starts_a_program_or_a_server_is_skipped() -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--quick",
        "-rA",
        *(f"tests/{file}" for file in (PROGRAM, SERVER, NEITHER)),
    ]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
    passed = {line.partition("::")[0] for line in result.stdout.splitlines() if line.startswith("PASSED")}
    skipped = [line for line in result.stdout.splitlines() if line.startswith("SKIPPED")]
    assert passed == {f"PASSED tests/{NEITHER}"}
    assert all("it starts a program or a server" in line for line in skipped)
    assert skipped
