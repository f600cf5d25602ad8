"""A growing log whose line is cut and hangs, and whose server is restarted, again and again."""

from __future__ import annotations

import contextlib
import random
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from llmb_tui.watch.locallog import LocalLog
from tests.kit.runs import make_run
from tests.kit.waiting import until
from tests.rig.campaign import TIMES, seed
from tests.rig.cluster import Rig
from tests.rig.line import Line
from tests.rig.stream.following import Following, log_in, start_writer, written_by_operator

WRITES_FOR_S = 50.0 * min(TIMES, 6)
DEADLINE_S = 240.0


class Nuisance:
    """Faults of a line and its server, of several kinds in turn."""

    def __init__(self, rig: Rig, line: Line, seed: int) -> None:
        self._rig = rig
        self._line = line
        self._chance = random.Random(seed)
        self._killed = 0

    @property
    def drops(self) -> int:
        """Number of broken live connections so far."""
        return self._line.cuts + self._killed

    def strike(self) -> None:
        """Cause one fault."""
        kind = self._chance.randrange(20)
        if kind < 2:
            self._killed += bool(self._rig.servers.sessions("login"))
            (self._rig.servers.restart if kind else self._rig.servers.end_sessions)("login")
        elif kind < 4:
            self._line.hang()
            time.sleep(self._chance.uniform(0.1, 0.5))  # data in flight waits
            if kind == 3:
                self._line.cut()
            self._line.resume()
        elif kind < 10:
            self._line.cut_after(bytes_down=self._chance.randrange(1, 60_000))
        elif kind < 13:
            self._line.cut_after(bytes_up=self._chance.randrange(1, 5_000))
        else:
            self._line.cut()


@pytest.fixture
def remote(login: Rig) -> Path:
    return written_by_operator(login, log_in(login.new_dir()))


@pytest.fixture
def writer(login: Rig, remote: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The job's log writer, which writes for a while."""
    process = start_writer(login, remote, seed=11, seconds=WRITES_FOR_S)
    yield process
    process.kill()
    process.wait()


def read_as_run(path: Path, task_dir: Path) -> LocalLog:
    """A log as the monitor reads it."""
    return LocalLog(make_run("run1", task_dir), path)


def assert_copied(following: Following, remote: Path, drops: int, print_at_end: Callable[[str], None]) -> None:
    """Assert that the copy equals the log byte for byte."""
    following.wait_until_copied(remote, DEADLINE_S)
    following.end()
    copy, log = (following.folder / "log").read_bytes(), remote.read_bytes()
    lost, doubled = max(0, len(log) - len(copy)), max(0, len(copy) - len(log))
    print_at_end(f"stream: {drops} drops, {len(log):,} bytes, {lost} lost, {doubled} doubled")
    assert copy == log
    assert not following.troubles


def test_cut_hung_and_restarted_again_and_again(
    login: Rig, remote: Path, writer: subprocess.Popen[bytes], tmp_path: Path, print_at_end: Callable[[str], None]
) -> None:
    with Line(login.port()) as line:
        nuisance = Nuisance(login, line, seed(print_at_end))
        following = Following(line.profile(login.profile()), remote.parent, tmp_path / "run")
        copy = following.folder / "log"
        followed_log = read_as_run(copy, remote.parent)
        until(lambda: copy.exists() and copy.stat().st_size, "the first bytes")
        while writer.poll() is None:
            before = copy.stat().st_size
            nuisance.strike()
            with contextlib.suppress(TimeoutError):  # the next fault should meet a growing log, if the log still grows
                until(lambda: copy.stat().st_size > before, deadline_s=2)  # noqa: B023 - called at once
            followed_log.read()
        assert_copied(following, remote, nuisance.drops, print_at_end)
    assert nuisance.drops >= 20 * min(TIMES, 6)
    notes = [news.note for news in following.links if news.link == "lost"]
    back = [news.note for news in following.links if news.link == "live" and news.note]
    assert notes
    assert all("copied bytes of the log are kept" in note for note in notes)
    assert back
    assert all("Connected again at" in note for note in back)
    complete_log = read_as_run(remote, remote.parent)
    for log in (followed_log, complete_log):
        while log.read():
            pass
        log.end()
    assert followed_log.progress == complete_log.progress
    assert complete_log.progress.steps_done > 100


def test_a_line_that_hangs_until_it_is_given_up(login: Rig, remote: Path, tmp_path: Path) -> None:
    """No error reports the dead line: the heartbeat detects it, and the copy continues over a new connection."""
    remote.write_bytes(b"before\n")
    with Line(login.port()) as line:
        following = Following(line.profile(login.profile()), remote.parent, tmp_path / "run")
        following.wait_until_copied(remote)
        line.hang()
        with remote.open("ab") as file:
            file.write(b"while it hung\n" * 1000)
        until(lambda: following.links[-1].link == "lost", "the feed reports the lost link")
        assert "The 7 copied bytes of the log are kept" in following.links[-1].note
        line.cut()
        line.resume()
        following.wait_until_copied(remote)
        until(lambda: following.links[-1].link == "live", "the feed reports the live link")
        assert "continues after the last copied byte" in following.links[-1].note
        following.end()
    assert (tmp_path / "run" / "log").read_bytes() == remote.read_bytes()
