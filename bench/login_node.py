"""What the program costs a login node: processes there, with Slurm's commands as files that are printed."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from functools import partial
from pathlib import Path

from bench._rounds import Row, children_s, cpu_of, in_turns, python, versions

_SCRIPT = """\
import sys
from llmb_tui.cluster.batch import batch_script
from llmb_tui.cluster.slurm.client import _look_commands
print(batch_script(_look_commands(list(map(str, range(int(sys.argv[1]))))), "T"))
"""
_FOLLOW = """\
import json, sys
from llmb_tui.watch.remotelog import RemoteLog, Sample
class Session:
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
        return Row("one look at Slurm for 500 jobs", "CPU s", in_turns(ways, 9), "≤ 2 × 50 jobs, ≤ 1/8 of before")


def follow() -> Row:
    """A log that is followed for ten seconds and gains a line each second."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        ways = {version: partial(_followed_s, tree, log) for version, tree in versions().items()}
        return Row("a log followed for 10 s, one line a second", "CPU s", in_turns(ways), "one process")


def _followed_s(tree: str, log: Path) -> float:
    log.write_text("the first line\n")
    command = python("-c", _FOLLOW, str(log))
    environment = {**os.environ, "PYTHONPATH": tree}
    argv = json.loads(subprocess.run(command, capture_output=True, cwd=tree, env=environment, check=True).stdout)
    before = children_s()
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, bufsize=0) as follower:
        for _ in range(10):
            time.sleep(1)
            with log.open("a") as file:
                file.write("one more line\n")
            if follower.stdin is not None:
                follower.stdin.write(b"\n")
    return children_s() - before


def main() -> None:
    """Print the rows."""
    print(look())
    print(follow())


if __name__ == "__main__":
    main()
