"""The line to a login node, over loopback and over one of 40 ms and 200 Mbit/s, beside OpenSSH's own client.

The server is the rig's of the tests: a real sshd. Each client is a process of its own.
"""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bench._rounds import Row, in_turns, python, versions
from bench._wan import wan
from tests.rig.cluster import Rig

_RTT_MS, _MBIT = 40.0, 200.0
_LOOPBACK_MBIT = 1e6
_SESSION = """\
import json, statistics, sys, tempfile, threading, time
from pathlib import Path
from llmb_tui.cluster.batch import run_batch
from llmb_tui.watch.follow import Follower
try:
    from llmb_tui.cluster.slurm.profile import SlurmProfile
    from llmb_tui.cluster.slurm.cluster import SlurmCluster
    from llmb_tui.cluster.remotelog import RemoteLog
    session = SlurmCluster(SlurmProfile(**json.loads(sys.argv[1])))
    def follow(name, copy): return Follower(RemoteLog(session, name), copy)
except ImportError:  # an older version
    from llmb_tui.cluster.profile import ClusterProfile
    from llmb_tui.cluster.prompter import NonInteractivePrompter
    from llmb_tui.cluster.session import Session
    session = Session(ClusterProfile(**json.loads(sys.argv[1])), NonInteractivePrompter())
    def follow(name, copy): return Follower(session, name, copy)
def look():
    began = time.perf_counter()
    assert run_batch(session, {"echo": "echo here"}, 20.0)["echo"].text == "here\\n"
    return time.perf_counter() - began
"""
_CONNECT = """\
began = time.perf_counter()
assert session.run(["echo", "here"]).stdout == "here\\n"
print(time.perf_counter() - began)
"""
_WARM = """\
for _ in range(3): look()
print(statistics.median(look() for _ in range(20)))
"""
_COPY = """\
with tempfile.TemporaryDirectory() as folder:
    for name in sys.argv[2:]:  # the first is short: it connects
        follower = follow(name, Path(folder, "copy" + Path(name).name))
        began = time.perf_counter()
        while follower.copied < Path(name).stat().st_size: follower.pump(1.0)
        took = time.perf_counter() - began
        follower.close()
print(took)
"""
_BESIDE = """\
def look_now_and_then():
    time.sleep(0.02)  # more often than the program ever asks; meanwhile the stream goes on
    return look()
for _ in range(3): look()
def read():
    with session.stream(["sh", "-c", "cat /dev/zero"], bulk=True) as stream:
        while not done.is_set(): came.append(len(stream.read(1.0) or b""))
done, came = threading.Event(), []
if sys.argv[2:]:
    threading.Thread(target=read, daemon=True).start()
    time.sleep(1.0)
sofar = sum(came)
print(statistics.median(look_now_and_then() for _ in range(30)))
done.set()
assert not sys.argv[2:] or sum(came) - sofar > 1 << 20
"""


class Line(NamedTuple):
    """One way to the login node, for this program and for `ssh`."""

    name: str
    profile: Mapping[str, object]
    ssh: tuple[str, ...]


@contextmanager
def lines() -> Iterator[tuple[Rig, Sequence[Line]]]:
    """A login node, and both lines to it."""
    rig = Rig(slurm=False)
    rig.start()
    with ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        stack.callback(rig.stop)
        ways = []
        for name, rtt_ms, mbit in (("loopback", 0.0, _LOOPBACK_MBIT), ("40 ms, 200 Mbit/s", _RTT_MS, _MBIT)):
            port = stack.enter_context(wan(rig.port(), rtt_ms, mbit)) if rtt_ms else rig.port()
            known = Path(folder, f"known{port}")
            known.write_text(rig.client.known_hosts.read_text().replace(f"]:{rig.port()} ", f"]:{port} "))
            names = ("name", "host", "account", "partition", "install_dir", "ssh_config")
            given = {field: getattr(rig.profile(), field) for field in names}  # an older version knows fewer
            options = (
                "LogLevel=ERROR",
                f"UserKnownHostsFile={known}",
                f"ControlPath={folder}/{port}",
                "ControlPersist=no",
            )
            ssh = ["ssh", "-F", str(rig.client.config), "-p", str(port)]
            ways.append(
                Line(
                    name,
                    {**given, "port": port, "known_hosts": str(known)},
                    (*ssh, *(word for option in options for word in ("-o", option)), "login"),
                )
            )
        yield rig, ways


def _client(tree: str, line: Line, script: str, *arguments: str) -> float:
    command = python("-c", _SESSION + script, json.dumps(line.profile), *arguments)
    environment = {"PYTHONPATH": tree, "PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
    return float(subprocess.run(command, stdout=subprocess.PIPE, cwd=tree, env=environment, check=True).stdout)


def _ours(line: Line, script: str, *arguments: str) -> dict[str, partial[float]]:
    return {version: partial(_client, tree, line, script, *arguments) for version, tree in versions().items()}


def warm(line: Line, what: str, reach: str) -> Row:
    """A command on a connection that is there; a persistent sh takes one round trip."""
    ways = {**_ours(line, _WARM), "persistent sh": partial(_sh_s, line), "ControlMaster": partial(_master_s, line)}
    return Row(f"a warm command{what}, {line.name}", "s", in_turns(ways), reach, 12)


def _sh_s(line: Line) -> float:
    taken = []
    with subprocess.Popen([*line.ssh, "exec sh"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as shell:
        assert shell.stdin is not None
        assert shell.stdout is not None
        for _ in range(23):
            began = time.perf_counter()
            shell.stdin.write(b"echo here\n")
            shell.stdout.readline()
            taken.append(time.perf_counter() - began)
        shell.stdin.close()
    return statistics.median(taken[3:])


def _master_s(line: Line) -> float:
    with subprocess.Popen([*line.ssh[:-1], "-M", "-N", line.ssh[-1]]) as master:
        time.sleep(1.5)
        taken = [_echo_s(line) for _ in range(5)]
        master.terminate()
    return statistics.median(taken)


def first(line: Line, reach: str) -> Row:
    """From nothing to the answer of a first command; the program's own start is not in it, and ssh's is."""
    ways = {**_ours(line, _CONNECT), "ssh host echo": partial(_echo_s, line)}
    why = "six round trips (ssh needs eight), and importing paramiko, which takes as long as one round trip"
    return Row(f"connect to first answer, {line.name}", "s", in_turns(ways, 9), reach, 13, why)


def _echo_s(line: Line) -> float:
    began = time.perf_counter()
    subprocess.run([*line.ssh, "echo here"], capture_output=True, check=True)
    return time.perf_counter() - began


def copy(rig: Rig, line: Line, megabytes: int, reach: str) -> Row:
    """A log to its last byte on the disk here; of ssh from its first byte on."""
    folder = rig.new_dir()
    short, log = folder / "short", folder / "log"
    short.write_text("one line\n")
    with log.open("wb") as file:
        chance = random.Random(7)
        while file.tell() < megabytes << 20:
            file.write("".join(_line(chance) for _ in range(10_000)).encode())
    ways = {
        **_ours(line, _COPY, str(short), str(log)),
        "ssh cat": partial(_cat_s, [*line.ssh, f"cat {log}"], folder),
        "ssh -C cat": partial(_cat_s, [*line.ssh[:-1], "-C", line.ssh[-1], f"cat {log}"], folder),
    }
    return Row(f"copying a log of {megabytes} MB, {line.name}", "s", in_turns(ways), reach, 11)


def _line(chance: random.Random) -> str:
    """As many kinds of lines, and as much in them that is new, as real ones have."""
    rank, step, much = chance.randrange(512), chance.randrange(1000), chance.randrange(6 << 30, 7 << 30)
    if chance.random() < 0.4:
        return (
            f"{rank % 8}: Training epoch 0, iteration {step}/999 | lr: {chance.uniform(1e-6, 3e-4):.3e} | "
            f"global_batch_size: 512 | global_step: {step} | peak_memory_usage: {much} | "
            f"memory_allocated: {much // 2} | reduced_train_loss: {chance.uniform(1.5, 11):.4f} | "
            f"train_step_timing in s: {chance.uniform(4, 7):.3f} | consumed_samples: {step * 512}\n"
        )
    return (
        f"{rank % 8}: node{rank % 64:03}:{chance.randrange(1000, 99999)}:{chance.randrange(1000, 99999)} [{rank % 8}]"
        f" NCCL INFO Channel {chance.randrange(24):02}/0 : {rank}[{rank % 8}] -> {chance.randrange(512)}[{rank % 8}]"
        f" [send] via NET/IB/{chance.randrange(8)}/GDRDMA\n"
    )


def _cat_s(command: Sequence[str], folder: Path) -> float:
    with subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0) as ssh, (folder / "cat").open("wb") as file:
        assert ssh.stdout is not None
        file.write(ssh.stdout.read(1))
        began = time.perf_counter()
        while data := ssh.stdout.read(1 << 20):
            file.write(data)
        return time.perf_counter() - began


def beside(line: Line) -> Row:
    """A command while a long stream runs, and while none does."""
    ways = {**_ours(line, _BESIDE, "bulk"), "idle": _ours(line, _BESIDE)["now"]}
    return Row(f"a command during a long stream, {line.name}", "s", in_turns(ways), "≤ 1.2 × idle", 14)


def rows() -> Iterator[Row]:
    """All."""
    with lines() as (rig, (loopback, far)):
        yield copy(rig, loopback, 200, "≤ 1.18 × ssh cat")
        yield copy(rig, far, 40, "≤ 1/3 × ssh cat")
        yield copy(rig, far, 200, "≤ 1/3 × ssh cat")
        yield warm(loopback, "", "")
        yield warm(far, "", "≤ 1.1 × persistent sh")
        yield first(loopback, "")
        yield first(far, "≤ 0.65 × ssh host echo")
        yield beside(loopback)
        yield beside(far)
        (rig.home / ".bashrc").write_text("sleep 0.1\n")
        yield warm(far, ", with a login shell that takes 0.1 s to start", "≤ 1.1 × persistent sh")
