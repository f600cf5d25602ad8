from __future__ import annotations

import errno
import os
import random
import resource
import shutil
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmb_tui.cluster import remotelog
from llmb_tui.cluster.job_log import JobLog
from llmb_tui.cluster.remote_file import Sample, UnreadableFileError, cksum
from llmb_tui.cluster.remotelog import RemoteLog
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.errors import LlmbError
from llmb_tui.watch.follow import Follower, LogMissingError, LogReplacedError
from tests.cluster.login_node import PERL_SETTINGS, SHELL_PRINTS, LoginNode
from tests.kit.waiting import until

DEADLINE_S = 30.0


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoginNode]:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    server = LoginNode(tmp_path)
    yield server
    server.close()


@pytest.fixture
def remote(node: LoginNode) -> Path:
    (node.home / "installs" / "job").mkdir(parents=True)
    return node.home / "installs" / "job" / "a log 'of' mine.out"


@pytest.fixture
def local(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "log"


@pytest.fixture
def follow(node: LoginNode, remote: Path, local: Path) -> Iterator[Callable[[], Follower]]:
    """Function that starts a new follower of the same file on a new connection, as a restarted program does."""
    opened: list[tuple[Follower, SlurmCluster]] = []

    def start() -> Follower:
        session = SlurmCluster(replace(node.profile(), install_dir=str(node.home / "installs")))
        opened.append((Follower(RemoteLog(session, str(remote)), local), session))
        return opened[-1][0]

    yield start
    for follower, session in opened:
        follower.close()
        session.close()


@pytest.fixture(params=["perl", "sh"])
def either_way(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A login node where Perl reads the log, and a login node without a working Perl."""
    if request.param == "sh":
        in_place_of(tmp_path, monkeypatch, perl="exit 1")


def in_place_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **programs: str) -> None:
    """Replace programs of the login node by scripts that come first in PATH."""
    (tmp_path / "first").mkdir()
    for name, script in programs.items():
        (tmp_path / "first" / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "first" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'first'}:{os.environ['PATH']}")


def pump_until(follower: Follower, condition: Callable[[], bool], *, patient: bool = False) -> None:
    def is_fulfilled() -> bool:
        if not condition():
            try:
                follower.copy_available(0.1)
            except LlmbError as error:
                if not patient or isinstance(error, LogReplacedError):
                    raise
        return condition()

    until(is_fulfilled, look_waits=True)


def holds(path: Path, data: bytes) -> Callable[[], bool]:
    return lambda: path.exists() and path.read_bytes() == data


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


@given(st.binary(max_size=70_000))
def test_our_checksum_is_that_of_posix(data: bytes) -> None:
    answer = subprocess.run(["cksum"], input=data, capture_output=True, check=True).stdout.decode()
    assert cksum(data) == answer.strip()


def test_it_waits_for_the_file_and_copies_its_data(follow: Callable[[], Follower], remote: Path, local: Path) -> None:
    follower = follow()
    assert follower.copy_available(0.05) == 0
    assert follower.behind() == 0
    remote.write_bytes(b"one\n")
    pump_until(follower, holds(local, b"one\n"))
    append(remote, b"two\xff\x00\r")
    pump_until(follower, holds(local, b"one\ntwo\xff\x00\r"))
    assert follower.behind() == 0
    assert local.stat().st_mode & 0o777 == 0o600


def test_it_reports_how_far_it_is_behind(follow: Callable[[], Follower], remote: Path, local: Path) -> None:
    remote.write_bytes(b"x" * 10)
    follower = follow()
    assert follower.behind() == 10
    pump_until(follower, holds(local, b"x" * 10))
    assert follower.behind() == 0


def test_a_later_program_continues_from_the_last_byte(
    follow: Callable[[], Follower], remote: Path, local: Path
) -> None:
    remote.write_bytes(os.urandom(200_000))
    first = follow()
    pump_until(first, holds(local, remote.read_bytes()))
    first.close()
    append(remote, os.urandom(50_000))
    pump_until(follow(), holds(local, remote.read_bytes()))


@pytest.mark.usefixtures("either_way")
def test_no_byte_is_dropped_or_doubled_however_often_the_line_is_cut(
    node: LoginNode, follow: Callable[[], Follower], remote: Path, local: Path
) -> None:
    enough, written = threading.Event(), threading.Event()

    def write() -> None:
        chance = random.Random(3)
        while not enough.wait(0.005):
            append(remote, chance.randbytes(chance.choice((1, 100, 5_000, 60_000))))
        append(remote, b"the end\n")
        written.set()

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    follower = follow()
    cuts = [0]

    def is_copied() -> bool:
        """Copy a piece; cut the connection after every 50 kB, 25 times in total."""
        size = local.stat().st_size if local.exists() else 0
        if written.is_set() and size >= remote.stat().st_size:
            return True
        if size >= cuts[-1] and not enough.is_set():
            node.cut()
            cuts.append(size + 50_000)
            if len(cuts) > 25:
                enough.set()
        return False

    pump_until(follower, is_copied, patient=True)
    writer.join()
    assert local.read_bytes() == remote.read_bytes()


def cut_short(path: Path) -> None:
    os.truncate(path, 1000)


def write_anew(path: Path) -> None:
    path.write_bytes(os.urandom(300_000))


def copy_over(path: Path) -> None:
    copy = path.with_suffix(".new")
    copy.write_bytes(path.read_bytes())
    copy.replace(path)


@pytest.mark.parametrize(
    ("change", "why"),
    [(cut_short, "are copied already"), (write_anew, "beginning differs from the copy"), (copy_over, "another file")],
)
def test_a_log_that_was_replaced_is_not_added_to_the_copy(
    node: LoginNode, follow: Callable[[], Follower], remote: Path, *, change: Callable[[Path], None], why: str
) -> None:
    local = node.directory / "runs" / "log"
    before = os.urandom(200_000)
    remote.write_bytes(before)
    follower = follow()
    pump_until(follower, holds(local, before))
    node.cut()
    change(remote)
    with pytest.raises(LogReplacedError, match="was replaced") as caught:
        pump_until(follower, lambda: False, patient=True)
    assert why in caught.value.why
    assert "copied into another file" in caught.value.fix
    assert local.read_bytes() == before


def test_a_later_program_notices_a_replaced_log(follow: Callable[[], Follower], remote: Path, local: Path) -> None:
    remote.write_bytes(b"the first log\n")
    first = follow()
    pump_until(first, holds(local, b"the first log\n"))
    first.close()
    remote.write_bytes(b"another log, longer than the first\n")
    with pytest.raises(LogReplacedError):
        follow().copy_available(0.1)
    assert local.read_bytes() == b"the first log\n"


def test_a_copy_that_was_damaged_here_is_not_added_to(
    follow: Callable[[], Follower], remote: Path, local: Path
) -> None:
    remote.write_bytes(os.urandom(200_000))
    first = follow()
    pump_until(first, holds(local, remote.read_bytes()))
    first.close()
    damaged = remote.read_bytes()[:150_000] + bytes(20_000)  # like a file after a crash of this machine
    local.write_bytes(damaged)
    with pytest.raises(LogReplacedError) as caught:
        follow().copy_available(0.1)
    assert "or the copy on this machine is damaged" in caught.value.why
    assert local.read_bytes() == damaged
    local.unlink()
    pump_until(follow(), holds(local, remote.read_bytes()))


def test_a_log_cut_short_while_it_is_followed_is_noticed(
    follow: Callable[[], Follower], remote: Path, local: Path
) -> None:
    remote.write_bytes(b"x" * 50_000)
    follower = follow()
    pump_until(follower, holds(local, b"x" * 50_000))
    os.truncate(remote, 0)
    with pytest.raises(LogReplacedError):
        pump_until(follower, lambda: False)
    assert local.read_bytes() == b"x" * 50_000


def outgrow(remote: Path) -> None:
    remote.write_bytes(b"another line\n" * 20_000)


def rotate(remote: Path) -> None:
    remote.rename(remote.with_suffix(".1"))
    remote.write_bytes(b"x" * 60_000)


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("change", [outgrow, rotate, copy_over])
def test_a_log_that_changes_while_it_is_followed_adds_no_byte(
    follow: Callable[[], Follower], remote: Path, local: Path, change: Callable[[Path], None]
) -> None:
    remote.write_bytes(b"x" * 50_000)
    follower = follow()
    pump_until(follower, holds(local, b"x" * 50_000))
    append(remote, b"and on\n")
    before = remote.read_bytes()
    pump_until(follower, holds(local, before))
    change(remote)
    with pytest.raises(LogReplacedError):
        pump_until(follower, lambda: False)
    assert local.read_bytes() == before


@pytest.mark.usefixtures("either_way")
def test_a_missing_log_is_reported_immediately_and_followed_when_it_returns(
    follow: Callable[[], Follower], remote: Path, local: Path
) -> None:
    remote.write_bytes(b"one\n")
    follower = follow()
    pump_until(follower, holds(local, b"one\n"))
    hidden = remote.rename(remote.with_suffix(".hidden"))
    with pytest.raises(LlmbError, match="is gone"):
        pump_until(follower, lambda: False)
    with pytest.raises(LogMissingError, match="is gone"):
        follower.behind()  # a partial copy does not count as a complete one
    append(hidden, b"two\n")
    hidden.rename(remote)
    assert follower.behind() == 4
    follower.retry_soon()
    pump_until(follower, holds(local, b"one\ntwo\n"))


@pytest.mark.usefixtures("either_way")
def test_a_log_on_a_missing_file_system_is_unreadable_not_unwritten(
    follow: Callable[[], Follower], remote: Path, local: Path
) -> None:
    follower = follow()
    remote.parent.rmdir()  # like a job that creates its directory when it starts
    assert follower.behind() == 0
    installs = remote.parents[1]
    away = installs.rename(installs.with_name("away"))
    for ask in (follower.behind, lambda: follower.copy_available(0.1)):
        with pytest.raises(UnreadableFileError, match="cannot be read") as caught:
            ask()
        assert str(installs) in caught.value.why
    away.rename(installs)
    remote.parent.mkdir()
    remote.write_bytes(b"one\n")
    follower.retry_soon()
    pump_until(follower, holds(local, b"one\n"))


def test_a_second_program_waits_and_takes_over(follow: Callable[[], Follower], remote: Path, local: Path) -> None:
    remote.write_bytes(b"one\n")
    first, second = follow(), follow()
    pump_until(first, holds(local, b"one\n"))
    append(remote, b"two\n")
    assert second.copy_available(0.3) == 0
    pump_until(first, holds(local, b"one\ntwo\n"))
    assert second.behind() == 0
    first.close()
    append(remote, b"three\n")
    pump_until(second, holds(local, b"one\ntwo\nthree\n"))


def test_a_tail_without_gnu_options_is_enough(
    follow: Callable[[], Follower], remote: Path, local: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = shutil.which("tail")
    plain = f'case "$1" in -c | -f) exec {real} "$@" ;; esac\necho "illegal option" >&2\nexit 1'
    in_place_of(tmp_path, monkeypatch, tail=plain, perl="exit 1")
    remote.write_bytes(b"one\n")
    follower = follow()
    pump_until(follower, holds(local, b"one\n"))
    append(remote, b"two\n")
    pump_until(follower, holds(local, b"one\ntwo\n"))


@pytest.mark.usefixtures("either_way")
def test_no_process_stays_on_the_cluster(follow: Callable[[], Follower], remote: Path, local: Path) -> None:
    def running() -> str:
        command = ["pgrep", "-f", f"tail .*{remote.parent}"]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout

    remote.write_bytes(b"one\n")
    follower = follow()
    pump_until(follower, holds(local, b"one\n"))
    assert running()
    follower.close()
    until(lambda: not running(), "tail has ended")


def test_a_check_of_the_log_starts_no_process(
    follow: Callable[[], Follower], remote: Path, local: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = tmp_path / "started"
    names = ("cat", "cksum", "gzip", "head", "ls", "perl", "sleep", "stat", "tail", "wc")
    note = {name: f'echo {name} >> {started}\nexec {shutil.which(name)} "$@"' for name in names}
    in_place_of(tmp_path, monkeypatch, **note)
    remote.write_bytes(b"one\n")
    follower = follow()
    pump_until(follower, holds(local, b"one\n"))
    before = started.read_text()
    assert before.split()[-1] == "perl"
    for count in range(3):
        assert follower.copy_available(0.2) == 0
        append(remote, b"more\n")
        pump_until(follower, holds(local, b"one\n" + b"more\n" * (count + 1)))
    assert started.read_text() == before


@pytest.mark.parametrize("size", [4, 8_000_000])
def test_a_silent_client_receives_nothing(
    follow: Callable[[], Follower], remote: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """The server cannot detect that the client reads no more, and its data fits into no buffer."""

    groups: set[str] = set()

    def running() -> list[str]:
        listed = subprocess.run(["ps", "-A", "-ww", "-o", "pgid=,args="], capture_output=True, text=True, check=True)
        lines = [line.split(None, 1) for line in listed.stdout.splitlines()]
        groups.update(group for group, args in lines if str(remote) in args)
        return [args for group, args in lines if group in groups and "<defunct>" not in args]

    monkeypatch.setattr(remotelog, "SILENCE_S", 1)
    monkeypatch.setattr(remotelog, "KEEPALIVE_EVERY_S", 1e9)
    remote.write_bytes(os.urandom(size))
    follower = follow()
    pump_until(follower, lambda: bool(running()) and follower.copied > 0)
    until(lambda: not running(), "it has ended")


def test_an_unreadable_log_raises_an_error(follow: Callable[[], Follower], remote: Path) -> None:
    remote.mkdir()
    with pytest.raises(LlmbError, match="cannot be read"):
        follow().copy_available(0.1)


def test_memory_does_not_follow_the_size_of_the_log(follow: Callable[[], Follower], remote: Path, local: Path) -> None:
    remote.write_bytes(b"0123456789abcde\n" * 2_000_000)
    follower = follow()
    follower.copy_available(0.1)
    tracemalloc.start()
    pump_until(follower, lambda: local.stat().st_size == 32_000_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 12_000_000


def test_a_login_node_without_timeout_and_gzip_will_do(
    follow: Callable[[], Follower], remote: Path, local: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("cat", "cksum", "head", "ls", "sh", "sleep", "tail", "wc"):
        program = shutil.which(name)
        assert program
        (programs / name).symlink_to(program)
    remote.write_bytes(os.urandom(6_000_000))
    follower = follow()
    monkeypatch.setenv("PATH", str(programs))
    pump_until(follower, holds(local, remote.read_bytes()))
    append(remote, b"and on\n")
    pump_until(follower, holds(local, remote.read_bytes()))


@pytest.mark.usefixtures("either_way")
def test_a_long_gap_is_filled_and_then_followed(follow: Callable[[], Follower], remote: Path, local: Path) -> None:
    remote.write_bytes(b"a line that is like the others\n" * 300_000 + os.urandom(1_000_000))
    follower = follow()
    pump_until(follower, holds(local, remote.read_bytes()))
    append(remote, b"and on\n")
    pump_until(follower, holds(local, remote.read_bytes()))


@pytest.mark.parametrize(("variable", "value"), PERL_SETTINGS)
def test_bytes_are_copied_whatever_perl_is_set_to(
    follow: Callable[[], Follower],
    remote: Path,
    local: Path,
    *,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    value: str,
) -> None:
    monkeypatch.setattr(remotelog, "NEAR_S", 0.0)
    monkeypatch.setenv(variable, value)
    for gap in ("é\n".encode(), b"a line that is like the others\n" * 300_000):
        append(remote, gap)
        follower = follow()
        pump_until(follower, holds(local, remote.read_bytes()))
        append(remote, b"\xff\x00\r")
        pump_until(follower, holds(local, remote.read_bytes()))
        follower.close()


@pytest.fixture
def packers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Function that limits the login node to the named compressors and returns the file that records their starts."""

    def have(*names: str) -> Path:
        note = {name: f"echo {name} >> {tmp_path}/started\n{_PACKERS[name]}" for name in names}
        in_place_of(tmp_path, monkeypatch, **note)
        for name in ("cat", "cksum", "head", "ls", "perl", "sh", "sleep", "tail", "timeout", "wc"):
            (tmp_path / "first" / name).symlink_to(shutil.which(name) or "")
        monkeypatch.setenv("PATH", str(tmp_path / "first"))
        (tmp_path / "started").touch()
        return tmp_path / "started"

    return have


_ZSTD = """\
import sys
try: from compression import zstd
except ImportError: from backports import zstd
options = {zstd.CompressionParameter.compression_level: 1, zstd.CompressionParameter.checksum_flag: 1}
sys.stdout.buffer.write(zstd.compress(sys.stdin.buffer.read(), options=options))
"""
_PACKERS = {"gzip": f'exec {shutil.which("gzip")} "$@"', "zstd": f"exec {sys.executable} -c '{_ZSTD}'"}


@pytest.mark.parametrize(
    ("has", "near_s", "started"),
    [
        (("gzip", "zstd"), 0.0, "zstd\n"),
        (("gzip", "zstd"), 3600.0, "zstd\n"),
        (("gzip",), 0.0, "gzip\n"),
        (("gzip",), 3600.0, ""),
    ],
)
def test_a_long_gap_is_compressed_if_a_compressor_is_faster_than_the_network(
    follow: Callable[[], Follower],
    remote: Path,
    local: Path,
    *,
    packers: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    has: tuple[str, ...],
    near_s: float,
    started: str,
) -> None:
    monkeypatch.setattr(remotelog, "NEAR_S", near_s)
    commands = packers(*has)
    remote.write_bytes(b"first\n")
    follower = follow()
    pump_until(follower, holds(local, b"first\n"))
    follower.close()
    append(remote, b"a line that is like the others\n" * 300_000 + os.urandom(1_000_000))
    pump_until(follower, holds(local, remote.read_bytes()))
    append(remote, b"and on\n")
    pump_until(follower, holds(local, remote.read_bytes()))
    assert commands.read_text() == started


_DAMAGES = {
    "nonsense": "cat > /dev/null; echo nonsense, and nothing that was compressed",
    "nothing": "cat > /dev/null",
    "a bit near the beginning": "{pack} | python3 -c '{flip}' 300",
    "a bit near the end": "{pack} | python3 -c '{flip}' -300",
    "a missing end": "{pack} | head -c 100000",
    "a missing piece": "{pack} | (head -c 65536; head -c 100 > /dev/null; cat)",
}
_FLIP = """\
import sys
data = bytearray(sys.stdin.buffer.read())
data[int(sys.argv[1])] ^= 16
sys.stdout.buffer.write(data)
"""


@pytest.mark.parametrize("damage", _DAMAGES)
@pytest.mark.parametrize("packer", ["gzip", "zstd"])
def test_a_compressed_gap_that_is_damaged_on_its_way_leaves_no_wrong_byte(
    follow: Callable[[], Follower],
    remote: Path,
    local: Path,
    *,
    packers: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    packer: str,
    damage: str,
) -> None:
    """Only the first attempt is damaged. Most flipped bits are only detected by the checksum at the end of the gap."""
    monkeypatch.setattr(remotelog, "NEAR_S", 0.0)
    whole = "".join(
        f"iteration {n} | lm loss {n * 7 % 1009}.5 | step time 1.{n % 97}\n" for n in range(150_000)
    ).encode()
    remote.write_bytes(whole[:50_000])
    follower = follow()
    pump_until(follower, holds(local, whole[:50_000]))
    follower.close()
    remote.write_bytes(whole)
    pack = _PACKERS[packer].removeprefix("exec ")
    once = f'[ -e "{local}.damaged" ] && {{ {pack}; exit; }}; : > "{local}.damaged"\n'
    monkeypatch.setitem(_PACKERS, packer, once + _DAMAGES[damage].format(pack=pack, flip=_FLIP))
    packers(packer)
    (Path(os.environ["PATH"]) / "python3").symlink_to(sys.executable)
    follower, errors = follow(), list[str]()
    ends = time.monotonic() + DEADLINE_S
    while local.read_bytes() != whole and time.monotonic() < ends:
        try:
            follower.copy_available(0.1)
        except LlmbError as error:
            errors.append(error.why)
            assert whole.startswith(local.read_bytes())
            follower.retry_soon()
    assert local.read_bytes() == whole
    assert all(error.startswith("The compressed data is damaged: ") for error in errors)
    assert bool(errors) is (damage not in ("nothing", "a missing end"))


def test_a_full_disk_here_costs_no_byte(follow: Callable[[], Follower], remote: Path, local: Path) -> None:
    remote.write_bytes(os.urandom(300_000))
    follower = follow()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(LlmbError, match="cannot be written") as caught:
            pump_until(follower, lambda: False)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "copying then continues" in caught.value.fix
    assert local.read_bytes() == remote.read_bytes()[:100_000]
    pump_until(follower, holds(local, remote.read_bytes()))


def test_two_programs_on_a_file_system_without_locks_duplicate_no_bytes(
    follow: Callable[[], Follower], remote: Path, local: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    remote.write_bytes(b"one\n")
    first, second = follow(), follow()
    for line in (b"two\n", b"three\n", b"four\n"):
        append(remote, line)
        pump_until(first, holds(local, remote.read_bytes()))
        for _ in range(8):
            second.copy_available(0.1)
    assert local.read_bytes() == remote.read_bytes() == b"one\ntwo\nthree\nfour\n"


@pytest.mark.parametrize("printed", SHELL_PRINTS)
def test_output_of_a_login_shell_is_not_part_of_the_log(
    node: LoginNode, follow: Callable[[], Follower], remote: Path, local: Path, printed: str
) -> None:
    node.shell_prints = printed
    remote.write_bytes(b"one\n")
    follower = follow()
    assert follower.behind() == 4
    pump_until(follower, holds(local, b"one\n"))


@pytest.mark.parametrize("printed", SHELL_PRINTS)
def test_output_of_a_login_shell_hides_no_log(node: LoginNode, printed: str) -> None:
    node.shell_prints = printed
    (node.home / "log_5_0.out").touch()
    with closing(SlurmCluster(node.profile())) as session:
        assert session.output(JobLog(f"{node.home}/log_%j_%r.out"), "5").starts() == [0]


@pytest.mark.parametrize("printed", SHELL_PRINTS)
def test_a_log_that_is_not_there_is_missing_whatever_a_login_shell_prints(
    node: LoginNode, remote: Path, printed: str
) -> None:
    node.shell_prints = printed
    with closing(SlurmCluster(node.profile())) as session:
        assert RemoteLog(session, str(remote)).prove(Sample(0, 0, 0), b"") is None
