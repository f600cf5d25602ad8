"""`sinfo`: partitions and nodes."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

from llmb_tui.demo.slurm import facts, hostlist, times
from llmb_tui.demo.slurm.columns import Column, Field, header, line, long_columns, percent_columns
from llmb_tui.demo.slurm.options import Parsed, Parser, Refusal
from llmb_tui.demo.slurm.store import Store

OPTIONS = (
    "all/a exact/e noheader/h long/l nodes=/n Node/N format=/o Format=/O partition=/p responding/r list-reasons/R "
    "summarize/s states=/t verbose/v version/V"
)
DEFAULT_FORMAT = "%9P %.5a %.10l %.6D %.6t %N"
LONG_FORMAT = "%9P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %N"
SUMMARY_FORMAT = "%9P %.5a %.10l %.16F %N"
NODE_FORMAT = "%10N %.6D %.9P %.6t"
REASON_FORMAT = "%20E %9u %19H %N"
LETTERS = {"allocated": "alloc", "idle": "idle"}
VALID_STATES = (
    "unknown,down,idle,allocated,?,mixed,future,drain,drained,draining,no_respond,reserved,perfctrs,cloud,completing,"
    "powering_down,powered_down,power_down,powering_up,fail,maint,reboot,reboot^,unknown"
)


@dataclass(frozen=True)
class Row:
    """One line: nodes of a partition that are in the same state."""

    partition: facts.Partition
    nodes: tuple[str, ...]
    busy: frozenset[str]

    @property
    def state(self) -> str:
        """State of its nodes; they are given whole, so none is mixed."""
        return "allocated" if self.nodes and self.nodes[0] in self.busy else "idle"

    def counts(self, each: int = 1) -> str:
        """Allocated, idle, other and all nodes, or `each` times as many."""
        allocated = sum(name in self.busy for name in self.nodes)
        total = len(self.nodes)
        return "/".join(str(number * each) for number in (allocated, total - allocated, 0, total))


FIELDS: tuple[Field[Row], ...] = (
    Field("P", "partition", "PARTITION", lambda row: row.partition.starred),
    Field("R", "partitionname", "PARTITION", lambda row: row.partition.name),
    Field("a", "available", "AVAIL", lambda _: "up"),
    Field("l", "time", "TIMELIMIT", lambda row: times.short(row.partition.max_minutes * 60)),
    Field("L", "defaulttime", "DEFAULTTIME", lambda row: times.short(row.partition.default_minutes * 60)),
    Field("s", "size", "JOB_SIZE", lambda row: row.partition.job_size),
    Field("r", "root", "ROOT", lambda _: "no"),
    Field("h", "oversubscribe", "OVERSUBSCRIBE", lambda _: "NO"),
    Field("g", "groups", "GROUPS", lambda _: "all"),
    Field("D", "nodes", "NODES", lambda row: str(len(row.nodes))),
    Field("t", "statecompact", "STATE", lambda row: LETTERS[row.state]),
    Field("T", "statelong", "STATE", lambda row: row.state),
    Field("N", "nodelist", "NODELIST", lambda row: hostlist.compress(row.nodes)),
    Field("n", "nodehost", "HOSTNAMES", lambda row: hostlist.compress(row.nodes)),
    Field("F", "nodeaiot", "NODES(A/I/O/T)", lambda row: row.counts()),
    Field("C", "cpusstate", "CPUS(A/I/O/T)", lambda row: row.counts(facts.CPUS_PER_NODE)),
    Field("c", "cpus", "CPUS", lambda _: str(facts.CPUS_PER_NODE)),
    Field("z", "socketcorethread", "S:C:T", lambda _: f"2:{facts.CPUS_PER_NODE // 2}:1"),
    Field("m", "memory", "MEMORY", lambda _: str(facts.MEMORY_MB)),
    Field("d", "disk", "TMP_DISK", lambda _: "0"),
    Field("w", "weight", "WEIGHT", lambda _: "1"),
    Field("f", "features", "AVAIL_FEATURES", lambda _: "(null)"),
    Field("b", "features_act", "ACTIVE_FEATURES", lambda _: "(null)"),
    Field("G", "gres", "GRES", lambda _: facts.GRES),
    Field("E", "reason", "REASON", lambda _: "none"),
    Field("u", "user", "USER", lambda _: "Unknown"),
    Field("H", "timestamp", "TIMESTAMP", lambda _: "Unknown"),
)
_SPLITS_BY_STATE = frozenset(("statecompact", "statelong"))
_SPLITS_BY_PARTITION = frozenset(
    ("partition", "partitionname", "time", "defaulttime", "size", "available", "root", "groups", "oversubscribe")
)
_SPLITS_BY_NODE = frozenset(("nodehost",))


def main(store: Store, arguments: list[str]) -> int:
    """Run `sinfo`."""
    asked = Parser("sinfo", OPTIONS).parse(arguments)
    if "version" in asked:
        sys.stdout.write(f"slurm {facts.VERSION}\n")
        return 0
    columns = _columns(asked)
    rows = [] if "list-reasons" in asked else _rows(store, asked, columns)
    if "long" in asked:
        sys.stdout.write(time.strftime("%a %b %d %H:%M:%S %Y\n"))
    if "noheader" not in asked:
        sys.stdout.write(header(columns) + "\n")
    for row in rows:
        sys.stdout.write(line(columns, row) + "\n")
    return 0


def _columns(asked: Parsed) -> list[Column[Row]]:
    if "Format" in asked:
        columns, unknown = long_columns(asked.get("Format"), FIELDS)
    else:
        usual = next(
            (
                pattern
                for name, pattern in (
                    ("list-reasons", REASON_FORMAT),
                    ("summarize", SUMMARY_FORMAT),
                    ("Node", NODE_FORMAT),
                    ("long", LONG_FORMAT),
                )
                if name in asked
            ),
            DEFAULT_FORMAT,
        )
        columns, unknown = percent_columns(asked.get("format", usual), FIELDS)
    for word in unknown:
        sys.stderr.write(f"Invalid node format specification: {word}\n")
    return columns


def _rows(store: Store, asked: Parsed, columns: list[Column[Row]]) -> list[Row]:
    """Nodes with the same values in the columns that tell nodes apart share a line, as in Slurm."""
    names = {column.field.name for column in columns if column.field}
    with store.locked():
        busy = frozenset(store.busy())
    partitions = _partitions(asked)
    if not names & _SPLITS_BY_PARTITION and "Node" not in asked:
        partitions = partitions[:1]
    nodes = [name for name in facts.NODES if name in hostlist.expand(asked.get("nodes"))]
    nodes = nodes if "nodes" in asked else list(facts.NODES)
    states = _states(asked)
    rows: list[Row] = []
    for partition in partitions:
        chosen = [name for name in nodes if ("allocated" if name in busy else "idle") in states]
        if "Node" in asked or names & _SPLITS_BY_NODE:
            groups = [[name] for name in chosen]
        elif names & _SPLITS_BY_STATE:
            groups = [[name for name in chosen if name in busy], [name for name in chosen if name not in busy]]
        else:
            groups = [chosen]
        rows += [Row(partition, tuple(group), busy) for group in groups if group]
    if "Node" in asked:
        rows.sort(key=lambda row: row.nodes)
    return rows


def _partitions(asked: Parsed) -> list[facts.Partition]:
    wanted = asked.get("partition").split(",")
    return [partition for partition in facts.PARTITIONS if "partition" not in asked or partition.name in wanted]


def _states(asked: Parsed) -> set[str]:
    if "states" not in asked:
        return set(LETTERS)
    states: set[str] = set()
    for word in asked.get("states").lower().split(","):
        if word not in ("all", "alloc", *VALID_STATES.split(",")):
            raise Refusal(f'sinfo: error: Bad state string: "{word}"\nsinfo: error: valid states: {VALID_STATES}')
        states |= set(LETTERS) if word == "all" else {"allocated" if word == "alloc" else word}
    return states
