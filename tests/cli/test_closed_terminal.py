from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

IGNORED = ("sh", "-c", 'trap "" HUP; exec "$0" "$@"')
"""Command that ignores the signal for all processes that it starts, like `nohup`."""


@pytest.mark.parametrize("before", [(), IGNORED], ids=["by itself", "below nohup"])
def test_closing_the_terminal_ends_a_program_that_gets_no_signal(tmp_path: Path, before: tuple[str, ...]) -> None:
    """As with `make`: the terminal belongs to another session, so the kernel sends no signal."""
    ours, its = pty.openpty()
    environment = {**os.environ, "HOME": str(tmp_path), "TERM": "xterm-256color", "LLMB_TUI_STATE_DIR": str(tmp_path)}
    command = [*before, sys.executable, "-m", "llmb_tui"]
    program = subprocess.Popen(command, stdin=its, stdout=its, stderr=its, env=environment)
    os.close(its)
    try:
        seen = b""
        while b"Workload" not in seen:
            seen += os.read(ours, 1 << 16)
        os.close(ours)
        assert program.wait(timeout=30) == -signal.SIGHUP
    finally:
        program.kill()
        program.wait()
