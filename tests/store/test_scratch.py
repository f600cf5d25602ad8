"""Temporary files of a program are removed with it, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from llmb_tui.store.scratch import remove_abandoned, scratch

PROGRAM = """
import signal, sys, threading
from pathlib import Path
from llmb_tui.store.scratch import removed_after, remove_scratch_on_signals, scratch
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whatever the tests themselves were started with, such as nohup
remove_scratch_on_signals()

def work():
    part = Path(sys.argv[1])
    part.write_text("a part")
    with scratch("llmb-tui-test-") as folder, removed_after(part):
        (folder / "log").write_text("as it was written")
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


def start(temporary: Path, part: Path) -> subprocess.Popen[str]:
    """Start the program, and return when it has written its files."""
    command = [sys.executable, "-c", PROGRAM, str(part), "main"]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    program = subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "written\n"
    return program


def kill(program: subprocess.Popen[str]) -> None:
    program.kill()
    program.communicate()


def test_files_of_a_killed_program_are_removed_at_the_next_use_and_those_of_a_living_one_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = tmp_path / "parts"
    for folder in ("tmp", "parts", "else"):
        (tmp_path / folder).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "else" / "precious").write_text("stays")
    (tmp_path / "tmp" / "llmb-tui-test-link").symlink_to(tmp_path / "else")
    os.mkfifo(tmp_path / "tmp" / "llmb-tui-other")
    killed = start(tmp_path / "tmp", parts / ".killed.part")
    living = start(tmp_path / "tmp", parts / ".living.part")
    kill(killed)
    try:
        assert len(list((tmp_path / "tmp").glob("llmb-tui-test-*/log"))) == 2
        with scratch("llmb-tui-test-") as mine:
            folders = {path.parent for path in (tmp_path / "tmp").glob("llmb-tui-test-*/log")}
            assert len(folders) == 1, "the folder of the killed program is removed"
            assert mine.is_dir()
            remove_abandoned(parts, ".", ".part")
            assert [path.name for path in parts.iterdir()] == [".living.part"]
            remove_abandoned(tmp_path / "tmp", "llmb-tui-test-")
            assert mine.is_dir(), "a folder in use stays, also for the program that uses it"
    finally:
        kill(living)
    assert (tmp_path / "else" / "precious").exists()
    with scratch("llmb-tui-test-") as mine:
        assert {path.name for path in (tmp_path / "tmp").iterdir()} == {
            mine.name,
            "llmb-tui-test-link",
            "llmb-tui-other",
        }
