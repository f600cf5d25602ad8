"""Logs that do not only grow: the feed notices and reports the change, and the copy keeps the earlier content."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from llmb_tui.watch.events import LogGrown
from tests.kit.waiting import until
from tests.rig.cluster import Rig
from tests.rig.stream.following import Following, log_in, written_by_operator

BEFORE = b"the first log, line after line\n" * 3000
OTHER = b"another log\n"


@pytest.fixture
def log(login: Rig) -> Path:
    return written_by_operator(login, log_in(login.new_dir()), BEFORE)


@pytest.fixture
def following(login: Rig, log: Path, tmp_path: Path) -> Iterator[Following]:
    """A feed that has copied the log."""
    new_feed = Following(login.profile(), log.parent, tmp_path / "run")
    new_feed.wait_until_copied(log)
    yield new_feed
    new_feed.end()


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def cut_short(log: Path) -> None:
    os.truncate(log, 1000)


def write_anew(log: Path) -> None:
    """The later writes follow at once, as for a job that writes all the time."""
    os.truncate(log, 0)
    append(log, OTHER)


def write_anew_and_more(log: Path) -> None:
    os.truncate(log, 0)
    append(log, OTHER * 20_000)


def rotate(log: Path) -> None:
    log.rename(log.with_suffix(".1"))
    log.write_bytes(OTHER)


def copy_and_truncate(log: Path) -> None:
    log.with_suffix(".1").write_bytes(log.read_bytes())
    write_anew(log)


def replace_by_a_copy(log: Path) -> None:
    copy = log.with_suffix(".new")
    copy.write_bytes(log.read_bytes() + OTHER)
    copy.replace(log)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (cut_short, "cut short to 1,000 bytes"),
        (write_anew, "cut short to 12 bytes"),
        (rotate, "another file"),
        (copy_and_truncate, "cut short to 12 bytes"),
        (replace_by_a_copy, "another file"),
        (write_anew_and_more, "beginning differs from the copy"),
    ],
)
def test_a_log_that_was_replaced(following: Following, log: Path, *, change: Callable[[Path], None], why: str) -> None:
    change(log)
    anew = following.folder / "log-1"
    until(lambda: anew.exists() and anew.read_bytes() == log.read_bytes(), "the new content is copied completely")
    following.end()
    text = following.troubles[0]
    assert "was replaced" in text
    assert why in text
    assert f"`log` keeps its {len(BEFORE):,} copied bytes" in text
    assert (following.folder / "log").read_bytes() == BEFORE


def test_a_log_that_disappears_and_returns_is_copied_further(following: Following, log: Path) -> None:
    hidden = log.with_suffix(".hidden")
    log.rename(hidden)
    until(lambda: following.troubles, "the feed reports the problem")
    assert "is gone" in following.troubles[0]
    assert f"the copy keeps the {len(BEFORE):,} bytes" in following.troubles[0]
    hidden.rename(log)
    append(log, b"and on\n")
    following.wait_until_copied(log)
    assert (following.folder / "log").read_bytes() == BEFORE + b"and on\n"


def test_a_log_that_cannot_be_read_for_a_while(following: Following, log: Path) -> None:
    log.chmod(0)
    until(lambda: following.troubles, "the feed reports the problem")
    assert "cannot be read" in following.troubles[0]
    assert "denied" in following.troubles[0]
    log.chmod(0o644)
    count = len(following.news)
    until(lambda: any(isinstance(news, LogGrown) for news in following.news[count:]), "the log grows again")
    assert (following.folder / "log").read_bytes() == BEFORE


def test_a_restart_is_followed_though_the_log_before_it_was_replaced(following: Following, log: Path) -> None:
    cut_short(log)
    until(lambda: following.troubles, "the feed reports the problem")
    for restart in (1, 2):
        log_in(log.parent, restart).write_bytes(OTHER * restart)
    following.feed.job_moved(2)
    newest = following.folder / "log.2"
    until(lambda: newest.exists() and newest.read_bytes() == OTHER * 2, "the newest log is copied")
    assert (following.folder / "log").read_bytes() == BEFORE
    assert (following.folder / "log.1").read_bytes() == OTHER
