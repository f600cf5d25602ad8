"""`numactl` in a simulated container: the node has two NUMA nodes, and nothing is bound to them."""

from __future__ import annotations

import os

from llmb_tui.demo.slurm.options import Parser, Refusal
from llmb_tui.demo.slurm.store import Store

OPTIONS = "cpunodebind=/N membind=/m"
NUMA_NODES = 2


def main(_: Store | None, arguments: list[str]) -> int:
    """Run `numactl`."""
    asked = Parser("numactl", OPTIONS, hint=False).parse(arguments, until_operand=True)
    for node in asked.values.values():
        if not node.isdecimal() or int(node) >= NUMA_NODES:
            raise Refusal(f"libnuma: Warning: node argument {node} is out of range\n\n<{node}> is invalid")
    if not asked.operands:
        raise Refusal("usage: numactl [--cpunodebind= | -N <nodes>] [--membind= | -m <nodes>] command args ...")
    try:
        os.execvp(asked.operands[0], asked.operands)  # noqa: S606 - as numactl does
    except OSError as problem:
        raise Refusal(f"numactl: execution of `{asked.operands[0]}': {problem.strerror}") from problem
