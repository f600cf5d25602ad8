"""The same stream without SSH: the program runs on the login node itself. It needs no rig."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from llmb_tui.cluster.slurm.profile import SlurmProfile
from tests.kit.waiting import until
from tests.rig.stream.following import WRITER, Following, log_in

HERE = SlurmProfile("local", "localhost", "", "", "", transport="local")


def groups_with(text: str) -> set[int]:
    """Process groups of this machine with that in the arguments of a process of theirs; not the writer's."""
    listed = subprocess.run(["ps", "-A", "-ww", "-o", "pgid=,args="], capture_output=True, text=True, check=True).stdout
    return {int(line.split()[0]) for line in listed.splitlines() if text in line and str(WRITER) not in line}


def test_the_stream_continues_however_often_its_command_is_killed(
    tmp_path: Path, print_at_end: Callable[[str], None]
) -> None:
    task_dir = tmp_path / "task"
    task_dir.mkdir()
    log, copy = log_in(task_dir), tmp_path / "run" / "log"
    writer = subprocess.Popen([sys.executable, str(WRITER), str(log), "7", "8"])
    following = Following(HERE, task_dir, copy.parent)
    kills = 0

    def copied() -> int:
        return copy.stat().st_size if copy.exists() else 0

    while writer.poll() is None:
        before = copied()
        until(lambda: copied() > before or writer.poll() is not None, "it copies")  # noqa: B023 - called at once
        for group in groups_with(str(log)):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
                kills += 1
    following.wait_until_copied(log)
    following.end()
    print_at_end(f"stream, without SSH: {kills} kills, {log.stat().st_size:,} bytes")
    assert kills
    assert copy.read_bytes() == log.read_bytes()
    until(lambda: not groups_with(str(log)), "nothing is left")
