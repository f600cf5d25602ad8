"""The program leaves no process on the login node 5 s after its end, whatever ended it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from llmb_tui.cluster import remotelog
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.cluster.ssh import shell
from tests.kit.waiting import until
from tests.rig.cluster import Rig
from tests.rig.line import Line
from tests.rig.stream.following import Following, followed_in_a_process, log_in, written_by_operator

GONE_WITHIN_S = 5.0


@pytest.fixture
def log(login: Rig) -> Path:
    return written_by_operator(login, log_in(login.new_dir()), b"one line\n" * 1000)


@pytest.fixture
def line(login: Rig) -> Iterator[Line]:
    with Line(login.port()) as line:
        yield line


@pytest.fixture
def follow(log: Path, tmp_path: Path) -> Iterator[Callable[[SlurmProfile], Following]]:
    """A function that follows the log over a profile, and waits until it is copied."""
    feeds: list[Following] = []

    def start(profile: SlurmProfile) -> Following:
        feeds.append(Following(profile, log.parent, tmp_path / "run"))
        feeds[-1].wait_until_copied(log)
        return feeds[-1]

    yield start
    for following in feeds:
        following.end()


def leftover_processes(rig: Rig) -> list[str]:
    """Processes of the operator, except the SSH server's own process for a connection."""
    return [process for process in rig.operator_processes() if not process.startswith("llmb-")]


def assert_nothing_remains(rig: Rig, within_s: float = GONE_WITHIN_S) -> None:
    """Look once more after the deadline: a look that started in time may report processes that ended meanwhile."""
    with suppress(TimeoutError):
        until(lambda: not leftover_processes(rig), deadline_s=within_s)
    assert leftover_processes(rig) == []


def test_after_quitting(login: Rig, follow: Callable[[SlurmProfile], Following]) -> None:
    following = follow(login.profile())
    assert leftover_processes(login)
    following.end()
    assert_nothing_remains(login)


def test_after_the_line_was_cut(login: Rig, line: Line, follow: Callable[[SlurmProfile], Following]) -> None:
    follow(line.profile(login.profile()))
    assert leftover_processes(login)
    line.refuse()
    assert line.cut()
    assert_nothing_remains(login)


def test_after_the_program_was_killed(login: Rig, log: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run" / "log"
    with followed_in_a_process(login.profile(), log.parent, tmp_path / "run"):
        until(lambda: copy.exists() and copy.read_bytes() == log.read_bytes(), "the log is copied")
        assert leftover_processes(login)
    assert_nothing_remains(login)


def test_after_a_line_that_hung_and_was_dropped(
    login: Rig, line: Line, follow: Callable[[SlurmProfile], Following]
) -> None:
    following = follow(line.profile(login.profile()))
    line.hang()
    following.end()
    assert leftover_processes(login), "the processes ended before the server noticed"
    line.cut()
    assert_nothing_remains(login)


@pytest.mark.parametrize("limit", ["SILENCE_S", "LEASE_S"])
def test_a_line_that_hangs_for_ever_leaves_nothing_for_long(
    login: Rig, line: Line, follow: Callable[[SlurmProfile], Following], monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(remotelog, limit, 4)
    following = follow(line.profile(login.profile()))
    assert leftover_processes(login)
    line.hang()
    following.end()
    assert_nothing_remains(login, 4 + GONE_WITHIN_S)


@pytest.mark.parametrize("hangs", [True, False])
def test_the_process_of_the_looks_ends_with_its_line(
    login: Rig, line: Line, monkeypatch: pytest.MonkeyPatch, hangs: bool
) -> None:
    monkeypatch.setattr(shell, "SILENCE_S", 2)
    session = SlurmCluster(line.profile(login.profile()))
    for _ in range(2):
        session.run(["true"], only_looks=True)
    assert leftover_processes(login)
    if hangs:
        line.hang()
    else:
        session.close()
    assert_nothing_remains(login, 2 + GONE_WITHIN_S if hangs else GONE_WITHIN_S)
    session.close()
