from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path


def test_closing_the_terminal_ends_the_program_that_nobody_signals(tmp_path: Path) -> None:
    """As below `make`: the terminal is not that of its own session, so the kernel sends it nothing."""
    ours, its = pty.openpty()
    environment = {**os.environ, "HOME": str(tmp_path), "TERM": "xterm-256color", "LLMB_TUI_STATE_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "llmb_tui"]
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
