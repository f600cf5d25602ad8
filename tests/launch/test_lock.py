"""Detection by `remote/lock.sh` whether the owner of a lock is alive, also with clocks that differ."""

from __future__ import annotations

import os
import pwd
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from llmb_tui.cluster.remote_text import remote_text

HERE, ELSEWHERE = f"{pwd.getpwuid(os.getuid()).pw_name}@{os.uname().nodename}", "someone@cn001.example"
MINUTE = 60.0
SAID = {0: "abandoned", 1: "held"}


class Lock:
    """A lock on a file server whose clock is `behind` seconds late."""

    def __init__(self, path: Path, shell: list[str]) -> None:
        self.path, self.shell = path, shell
        path.mkdir()

    def hold(self, owner: str, pid: int | str, *, began: float, touched: float, behind: float = 0.0) -> None:
        """Make a lock that was taken `began` seconds ago, and last touched `touched` seconds ago."""
        now = time.time()
        (self.path / "owner").write_text(f"{owner}.{pid}.{now - began:.0f}\n")
        for path, ago in ((self.path / "owner", began), (self.path, touched)):
            os.utime(path, (now - ago - behind, now - ago - behind))

    def state(self) -> str:
        script = f'{remote_text("lock.sh")}abandoned "$1" ask'
        result = subprocess.run([*self.shell, "-c", script, "sh", str(self.path)], capture_output=True, check=False)
        assert result.stderr == b""
        return SAID[result.returncode]


@pytest.fixture(params=["sh", "bash --posix"])
def lock(tmp_path: Path, request: pytest.FixtureRequest) -> Lock:
    return Lock(tmp_path / "lock", request.param.split())


@pytest.fixture
def pid() -> Iterator[int]:
    """A process that has just started."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process.pid
        process.kill()


@pytest.fixture
def dead() -> int:
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


@pytest.mark.parametrize("behind", [-10 * MINUTE, 0, 3 * MINUTE, 60 * MINUTE])
def test_on_the_same_node_a_lock_is_held_exactly_while_its_process_lives(
    lock: Lock, pid: int, dead: int, behind: float
) -> None:
    lock.hold(HERE, pid, began=10, touched=1, behind=behind)
    assert lock.state() == "held"
    lock.hold(HERE, dead, began=10, touched=1, behind=behind)
    assert lock.state() == "abandoned"


def test_a_stalled_process_keeps_its_lock(lock: Lock, pid: int) -> None:
    """The owner is alive, but cannot touch the lock because its file system hangs."""
    lock.hold(HERE, pid, began=0, touched=10 * MINUTE)
    assert lock.state() == "held"


def test_a_reused_process_id_is_not_the_owner(lock: Lock, pid: int) -> None:
    lock.hold(HERE, pid, began=60 * MINUTE, touched=3 * MINUTE)
    assert lock.state() == "abandoned"
    lock.hold(HERE, pid, began=60 * MINUTE, touched=1)
    assert lock.state() == "held"


@pytest.mark.parametrize("behind", [0, 3 * MINUTE, 60 * MINUTE])
def test_a_lock_touched_recently_by_another_node_is_held_at_any_clock_offset(lock: Lock, behind: float) -> None:
    lock.hold(ELSEWHERE, 4711, began=30 * MINUTE, touched=5, behind=behind)
    assert lock.state() == "held"
    lock.hold(ELSEWHERE, 4711, began=30 * MINUTE, touched=4 * MINUTE, behind=behind)
    assert lock.state() == "abandoned"


@pytest.mark.parametrize(
    "owner", ["", "someone@cn001", f"{ELSEWHERE}.4711.", f"{ELSEWHERE}.4711.now", "here", "here now"]
)
def test_a_lock_without_a_start_time_is_held_for_two_minutes(lock: Lock, owner: str) -> None:
    if owner.startswith("here"):
        owner = f"{HERE}.{os.getpid()}.{owner[5:]}"
    (lock.path / "owner").write_text(owner)
    assert lock.state() == "held"
    os.utime(lock.path, (time.time() - 4 * MINUTE, time.time() - 4 * MINUTE))
    assert lock.state() == "abandoned"


def test_a_lock_that_was_given_back_meanwhile_is_not_abandoned(lock: Lock) -> None:
    lock.path.rmdir()
    assert lock.state() == "held"
