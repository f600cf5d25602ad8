"""`scontrol` and `sinfo`: state of the controller, partitions and nodes, and host lists."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator

from llmb_tui.demo.slurm import facts, notation
from llmb_tui.demo.slurm.options import Parser, RefusedError, not_offered
from llmb_tui.demo.slurm.store import Store

LETTERS = "DEGNPRTafl"
"""Columns that `sinfo` prints."""

_CONFIG = {
    "ClusterName": facts.CLUSTER,
    "JobSubmitPlugins": "(null)",
    "PlugStackConfig": "/etc/slurm/plugstack.conf",
    "SelectType": "select/cons_tres",
}


def scontrol(store: Store, arguments: list[str]) -> int:
    """Run `scontrol`."""
    match arguments:
        case ["ping"]:
            text = f"Slurmctld(primary) at {os.uname().nodename} is UP\n"
        case ["show", "config"]:
            text = "".join(f"{name:<23} = {value}\n" for name, value in _CONFIG.items())
        case ["-a", "show", "partition", name]:
            text = _partition(name)
        case ["show", "partition"]:
            text = "".join(map(_partition, facts.PARTITIONS))
        case ["show", "hostnames", names]:
            text = "".join(f"{name}\n" for name in notation.expand(names))
        case ["-a", "-o", "show", "nodes"]:
            text = _nodes(store, list(facts.NODES))
        case ["-a", "-o", "show", "node", names]:
            text = _nodes(store, notation.expand(names))
        case ["-o", "show", "reservation"]:
            text = "No reservations in the system\n"
        case _:
            raise not_offered("scontrol", " ".join(arguments))
    sys.stdout.write(text)
    return 0


def sinfo(store: Store, arguments: list[str]) -> int:
    """Run `sinfo`."""
    args = sinfo_options().parse(arguments)
    if unknown := re.findall(rf"%[^{LETTERS}]", args.o):
        raise not_offered("sinfo", f"column {unknown[0]}")
    names = notation.expand(args.n) if args.n else list(facts.NODES)
    for cells in _rows(store, names, each=args.N):
        sys.stdout.write(_line(cells, args.o) + "\n")
    return 0


def sinfo_options() -> Parser:
    """Options of `sinfo`: always without a heading and with columns."""
    parser = Parser("sinfo", "-n", "-N -a")
    parser.add_argument("--version", action="version", version=facts.VERSION)
    parser.add_argument("-h", action="store_true", required=True)
    parser.add_argument("-o", required=True)
    return parser


def _partition(name: str) -> str:
    partition = facts.PARTITIONS.get(name)
    if partition is None:
        raise RefusedError(f"Partition {name} not found")
    return (
        f"PartitionName={name}\n"
        f"   Default={'YES' if partition is facts.DEFAULT else 'NO'} QoS=N/A\n"
        f"   MaxNodes={partition.max_nodes} MaxTime={notation.full(partition.max_minutes * 60)}\n"
        f"   State=UP TotalNodes={len(facts.NODES)}\n\n"
    )


def _nodes(store: Store, names: list[str]) -> str:
    """One line per node. Raises RefusedError for an unknown name."""
    missing = [name for name in names if name not in facts.NODES]
    if missing:
        raise RefusedError(f"Node {missing[0]} not found")
    busy = store.busy_now()
    partitions = ",".join(facts.PARTITIONS)
    return "".join(
        f"NodeName={name} Arch=x86_64 CPUTot={facts.CPUS_PER_NODE} Gres={facts.GRES} "
        f"State={'ALLOCATED' if name in busy else 'IDLE'} Partitions={partitions} \n"
        for name in names
    )


def _line(cells: dict[str, str], pattern: str) -> str:
    return re.sub(r"%(.)", lambda match: cells[match[1]], pattern)


def _rows(store: Store, names: list[str], *, each: bool) -> Iterator[dict[str, str]]:
    """Cells by letter, for all nodes of a partition that share a state, or for each node."""
    busy = store.busy_now()
    states = {name: "allocated" if name in busy else "idle" for name in facts.NODES if name in names}
    for partition in facts.PARTITIONS.values():
        for state in ("allocated", "idle"):
            nodes = [name for name, its in states.items() if its == state]
            for group in filter(None, [[name] for name in nodes] if each else [nodes]):
                yield {
                    "D": str(len(group)),
                    "E": "none",
                    "G": facts.GRES,
                    "N": notation.compress(group),
                    "P": partition.name + partition.mark,
                    "R": partition.name,
                    "T": state,
                    "a": "up",
                    "f": "(null)",
                    "l": notation.short(partition.max_minutes * 60),
                }
