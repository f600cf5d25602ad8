"""`nsys profile` in a simulated container: runs the command, and leaves a file that says that nothing was profiled."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from llmb_tui.demo.slurm.options import Parser, Refusal
from llmb_tui.demo.slurm.pyxis import MOUNTS, place
from llmb_tui.demo.slurm.store import Store

OPTIONS = (
    "capture-range=/c capture-range-end= cpuctxsw= cuda-event-trace= cuda-graph-trace= force-overwrite=/f "
    "inherit-environment=/n nic-metrics= nvtx-domain-include= output=/o sample=/s stop-on-exit=/x trace=/t"
)


def main(_: Store | None, arguments: list[str]) -> int:
    """Run `nsys`."""
    if arguments[:1] != ["profile"]:
        raise Refusal("usage: nsys profile [<args>] [application] [<application args>]")
    asked = Parser("nsys profile", OPTIONS, hint=False).parse(arguments[1:], until_operand=True)
    report = f"{_filled(asked.get('output', 'report1'))}.nsys-rep"
    mounts = [(source, target) for source, target in json.loads(os.environ.get(MOUNTS, "[]"))]
    outside = Path(place(report, mounts) or report)
    if not asked.operands or not outside.parent.is_dir():
        raise Refusal(f"nsys: there is no command, or no folder for {report}")
    process = subprocess.Popen(asked.operands)
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    code = process.wait()
    outside.write_text("simulated: nothing was profiled\n")
    sys.stderr.write(f"simulated: no profile is in {report}\n")
    return code if code >= 0 else 128 - code


def _filled(name: str) -> str:
    """A file name with `%p` and `%q{VARIABLE}` in it, as nsys fills them in."""
    name = re.sub(r"%q\{(\w+)\}", lambda found: os.environ.get(found[1], ""), name)
    return name.replace("%p", str(os.getpid()))
