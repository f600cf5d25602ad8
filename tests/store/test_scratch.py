"""Temporary files of a program are removed with it, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import signal, sys, threading
from pathlib import Path
from llmb_tui.store.scratch import removed_after, remove_scratch_on_signals, scratch
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whatever the tests themselves were started with, such as nohup
remove_scratch_on_signals()

def work():
    with scratch("llmb-tui-test-") as folder, removed_after(Path(sys.argv[1])):
        (folder / "log").write_text("as it was written")
        Path(sys.argv[1]).write_text("a part")
        print("written", flush=True)
        threading.Event().wait()

threading.Thread(target=work, daemon=True).start() if sys.argv[2] == "thread" else work()
sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("where", "kind"),
    [
        ("main", signal.SIGTERM),
        ("main", signal.SIGHUP),
        ("thread", signal.SIGTERM),
        ("thread", signal.SIGHUP),
        ("thread", None),
    ],
)
def test_a_program_that_is_terminated_or_left_leaves_nothing(
    tmp_path: Path, where: str, kind: signal.Signals | None
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "part"), where]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        assert program.stdout.readline() == "written\n"
        assert [path.name for path in temporary.glob("*/*")] == ["log"]
        if kind is None:
            program.stdin.close()
        else:
            program.send_signal(kind)
        assert program.wait(timeout=60) == (-kind if kind else 0)
    assert list(temporary.iterdir()) == []
    assert not (tmp_path / "part").exists()
