"""`Partition`: one partition of Slurm, with its nodes and GPUs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from llmb_tui.catalog.gpu_model import GpuModel, gpu_model
from llmb_tui.cluster.quoting import shell_join

# States of a node that runs jobs now, or after its present job ends.
_WORKING_STATES = frozenset("idle mixed allocated completing planned reserved".split())
_GRES = re.compile(r"gpu(?::(?P<type>[^:(,]+))?:(?P<count>\d+)(?:\([^)]*\))?")
_TIME = re.compile(r"(?:(?P<days>\d+)-)?(?:(?:(?P<hours>\d+):)?(?P<minutes>\d+):)?(?P<seconds>\d+)(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Gpus:
    """GPUs of one type in one node."""

    type: str | None
    """Site's name of the type, such as `h100` or `nvidia_h100_80gb_hbm3`; None if there is none."""
    count: int

    @property
    def model(self) -> GpuModel:
        """Model of the type, in its parts."""
        return gpu_model(self.type or "")

    @property
    def words(self) -> str:
        """Count and type, such as `8 × h100` or `56 × h100_1g.10gb (MIG slices)`."""
        return f"{self.count} × {self.type or 'GPU of unknown type'}{' (MIG slices)' if self.model.is_slice else ''}"


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Equal nodes of a partition."""

    nodes: int
    state: str
    """Slurm's word, such as `idle`, `mixed` or `down*`."""
    gpus: tuple[Gpus, ...]
    features: tuple[str, ...] = ()
    """Features that a constraint may request."""

    @property
    def has_whole_gpus(self) -> bool:
        """True if a node has GPUs that are no MIG slices."""
        return any(not gpus.model.is_slice for gpus in self.gpus)

    @property
    def works(self) -> bool:
        """False for nodes that are down, drained or do not respond."""
        return self.state.rstrip("~#!%$@^-+") in _WORKING_STATES


@dataclass(frozen=True, slots=True)
class Partition:
    name: str
    is_default: bool
    is_up: bool
    time_limit_s: float | None
    """None: unlimited."""
    groups: tuple[NodeGroup, ...]

    @property
    def nodes(self) -> int:
        """Number of nodes in any state."""
        return sum(group.nodes for group in self.groups)

    @property
    def has_whole_gpus(self) -> bool:
        """True if some of its nodes have GPUs that are no MIG slices."""
        return any(group.has_whole_gpus for group in self.groups)

    @property
    def training_groups(self) -> tuple[NodeGroup, ...]:
        """Nodes with whole GPUs; all nodes if Slurm reports no GPU on any of them."""
        return tuple(group for group in self.groups if group.has_whole_gpus or not self.gpus)

    @property
    def training_nodes(self) -> int:
        """Number of nodes in any state that may train."""
        return sum(group.nodes for group in self.training_groups)

    @property
    def idle_nodes(self) -> int:
        """Number of nodes that may train, run nothing now, and are not reserved."""
        return sum(group.nodes for group in self.training_groups if group.state.rstrip("~#") == "idle")

    @property
    def gpus(self) -> tuple[Gpus, ...]:
        """GPUs of its nodes, each count and type once."""
        return tuple(dict.fromkeys(gpus for group in self.groups for gpus in group.gpus))


SINFO_FORMAT = "%R|%P|%a|%l|%D|%T|%G|%f"


def sinfo(*options: str) -> str:
    """Command that lists the nodes of all partitions, even if the user's shell restricts `sinfo` to one."""
    return f"(unset SINFO_PARTITION; exec {shell_join(['sinfo', '-h', *options])})"


def parse_partitions(text: str) -> list[Partition]:
    """Parse `sinfo -h -o SINFO_FORMAT` to partitions in Slurm's order. Lines of another form are ignored."""
    by_name: dict[str, Partition] = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|", 7)]
        if len(cells) < 7:
            continue
        name, starred, available, limit, nodes, state, gres, *more = cells
        features = tuple(word for word in "".join(more).split(",") if word not in ("", "(null)"))
        group = NodeGroup(parse_count(nodes) or 0, state, parse_gres(gres), features)
        before = by_name[name].groups if name in by_name else ()
        by_name[name] = Partition(name, starred.endswith("*"), available == "up", parse_time(limit), (*before, group))
    return list(by_name.values())


def parse_gres(text: str) -> tuple[Gpus, ...]:
    """Parse the GPUs of a GRES such as `gpu:h100:8(S:0-1),nvme:1`; none for `(null)`."""
    words = re.split(r",(?![^(]*\))", text)
    matches = (_GRES.fullmatch(word) for word in words)
    return tuple(Gpus(match["type"], int(match["count"])) for match in matches if match)


def parse_count(text: str) -> int | None:
    """Parse a number of Slurm: `8`, `2K` for 2048, and the first of a range such as `2-4`."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KM]?)(?:-.*)?", text)
    if match is None:
        return None
    return round(float(match[1]) * {"": 1, "K": 1024, "M": 1024**2}[match[2]])


def parse_time(text: str) -> float | None:
    """Parse `1-02:03:04`, `02:03:04`, `03:04` or `4` to seconds; None for `infinite`, `UNLIMITED` and other texts."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.group("days", "hours", "minutes", "seconds"))
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
