"""Measure the connection to a login node and compare it with OpenSSH's client.

The server is the real sshd of the test rig, over loopback and over a line of 40 ms and 200 Mbit/s. Each client is a
separate process.
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

from bench._rounds import Row, measure, python, versions
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
except ImportError:  # the older version
    from llmb_tui.cluster.profile import ClusterProfile
    from llmb_tui.cluster.prompter import NonInteractivePrompter
    from llmb_tui.cluster.session import Session
    session = Session(ClusterProfile(**json.loads(sys.argv[1])), NonInteractivePrompter())
    def follow(name, copy): return Follower(session, name, copy)
def poll():
    started_at = time.perf_counter()
    assert run_batch(session, {"echo": "echo here"}, 20.0)["echo"].text == "here\\n"
    return time.perf_counter() - started_at
"""
_CONNECT = """\
started_at = time.perf_counter()
assert session.run(["echo", "here"]).stdout == "here\\n"
print(time.perf_counter() - started_at)
"""
_WARM_COMMAND = """\
for _ in range(3): poll()
print(statistics.median(poll() for _ in range(20)))
"""
_COPY = """\
with tempfile.TemporaryDirectory() as folder:
    for name in sys.argv[2:]:  # copying the first log, a short one, opens the connection
        follower = follow(name, Path(folder, "copy" + Path(name).name))
        started_at = time.perf_counter()
        while follower.copied < Path(name).stat().st_size: follower.pump(1.0)
        seconds = time.perf_counter() - started_at
        follower.close()
print(seconds)
"""
_DURING_STREAM = """\
def poll_after_pause():
    time.sleep(0.02)  # shorter than any pause of the program; the stream continues meanwhile
    return poll()
for _ in range(3): poll()
def read():
    with session.stream(["sh", "-c", "cat /dev/zero"], bulk=True) as stream:
        while not stop.is_set(): sizes.append(len(stream.read(1.0) or b""))
stop, sizes = threading.Event(), []
if sys.argv[2:]:
    threading.Thread(target=read, daemon=True).start()
    time.sleep(1.0)
bytes_before = sum(sizes)
print(statistics.median(poll_after_pause() for _ in range(30)))
stop.set()
assert not sys.argv[2:] or sum(sizes) - bytes_before > 1 << 20
"""


class Line(NamedTuple):
    """A line to the login node: cluster profile for this program, command for `ssh`."""

    name: str
    profile: Mapping[str, object]
    ssh: tuple[str, ...]


@contextmanager
def lines() -> Iterator[tuple[Rig, Sequence[Line]]]:
    """Start a login node; yield it with a fast and a slow line to it."""
    rig = Rig(slurm=False)
    rig.start()
    with ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        stack.callback(rig.stop)
        connections = []
        for name, rtt_ms, mbit in (("loopback", 0.0, _LOOPBACK_MBIT), ("40 ms, 200 Mbit/s", _RTT_MS, _MBIT)):
            port = stack.enter_context(wan(rig.port(), rtt_ms, mbit)) if rtt_ms else rig.port()
            known_hosts = Path(folder, f"known{port}")
            known_hosts.write_text(rig.client.known_hosts.read_text().replace(f"]:{rig.port()} ", f"]:{port} "))
            names = ("name", "host", "account", "partition", "install_dir", "ssh_config")
            fields = {field: getattr(rig.profile(), field) for field in names}  # the older version rejects other fields
            options = (
                "LogLevel=ERROR",
                f"UserKnownHostsFile={known_hosts}",
                f"ControlPath={folder}/{port}",
                "ControlPersist=no",
            )
            ssh = ["ssh", "-F", str(rig.client.config), "-p", str(port)]
            connections.append(
                Line(
                    name,
                    {**fields, "port": port, "known_hosts": str(known_hosts)},
                    (*ssh, *(word for option in options for word in ("-o", option)), "login"),
                )
            )
        yield rig, connections


def _client(tree: str, line: Line, script: str, *arguments: str) -> float:
    command = python("-c", _SESSION + script, json.dumps(line.profile), *arguments)
    environment = {"PYTHONPATH": tree, "PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
    return float(subprocess.run(command, stdout=subprocess.PIPE, cwd=tree, env=environment, check=True).stdout)


def _client_ways(line: Line, script: str, *arguments: str) -> dict[str, partial[float]]:
    return {version: partial(_client, tree, line, script, *arguments) for version, tree in versions().items()}


def warm_command(line: Line, condition: str, goals: str) -> Row:
    """Measure a command on an open connection; a persistent sh needs one round trip."""
    ways = {
        **_client_ways(line, _WARM_COMMAND),
        "persistent sh": partial(_sh_s, line),
        "ControlMaster": partial(_master_s, line),
    }
    return Row(f"a warm command{condition}, {line.name}", "s", measure(ways), goals, 12)


def _sh_s(line: Line) -> float:
    times = []
    with subprocess.Popen([*line.ssh, "exec sh"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as shell:
        assert shell.stdin is not None
        assert shell.stdout is not None
        for _ in range(23):
            started_at = time.perf_counter()
            shell.stdin.write(b"echo here\n")
            shell.stdout.readline()
            times.append(time.perf_counter() - started_at)
        shell.stdin.close()
    return statistics.median(times[3:])


def _master_s(line: Line) -> float:
    with subprocess.Popen([*line.ssh[:-1], "-M", "-N", line.ssh[-1]]) as master:
        time.sleep(1.5)
        times = [_echo_s(line) for _ in range(5)]
        master.terminate()
    return statistics.median(times)


def first_answer(line: Line, goals: str) -> Row:
    """Measure from no connection to the answer of the first command; ssh's start counts, the program's does not."""
    ways = {**_client_ways(line, _CONNECT), "ssh host echo": partial(_echo_s, line)}
    reason = "six round trips (ssh needs eight), and importing paramiko, which takes as long as one round trip"
    return Row(f"connect to first answer, {line.name}", "s", measure(ways, 9), goals, 13, reason)


def _echo_s(line: Line) -> float:
    started_at = time.perf_counter()
    subprocess.run([*line.ssh, "echo here"], capture_output=True, check=True)
    return time.perf_counter() - started_at


def copy_log(rig: Rig, line: Line, megabytes: int, goals: str) -> Row:
    """Measure until the last byte of a log is on the local disk; for ssh, from the first byte on."""
    folder = rig.new_dir()
    short, log = folder / "short", folder / "log"
    short.write_text("one line\n")
    with log.open("wb") as file:
        rng = random.Random(7)
        while file.tell() < megabytes << 20:
            file.write("".join(_random_log_line(rng) for _ in range(10_000)).encode())
    ways = {
        **_client_ways(line, _COPY, str(short), str(log)),
        "ssh cat": partial(_cat_s, [*line.ssh, f"cat {log}"], folder),
        "ssh -C cat": partial(_cat_s, [*line.ssh[:-1], "-C", line.ssh[-1], f"cat {log}"], folder),
    }
    return Row(f"copying a log of {megabytes} MB, {line.name}", "s", measure(ways), goals, 11)


def _random_log_line(rng: random.Random) -> str:
    """Random line; the lines vary and compress about as real ones do."""
    rank, step, memory = rng.randrange(512), rng.randrange(1000), rng.randrange(6 << 30, 7 << 30)
    if rng.random() < 0.4:
        return (
            f"{rank % 8}: Training epoch 0, iteration {step}/999 | lr: {rng.uniform(1e-6, 3e-4):.3e} | "
            f"global_batch_size: 512 | global_step: {step} | peak_memory_usage: {memory} | "
            f"memory_allocated: {memory // 2} | reduced_train_loss: {rng.uniform(1.5, 11):.4f} | "
            f"train_step_timing in s: {rng.uniform(4, 7):.3f} | consumed_samples: {step * 512}\n"
        )
    return (
        f"{rank % 8}: node{rank % 64:03}:{rng.randrange(1000, 99999)}:{rng.randrange(1000, 99999)} [{rank % 8}]"
        f" NCCL INFO Channel {rng.randrange(24):02}/0 : {rank}[{rank % 8}] -> {rng.randrange(512)}[{rank % 8}]"
        f" [send] via NET/IB/{rng.randrange(8)}/GDRDMA\n"
    )


def _cat_s(command: Sequence[str], folder: Path) -> float:
    with subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0) as ssh, (folder / "cat").open("wb") as file:
        assert ssh.stdout is not None
        file.write(ssh.stdout.read(1))
        started_at = time.perf_counter()
        while data := ssh.stdout.read(1 << 20):
            file.write(data)
        return time.perf_counter() - started_at


def command_during_stream(line: Line) -> Row:
    """Measure a command during a long stream, and without one."""
    ways = {**_client_ways(line, _DURING_STREAM, "bulk"), "idle": _client_ways(line, _DURING_STREAM)["now"]}
    return Row(f"a command during a long stream, {line.name}", "s", measure(ways), "≤ 1.2 × idle", 14)


def rows() -> Iterator[Row]:
    """Measure all rows."""
    with lines() as (rig, (loopback, slow)):
        yield copy_log(rig, loopback, 200, "≤ 1.18 × ssh cat")
        yield copy_log(rig, slow, 40, "≤ 1/3 × ssh cat")
        yield copy_log(rig, slow, 200, "≤ 1/3 × ssh cat")
        yield warm_command(loopback, "", "")
        yield warm_command(slow, "", "≤ 1.1 × persistent sh")
        yield first_answer(loopback, "")
        yield first_answer(slow, "≤ 0.65 × ssh host echo")
        yield command_during_stream(loopback)
        yield command_during_stream(slow)
        (rig.home / ".bashrc").write_text("sleep 0.1\n")
        yield warm_command(slow, ", with a login shell that takes 0.1 s to start", "≤ 1.1 × persistent sh")
