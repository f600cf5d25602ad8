"""`group.sh`: detection of a live process group on a login node, without a list of all processes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from llmb_tui.cluster.remote_text import remote_text
from tests.conftest import NOT_RUN
from tests.kit.waiting import until

SHELLS = [
    pytest.param(shell, marks=pytest.mark.skipif(not shutil.which(shell), reason=f"{NOT_RUN}no {shell} is installed"))
    for shell in ("sh", "bash", "ksh")
]
WAITS = "import sys; sys.stdin.read()"


class Listing:
    """A `ps` that records its calls."""

    def __init__(self, folder: Path) -> None:
        self._asked = folder / "asked"
        program = folder / "ps"
        program.write_text(f'#!/bin/sh\necho "$*" >>{self._asked}\nexec {shutil.which("ps")} "$@"\n')
        program.chmod(0o755)
        self._path = f"{folder}{os.pathsep}{os.environ['PATH']}"

    @property
    def asked(self) -> int:
        """Number of calls."""
        return len(self._asked.read_text().splitlines()) if self._asked.exists() else 0

    def lives(self, shell: str, group: int) -> bool:
        """Answer of `group_lives`."""
        script = f'{remote_text("group.sh")}\ngroup_lives "$1"'
        command = [shell, "-c", script, "sh", str(group)]
        return subprocess.run(command, env={**os.environ, "PATH": self._path}, check=False).returncode == 0


@pytest.fixture
def ps(tmp_path: Path) -> Listing:
    return Listing(tmp_path)


@pytest.fixture
def leader() -> Iterator[subprocess.Popen[bytes]]:
    """Leader of a waiting group of two processes."""
    child = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {WAITS!r}]); print(flush=True); {WAITS}"
    with subprocess.Popen(
        [sys.executable, "-c", child], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout
        process.stdout.readline()
        yield process
        end_group(process)


def end_group(leader: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(leader.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


@pytest.mark.parametrize("shell", SHELLS)
def test_a_leader_reports_that_its_group_is_alive(ps: Listing, leader: subprocess.Popen[bytes], shell: str) -> None:
    assert ps.lives(shell, leader.pid)
    assert ps.asked == 0


@pytest.mark.parametrize("shell", SHELLS)
def test_a_group_lives_on_without_its_leader_and_ends_with_its_last(
    ps: Listing, leader: subprocess.Popen[bytes], shell: str
) -> None:
    leader.kill()
    until(lambda: "Z" in Path(f"/proc/{leader.pid}/stat").read_text().rpartition(") ")[2][:1], "the leader has ended")
    assert ps.lives(shell, leader.pid), "its child is alive, and the leader is a zombie"
    leader.wait()
    assert ps.lives(shell, leader.pid)
    end_group(leader)
    until(lambda: not ps.lives(shell, leader.pid), "the child is gone too")


@pytest.mark.parametrize("shell", SHELLS)
def test_a_process_that_has_got_the_number_of_a_leader_is_not_its_group(ps: Listing, shell: str) -> None:
    with subprocess.Popen([sys.executable, "-c", WAITS], stdin=subprocess.PIPE) as other:
        assert os.getpgid(other.pid) != other.pid
        assert not ps.lives(shell, other.pid)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_reads_its_process_group(shell: str) -> None:
    script = f'{remote_text("group.sh")}\ngroup_of "$$"'
    result = subprocess.run([shell, "-c", script], capture_output=True, text=True, check=True, start_new_session=True)
    own = subprocess.run([shell, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip().isdecimal()
    assert own.stdout.strip() == str(os.getpgrp())
