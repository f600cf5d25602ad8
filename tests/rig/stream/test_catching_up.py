"""Logs that are far ahead of their copy, over slow or cut lines and restricted servers."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.kit.waiting import until
from tests.rig.cluster import Rig
from tests.rig.line import Line
from tests.rig.stream import log_writer
from tests.rig.stream.following import Following, followed_in_a_process, log_in, written_by_operator

MEGABYTE = 1_000_000


def training_log(size: int) -> bytes:
    """A log with the repetitive words of a training run."""
    lines = (
        log_writer.STEP.format(i=i, seconds=2 + i % 97 / 100, samples=256 * i).encode() for i in range(size // 150)
    )
    return b"".join(lines)[:size]


@pytest.fixture
def log(login: Rig) -> Path:
    return log_in(login.new_dir())


def test_a_long_gap_travels_compressed_and_survives_cuts(login: Rig, log: Path, tmp_path: Path) -> None:
    written_by_operator(login, log, training_log(40 * MEGABYTE))
    with Line(login.port()) as line:
        line.cut_after(bytes_down=MEGABYTE // 5)
        following = Following(line.profile(login.profile()), log.parent, tmp_path / "run")
        until(lambda: line.cuts, "the first cut")
        line.cut_after(bytes_down=MEGABYTE // 5)
        following.wait_until_copied(log)
        travelled = line.bytes_down
        following.end()
        assert line.cuts == 2
    assert (tmp_path / "run" / "log").read_bytes() == log.read_bytes()
    assert travelled < log.stat().st_size / 2


def test_one_session_is_enough_for_the_stream_and_for_commands(login: Rig, log: Path, tmp_path: Path) -> None:
    written_by_operator(login, log, b"one line\n")
    following = Following(login.profile("tight"), log.parent, tmp_path / "run")
    following.wait_until_copied(log)
    for number in range(4):
        with log.open("ab") as file:
            file.write(b"line %d\n" % number)
        assert following.session.run(["echo", "hello"]).stdout == "hello\n"
        following.wait_until_copied(log)
    # Checked before the end: at the end the feed sees either its own end or the connection's first, and may report it.
    assert [news.link for news in following.links] == ["live"]
    following.end()
    assert (tmp_path / "run" / "log").read_bytes() == log.read_bytes()


def test_a_program_that_is_killed_while_it_copies(login: Rig, log: Path, tmp_path: Path) -> None:
    chance = random.Random(9)
    written_by_operator(login, log, chance.randbytes(3 * MEGABYTE))
    folder = tmp_path / "run"
    copy = folder / "log"
    for _ in range(6):
        with followed_in_a_process(login.profile(), log.parent, folder):
            size = copy.stat().st_size if copy.exists() else 0
            until(lambda: copy.exists() and copy.stat().st_size > size, "the copy grows")  # noqa: B023 - called at once
        with log.open("ab") as file:
            file.write(chance.randbytes(3 * MEGABYTE))
    following = Following(login.profile(), log.parent, folder)
    following.wait_until_copied(log)
    following.end()
    assert copy.read_bytes() == log.read_bytes()
