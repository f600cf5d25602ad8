"""`hostname` and `sudo` on a simulated node; `nsys profile` and `numactl` in a container there."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from argparse import REMAINDER, Namespace
from pathlib import Path

from llmb_tui.demo.slurm.options import Parser, RefusedError, not_offered
from llmb_tui.demo.slurm.pyxis import container_mounts, place
from llmb_tui.demo.slurm.store import Store

NUMA_NODES = 2
_NSYS = (
    "--capture-range --capture-range-end --cpuctxsw --cuda-event-trace --cuda-graph-trace --force-overwrite"
    " --inherit-environment --nic-metrics --nvtx-domain-include --stop-on-exit"
)


def hostname(_: Store, arguments: list[str]) -> int:
    """Print the loopback address, on every system."""
    Parser("hostname", flags="--ip-address", system="node").parse(arguments)
    sys.stdout.write("127.0.0.1\n")
    return 0


def sudo(_: Store, _arguments: list[str]) -> int:
    """Refuse everything. The real sudo, which would be this machine's, is never called."""
    raise RefusedError("sudo: a password is required")


def numactl(_: Store | None, arguments: list[str]) -> int:
    """Check the NUMA node's number, of which there are two, and bind nothing."""
    args = _wrapper(Parser("numactl", "--cpunodebind --membind", system="container"), arguments)
    for node in filter(None, (args.cpunodebind, args.membind)):
        if not node.isdecimal() or int(node) >= NUMA_NODES:
            raise RefusedError(f"libnuma: Warning: node argument {node} is out of range\n\n<{node}> is invalid")
    try:
        os.execvp(args.command[0], args.command)  # noqa: S606 - as numactl does
    except OSError as problem:
        raise RefusedError(f"numactl: execution of `{args.command[0]}': {problem.strerror}") from problem


def nsys(_: Store | None, arguments: list[str]) -> int:
    """Run the command, and leave a file stating that nothing was profiled."""
    if arguments[:1] != ["profile"]:
        raise not_offered("nsys", " ".join(arguments), system="container")
    parser = Parser("nsys profile", _NSYS, system="container")
    for names in (("-o", "--output"), ("-s", "--sample"), ("-t", "--trace")):
        parser.add_argument(*names)
    args = _wrapper(parser, arguments[1:])
    report = f"{_expand_name(args.output)}.nsys-rep"
    outside = Path(place(report, container_mounts()) or report)
    if not outside.parent.is_dir():
        raise RefusedError(f"nsys: the directory of {report} does not exist")
    process = subprocess.Popen(args.command)
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    code = process.wait()
    outside.write_text("simulated: nothing was profiled\n")
    sys.stderr.write(f"simulated: no profile is in {report}\n")
    return code if code >= 0 else 128 - code


def _wrapper(parser: Parser, arguments: list[str]) -> Namespace:
    """Options of a program that runs a command. Raises RefusedError."""
    parser.add_argument("command", nargs=REMAINDER)
    args = parser.parse(arguments)
    if not args.command:
        parser.error("no command")
    return args


def _expand_name(name: str) -> str:
    """File name with `%p` and `%q{VARIABLE}` expanded as nsys does."""
    name = re.sub(r"%q\{(\w+)\}", lambda match: os.environ.get(match[1], ""), name)
    return name.replace("%p", str(os.getpid()))
