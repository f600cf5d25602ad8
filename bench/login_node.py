"""CPU time and delay of the program's processes on a login node. Stand-ins of Slurm's commands print files."""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from bench._rounds import Row, children_cpu_s, measure, measure_cpu_s, python, versions

_POLL = """\
import sys
from llmb_tui.cluster.batch import batch_script
try:
    from llmb_tui.cluster.slurm.client import look_commands
except ImportError:  # the older version
    from llmb_tui.cluster.slurm.client import _look_commands as look_commands
print(batch_script(look_commands(list(map(str, range(int(sys.argv[1]))))), "T"))
"""
_FOLLOW = """\
import json, sys
try:
    from llmb_tui.cluster.remotelog import RemoteLog, Sample
except ImportError:  # the older version
    from llmb_tui.watch.remotelog import RemoteLog, Sample
class Session:
    profile = health = type("", (), {"transport": "ssh", "round_trip_s": None, "install_dir": "/"})
    def stream(self, argv, **_):
        print(json.dumps(argv))
        sys.exit()
tail = RemoteLog(Session(), sys.argv[1]).tail
tail(*(Sample(0, 0, 0), 0, b"")[: tail.__code__.co_argcount - 1])  # the older version has fewer parameters
"""


def poll() -> Row:
    """Measure one poll of Slurm for 500 active jobs, and for 50. The queue contains only these jobs."""
    with tempfile.TemporaryDirectory() as folder:
        ways = {}
        for version, tree in versions().items():
            for jobs in (500, 50):
                directory = Path(folder) / f"{version}{jobs}"
                directory.mkdir()
                columns = "RUNNING None 8 1:02:03 0 0:0 1769029518 cn[001-008] a-job-with-a-name".replace(" ", "\x1f")
                (directory / "queue").write_text("".join(f"{job}\x1f{columns}\x1f\n" for job in range(jobs)))
                (directory / "squeue").write_text(f"#!/bin/sh\nexec cat {directory}/queue\n")
                (directory / "squeue").chmod(0o755)
                script = str(directory / "script")
                measure_cpu_s(["sh", "-c", '"$@" > "$0"', script, *python("-c", _POLL, str(jobs))], tree)
                name = version if jobs == 500 else f"{version}, 50 jobs"
                ways[name] = partial(measure_cpu_s, ["sh", script], PATH=f"{directory}:{os.environ['PATH']}")
        goals = "≤ 2 × now, 50 jobs; ≤ 1/8 × before"
        return Row("one poll of Slurm for 500 jobs", "CPU s", measure(ways, 9), goals, 16)


def follow() -> Row:
    """Measure following a log for ten seconds; the log gains a line each second."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        ways = {version: partial(_follow_cpu_s, tree, log) for version, tree in versions().items()}
        return Row("following a log for 10 s, one line a second", "CPU s", measure(ways))


def line_delay() -> Row:
    """Measure from a line in the file to its bytes in the pipe, without SSH; compare with a `tail -F` that polls."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        ways = {version: partial(_delay_s, _argv(tree, log), log) for version, tree in versions().items()}
        polling = ["tail", "-n", "0", "-F", "---disable-inotify", str(log)]
        ways["tail -F polls"] = partial(_delay_s, polling, log)
        return Row("delay until a line is sent", "s", measure(ways, 9), "≤ 1/5 × tail -F polls", 8)


def _delay_s(argv: Sequence[str], log: Path) -> float:
    """Median of three lines, each written after a random pause."""
    log.write_text("the first line\n")
    delays = []
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as follower:
        for number in range(3):
            time.sleep(random.uniform(1.0, 2.0))
            line = f"line {number}\n".encode()
            with log.open("ab") as file:
                file.write(line)
            started_at, output = time.monotonic(), b""
            while follower.stdout is not None and line not in output:
                output += os.read(follower.stdout.fileno(), 1 << 16)
            delays.append(time.monotonic() - started_at)
        follower.kill()
    return statistics.median(delays)


def _argv(tree: str, log: Path) -> list[str]:
    """Remote command with which a version follows the log."""
    command = python("-c", _FOLLOW, str(log))
    environment = {**os.environ, "PYTHONPATH": tree}
    process = subprocess.run(command, capture_output=True, cwd=tree, env=environment, check=True)
    argv: list[str] = json.loads(process.stdout)
    return argv


def _follow_cpu_s(tree: str, log: Path) -> float:
    log.write_text("the first line\n")
    argv, cpu_before = _argv(tree, log), children_cpu_s()
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, bufsize=0) as follower:
        for _ in range(10):
            time.sleep(1)
            with log.open("a") as file:
                file.write("one more line\n")
            if follower.stdin is not None:
                follower.stdin.write(b"\n")
    return children_cpu_s() - cpu_before


def cheap() -> Iterator[Row]:
    """Measure the rows that need no waiting."""
    yield poll()


def rows() -> Iterator[Row]:
    """Measure all rows."""
    yield poll()
    yield follow()
    yield line_delay()
