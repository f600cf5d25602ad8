"""What the program costs a login node: processes there, with Slurm's commands as files that are printed."""

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

from bench._rounds import Row, children_s, cpu_of, in_turns, python, versions

_SCRIPT = """\
import sys
from llmb_tui.cluster.batch import batch_script
try:
    from llmb_tui.cluster.slurm.client import look_commands
except ImportError:  # an older version
    from llmb_tui.cluster.slurm.client import _look_commands as look_commands
print(batch_script(look_commands(list(map(str, range(int(sys.argv[1]))))), "T"))
"""
_FOLLOW = """\
import json, sys
try:
    from llmb_tui.cluster.remotelog import RemoteLog, Sample
except ImportError:  # an older version
    from llmb_tui.watch.remotelog import RemoteLog, Sample
class Session:
    profile = health = type("", (), {"transport": "ssh", "round_trip_s": None, "install_dir": "/"})
    def stream(self, argv, **_):
        print(json.dumps(argv))
        sys.exit()
tail = RemoteLog(Session(), sys.argv[1]).tail
tail(*(Sample(0, 0, 0), 0, b"")[: tail.__code__.co_argcount - 1])  # an older version needs less
"""


def look() -> Row:
    """One look at Slurm for 500 jobs of 500, all of which go on, and for 50 of 50."""
    with tempfile.TemporaryDirectory() as folder:
        ways = {}
        for version, tree in versions().items():
            for jobs in (500, 50):
                at = Path(folder) / f"{version}{jobs}"
                at.mkdir()
                columns = "RUNNING None 8 1:02:03 0 0:0 1769029518 cn[001-008] a-job-with-a-name".replace(" ", "\x1f")
                (at / "queue").write_text("".join(f"{job}\x1f{columns}\x1f\n" for job in range(jobs)))
                (at / "squeue").write_text(f"#!/bin/sh\nexec cat {at}/queue\n")
                (at / "squeue").chmod(0o755)
                script = str(at / "script")
                cpu_of(["sh", "-c", '"$@" > "$0"', script, *python("-c", _SCRIPT, str(jobs))], tree)
                name = version if jobs == 500 else f"{version}, 50 jobs"
                ways[name] = partial(cpu_of, ["sh", script], PATH=f"{at}:{os.environ['PATH']}")
        to_reach = "≤ 2 × now, 50 jobs; ≤ 1/8 × before"
        return Row("one poll of Slurm for 500 jobs", "CPU s", in_turns(ways, 9), to_reach, 16)


def follow() -> Row:
    """A log that is followed for ten seconds and gains a line each second."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        ways = {version: partial(_followed_s, tree, log) for version, tree in versions().items()}
        return Row("following a log for 10 s, one line a second", "CPU s", in_turns(ways))


def freshness() -> Row:
    """From a line in the file to its bytes in the pipe, without SSH; beside the `tail -F` that shared disks get."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        ways = {version: partial(_late_s, _argv(tree, log), log) for version, tree in versions().items()}
        polling = ["tail", "-n", "0", "-F", "---disable-inotify", str(log)]
        ways["tail -F polls"] = partial(_late_s, polling, log)
        return Row("delay until a line is sent", "s", in_turns(ways, 9), "≤ 1/5 × tail -F polls", 8)


def _late_s(argv: Sequence[str], log: Path) -> float:
    """Median of three lines that come after a random while."""
    log.write_text("the first line\n")
    late = []
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as follower:
        for number in range(3):
            time.sleep(random.uniform(1.0, 2.0))
            line = f"line {number}\n".encode()
            with log.open("ab") as file:
                file.write(line)
            began, seen = time.monotonic(), b""
            while follower.stdout is not None and line not in seen:
                seen += os.read(follower.stdout.fileno(), 1 << 16)
            late.append(time.monotonic() - began)
        follower.kill()
    return statistics.median(late)


def _argv(tree: str, log: Path) -> list[str]:
    """The remote command of a version."""
    command = python("-c", _FOLLOW, str(log))
    environment = {**os.environ, "PYTHONPATH": tree}
    done = subprocess.run(command, capture_output=True, cwd=tree, env=environment, check=True)
    argv: list[str] = json.loads(done.stdout)
    return argv


def _followed_s(tree: str, log: Path) -> float:
    log.write_text("the first line\n")
    argv, before = _argv(tree, log), children_s()
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, bufsize=0) as follower:
        for _ in range(10):
            time.sleep(1)
            with log.open("a") as file:
                file.write("one more line\n")
            if follower.stdin is not None:
                follower.stdin.write(b"\n")
    return children_s() - before


def cheap() -> Iterator[Row]:
    """Without waiting."""
    yield look()


def rows() -> Iterator[Row]:
    """All."""
    yield look()
    yield follow()
    yield freshness()
