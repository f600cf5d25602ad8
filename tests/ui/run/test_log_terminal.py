"""Output of the program to a real terminal while it shows a hostile log."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

PROGRAM = """
import sys
from pathlib import Path
from llmb_tui.ui.themes import ThemedApp
from llmb_tui.ui.widgets.log_pane import LogPane

class Shown(ThemedApp):
    def compose(self):
        yield LogPane([("log", Path(sys.argv[1]))])

Shown().run()
"""
# Each of these would change the terminal if it arrived there; Textual itself writes none of them.
SEQUENCES = (
    b"\x1b]52;c;UEFZTE9BRA==\x07",
    b"\x1b]0;title\x07",
    b"\x1b[?1234h",
    b"\x1b[91;105m",
    b"\x1bP+q\x1b\\",
    b"\xc2\x9b7m",
)


def terminal_output(log: Path, *until: bytes) -> bytes:
    """Everything that is written to a terminal of 80x24 until these texts are seen and the program has been left.

    On a busy machine the log may be there before the view knows how high it is: the first frame then has its end only.
    """
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "TEXTUAL_ANIMATIONS": "none"}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(log)], stdin=slave, stdout=slave, stderr=slave, env=environment
    )
    os.close(slave)
    output, left = b"", False
    deadline = time.monotonic() + 30
    try:
        while time.monotonic() < deadline:
            if select.select([master], [], [], 0.1)[0]:
                try:
                    output += os.read(master, 1 << 16)
                except OSError:  # Linux: the program has closed the terminal
                    break
            elif process.poll() is not None:
                break
            if not left and all(text in output for text in until):
                left = True
                os.write(master, b"\x11")  # ctrl+q
    finally:
        process.kill()
        process.wait()
        os.close(master)
    return output


def test_no_escape_sequence_of_a_log_reaches_the_terminal(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"".join(b"before " + sequence + b" after\n" for sequence in SEQUENCES) + b"[rank0] [/x] LAST\n")
    output = terminal_output(log, b"before", b"[/x] LAST")
    assert b"[rank0] [/x] LAST" in output
    assert b"before" in output
    for sequence in SEQUENCES:
        assert sequence not in output
    assert b"UEFZTE9BRA" not in output
