"""`Fetch` from a real login node: a line that is cut, a program that is ended, names that are traps, a limit."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from llmb_tui.cluster.bandwidth import Limit
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.cluster_files.fetch import Fetch, Fetched
from llmb_tui.cluster_files.left_files import FileKind, LeftFiles, list_left
from llmb_tui.errors import LlmbError
from tests.kit.runs import make_run
from tests.rig.cluster import Rig
from tests.rig.line import Line
from tests.rig.stream.following import written_by_operator

MEGABYTE = 1_000_000
ALL: frozenset[FileKind] = frozenset(("profile", "trace", "log"))


class Site:
    """A run's folder there, a line to it, and a folder here."""

    def __init__(self, rig: Rig, line: Line, here: Path) -> None:
        self.rig = rig
        self.line = line
        self.here = here
        self.task = rig.new_dir()
        self.session = SlurmCluster(line.profile(rig.profile()))

    def leave(self, name: str, data: bytes) -> None:
        path = self.task / name
        self.rig.as_operator(["mkdir", "-p", str(path.parent)], check=True)
        written_by_operator(self.rig, path, data)

    def left(self) -> LeftFiles:
        self.session.connect()
        return list_left(self.session, make_run("mine", self.task), ALL)

    def fetch(self, limit: Limit | None = None) -> list[Fetched]:
        return Fetch(self.session, self.left(), self.here, limit=limit).all(lambda *_: None)


@pytest.fixture
def site(login: Rig, tmp_path: Path) -> Iterator[Site]:
    with Line(login.port()) as line:
        made = Site(login, line, tmp_path / "here")
        yield made
        made.session.close()


def test_a_line_that_is_cut_in_the_middle(site: Site) -> None:
    """What cannot be compressed, more than is read in one piece, and what can."""
    files = {
        "nsys_profile/profile_1.nsys-rep": random.Random(1).randbytes(9 * MEGABYTE),
        "rank0.pt.trace.json": b'{"name": "kernel", "dur": 17}\n' * 300_000,
    }
    for name, data in files.items():
        site.leave(name, data)
    left = site.left()
    cut_at = {0}

    def cut(name: str, here: int, size: int) -> None:  # noqa: ARG001 - a `Tell`'s
        """Each time that more has come, three times; where nothing is connected there is nothing to cut."""
        if here < size and here not in cut_at and len(cut_at) < 4 and site.line.cut():
            cut_at.add(here)

    done = Fetch(site.session, left, site.here).all(cut)
    assert [one.state for one in done] == ["fetched", "fetched"]
    assert [one.bytes_fetched for one in done] == [len(data) for data in files.values()]
    for name, data in files.items():
        assert (site.here / name).read_bytes() == data
    assert site.line.cuts >= 3
    assert site.line.bytes_down < 2 * 9 * MEGABYTE, "it goes on, and does not begin anew"


def test_a_line_that_does_not_come_back(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than may be on its way when the line is cut: a window of 2 MiB, and what was read before."""
    monkeypatch.setattr("llmb_tui.cluster_files.fetch.TRIES", 2)
    data = random.Random(4).randbytes(9 * MEGABYTE)
    site.leave("profile_1.nsys-rep", data)
    left = site.left()

    def cut(name: str, here: int, size: int) -> None:  # noqa: ARG001 - a `Tell`'s
        site.line.refuse()
        site.line.cut()

    with pytest.raises(LlmbError, match=r"profile_1.nsys-rep: [\d,]+ of 9,000,000 bytes are here") as lost:
        Fetch(site.session, left, site.here).all(cut)
    assert (lost.value.exit_code, "continues" in lost.value.fix) == (2, True)
    site.line.accept()
    (one,) = site.fetch()
    assert 0 < one.bytes_fetched < len(data)
    assert (site.here / "profile_1.nsys-rep").read_bytes() == data


def test_a_program_that_was_ended_continues_at_the_next_start(site: Site) -> None:
    data = random.Random(2).randbytes(3 * MEGABYTE)
    site.leave("profile_1.nsys-rep", data)
    part = site.here / "profile_1.nsys-rep.part"

    def interrupt(name: str, here: int, size: int) -> None:  # noqa: ARG001 - a `Tell`'s
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Fetch(site.session, site.left(), site.here).all(interrupt)
    came = part.stat().st_size
    assert 0 < came < len(data)
    (one,) = site.fetch()
    assert (one.state, one.bytes_fetched) == ("fetched", len(data) - came)
    assert (site.here / "profile_1.nsys-rep").read_bytes() == data
    assert not part.exists()
    assert [one.state for one in site.fetch()] == ["here"]


def test_names_that_are_traps(site: Site) -> None:
    """Made by somebody who may write into the run's folder there."""
    site.leave("good name.log", b"good")
    site.leave("-rf.log", b"option")
    site.leave("$(touch x).log", b"command")
    site.rig.as_operator(
        r"""
        printf secret > ../secret.log
        ln -s ../secret.log link.log
        mkdir -p real; printf x > real/inner.log; ln -s real linked
        mkfifo pipe.log
        mkdir "$(printf 'two\n..')"; printf x > "$(printf 'two\n../secret.log')"
        printf x > "$(printf 'esc\033[2J.log')"
        printf x > "$(printf 'latin\351.log')"
        printf x > 'back\slash.log'
        """,
        cwd=str(site.task),
        check=True,
    )
    left = site.left()
    assert [file.name for file in left.files] == ["$(touch x).log", "-rf.log", "good name.log", "real/inner.log"]
    assert {"link.log", "pipe.log", "back\\slash.log", "../secret.log"} <= {name for name, _ in left.left_out}
    done = site.fetch()
    assert {one.state for one in done} == {"fetched"}
    assert sorted(str(path.relative_to(site.here)) for path in site.here.rglob("*") if path.is_file()) == [
        "$(touch x).log", "-rf.log", "good name.log", "real/inner.log",
    ]  # fmt: skip
    assert (site.here / "good name.log").read_bytes() == b"good"


def test_a_file_that_goes_or_shrinks_after_the_look_keeps_no_other_back(site: Site) -> None:
    site.leave("a.log", b"a" * 1000)
    site.leave("b.log", b"b" * 1000)
    site.leave("c.log", b"c" * 1000)
    left = site.left()
    (site.task / "a.log").unlink()
    (site.task / "b.log").write_bytes(b"b" * 10)
    gone, shrunk, whole = Fetch(site.session, left, site.here).all(lambda *_: None)
    assert (gone.state, shrunk.state, whole.state) == ("refused", "fetched", "fetched")
    assert "no longer exists" in gone.why
    assert (site.here / "b.log").read_bytes() == b"b" * 10
    assert (site.here / "c.log").read_bytes() == b"c" * 1000


def test_a_limit_is_kept_on_the_line(site: Site) -> None:
    """At 1 MB/s, of which one piece may come at once."""
    site.leave("profile_1.nsys-rep", random.Random(3).randbytes(4 * MEGABYTE))
    began = time.monotonic()
    site.fetch(limit=Limit(MEGABYTE))
    assert (site.here / "profile_1.nsys-rep").stat().st_size == 4 * MEGABYTE
    assert time.monotonic() - began >= 2.0
