"""Nothing of ours runs on the login node 5 seconds after the program has gone, however it went."""

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
    """Follow the log over a profile, and wait until it is copied."""
    started: list[Following] = []

    def start(profile: SlurmProfile) -> Following:
        started.append(Following(profile, log.parent, tmp_path / "run"))
        started[-1].wait_until_copied(log)
        return started[-1]

    yield start
    for following in started:
        following.end()


def ours(rig: Rig) -> list[str]:
    """What runs as the operator and is not the SSH server's own process for a connection."""
    return [process for process in rig.operator_processes() if not process.startswith("llmb-")]


def assert_nothing_remains(rig: Rig, within_s: float = GONE_WITHIN_S) -> None:
    """Looks once more at the end: one that began within the time may have seen what was gone when it was over."""
    with suppress(TimeoutError):
        until(lambda: not ours(rig), deadline_s=within_s)
    assert ours(rig) == []


def test_after_quitting(login: Rig, follow: Callable[[SlurmProfile], Following]) -> None:
    following = follow(login.profile())
    assert ours(login)
    following.end()
    assert_nothing_remains(login)


def test_after_the_line_was_cut(login: Rig, line: Line, follow: Callable[[SlurmProfile], Following]) -> None:
    follow(line.profile(login.profile()))
    assert ours(login)
    line.refuse()
    assert line.cut()
    assert_nothing_remains(login)


def test_after_the_program_was_killed(login: Rig, log: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run" / "log"
    with followed_in_a_process(login.profile(), log.parent, tmp_path / "run"):
        until(lambda: copy.exists() and copy.read_bytes() == log.read_bytes(), "the log is copied")
        assert ours(login)
    assert_nothing_remains(login)


def test_after_a_line_that_hung_and_was_dropped(
    login: Rig, line: Line, follow: Callable[[SlurmProfile], Following]
) -> None:
    following = follow(line.profile(login.profile()))
    line.hang()
    following.end()
    assert ours(login), "the server cannot know yet"
    line.cut()
    assert_nothing_remains(login)


@pytest.mark.parametrize("limit", ["SILENCE_S", "LEASE_S"])
def test_a_line_that_hangs_for_ever_leaves_nothing_for_long(
    login: Rig, line: Line, follow: Callable[[SlurmProfile], Following], monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(remotelog, limit, 4)
    following = follow(line.profile(login.profile()))
    assert ours(login)
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
    assert ours(login)
    if hangs:
        line.hang()
    else:
        session.close()
    assert_nothing_remains(login, 2 + GONE_WITHIN_S if hangs else GONE_WITHIN_S)
    session.close()
