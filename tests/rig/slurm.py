"""slurmctld and the slurmds: the cluster and its configuration."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.kit.waiting import until
from tests.rig import cgroup
from tests.rig.accounting import Accounting
from tests.rig.machine import HOST_NAME, Daemon, Machine

CLUSTER = "llmbrig"
CPUS, MEMORY_MB = 112, 2_000_000


@dataclass(frozen=True)
class Group:
    """A group of equal nodes."""

    prefix: str
    count: int
    gpu_type: str
    gpus: int

    @property
    def names(self) -> list[str]:
        """Host names of the nodes."""
        return [f"{self.prefix}{number:03d}" for number in range(1, self.count + 1)]


EIGHT_GPUS = Group("cn", 4, "h100", 8)
FOUR_GPUS = Group("gn", 2, "gb200", 4)
NO_GPUS = Group("cpu", 1, "", 0)
GROUPS = (EIGHT_GPUS, FOUR_GPUS, NO_GPUS)
PARTITIONS = (
    "PartitionName=batch Nodes=cn[001-004] Default=YES MaxTime=4:00:00 DefaultTime=1:00:00",
    "PartitionName=debug Nodes=cn[001-004] MaxTime=30:00 DefaultTime=10:00 MaxNodes=2 PriorityTier=10",
    "PartitionName=small Nodes=gn[001-002] MaxTime=4:00:00 DefaultTime=1:00:00",
    "PartitionName=cpu Nodes=cpu001 MaxTime=12:00:00 DefaultTime=1:00:00",
)

# This configuration needs no cgroups, systemd or CAP_SYS_RESOURCE. With config_overrides a node may claim more than
# this machine has. EnforcePartLimits=ALL refuses impossible jobs at once, as most sites do.
_CONF = """\
ClusterName={cluster}
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
AuthType=auth/munge
SlurmUser=slurm
SlurmdUser=root
StateSaveLocation={root}/state
SlurmctldPidFile={root}/state/slurmctld.pid
SlurmctldLogFile={root}/log/slurmctld.log
SlurmdSpoolDir={root}/spool/%n
SlurmdPidFile={root}/spool/slurmd-%n.pid
SlurmdLogFile={root}/log/slurmd-%n.log
SlurmctldDebug=info
SlurmdDebug=info
ProctrackType=proctrack/linuxproc
TaskPlugin={tasks}
PropagateResourceLimits=NONE
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=0
SlurmdParameters=config_overrides
ReturnToService=2
EnforcePartLimits=ALL
SlurmctldTimeout=120
SlurmdTimeout=300
InactiveLimit=0
KillWait=3
MinJobAge=300
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,sched_min_interval=50000,bf_interval=2,batch_sched_delay=0,default_queue_depth=1000
PriorityType=priority/basic
MaxArraySize=2001
GresTypes=gpu
"""
_WITH_ACCOUNTING = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={port}
AccountingStorageTRES=gres/gpu
AccountingStorageEnforce=associations,limits,qos
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=2
"""
_WITHOUT_ACCOUNTING = """\
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
"""
# A node has its own host name, and its own /tmp.
_NODE = """
hostname "$1"
mount -t tmpfs -o mode=1777 rig /tmp
exec slurmd -D -N "$1"
"""


class Slurm:
    """The controller and the nodes. `accounting` None: a cluster without slurmdbd."""

    def __init__(self, machine: Machine, accounting: Accounting | None) -> None:
        self._machine = machine
        self._accounting = accounting
        self.controller: Daemon
        self.nodes: dict[str, Daemon] = {}

    def configure(self, port: int, node_ports: dict[str, int]) -> None:
        """Write slurm.conf and the files next to it."""
        root = self._machine.root
        for name in ("state", "spool", "gpu"):
            (root / name).mkdir(mode=0o755)
        shutil.chown(root / "state", "slurm", "slurm")
        for number in range(max(group.gpus for group in GROUPS)):
            os.mknod(root / "gpu" / f"nvidia{number}", 0o666 | stat.S_IFCHR, os.makedev(1, 3))  # as /dev/null
        tasks = "task/cgroup" if cgroup.available() else "task/none"
        conf = _CONF.format(cluster=CLUSTER, host=HOST_NAME, port=port, root=root, tasks=tasks)
        accounting = self._accounting
        conf += _WITH_ACCOUNTING.format(port=accounting.port) if accounting else _WITHOUT_ACCOUNTING
        conf += "".join(_node_line(group, name, node_ports[name]) for group in GROUPS for name in group.names)
        folder = root / "etc" / "slurm"
        if cgroup.available():
            (folder / "cgroup.conf").write_text(cgroup.CONF)
        elif accounting:
            conf += "JobAcctGatherParams=OverMemoryKill\n"
        (folder / "slurm.conf").write_text(conf + "".join(f"{line} State=UP\n" for line in PARTITIONS))
        (folder / "gres.conf").write_text(_gres(root))
        (folder / "plugstack.conf").write_text(f"required {root}/knobs/spank_pyxis.so\n")
        with (root / "etc" / "hosts").open("a") as hosts:
            hosts.writelines(f"127.0.1.{number} {name}\n" for number, name in enumerate(node_ports, 1))

    def build_pyxis(self) -> None:
        """Compile the stand-in for Pyxis."""
        source = Path(__file__).with_name("pyxis.c")
        target = self._machine.root / "knobs" / "spank_pyxis.so"
        subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-o", str(target), str(source)], check=True)

    def start(self) -> None:
        """Start all daemons and wait until each node is idle."""
        if cgroup.available():
            cgroup.mount(self._machine)
        if self._accounting:
            self._accounting.add_cluster(CLUSTER)
        self.start_controller()
        for group in GROUPS:
            for name in group.names:
                self.start_node(name)
        if self._accounting:
            self._accounting.add_limits()
        self.wait_until_idle()

    def start_controller(self) -> None:
        """Start slurmctld and wait until it answers."""
        self.controller = self._machine.daemon("slurmctld", ["slurmctld", "-D"])
        until(lambda: "UP" in self._machine.run(["scontrol", "ping"]).stdout, "slurmctld answers")

    def restart_controller(self) -> None:
        """Start slurmctld again after `controller.stop()`, and wait until the nodes have registered."""
        self.start_controller()
        for node in self.nodes.values():
            node.send(signal.SIGHUP)  # makes them register at once instead of some seconds later
        until(lambda: (states := self.node_states()) and "unknown" not in states.values(), "the nodes have registered")

    def start_node(self, name: str) -> None:
        """Start one slurmd."""
        wrapper = ["unshare", "--mount", "--uts", "--propagation", "slave", "sh", "-c", _NODE, "sh", name]
        self.nodes[name] = self._machine.daemon(f"slurmd-{name}", wrapper)

    def wait_until_idle(self) -> None:
        """Return when every node is idle."""
        until(lambda: set(self.node_states().values()) == {"idle"}, "all nodes are idle")

    def node_states(self) -> dict[str, str]:
        """State of each node as sinfo writes it: `idle`, `down`, …; empty if Slurm does not answer."""
        lines = self._machine.run(["sinfo", "--noheader", "--Node", "--format=%N %T"]).stdout.split("\n")
        return dict(line.split() for line in lines if line)


def _node_line(group: Group, name: str, port: int) -> str:
    gres = f" Gres=gpu:{group.gpu_type}:{group.gpus}" if group.gpus else ""
    return (
        f"NodeName={name} NodeHostname={name} NodeAddr=127.0.0.1 Port={port} Sockets=2 CoresPerSocket={CPUS // 2}"
        f" ThreadsPerCore=1 RealMemory={MEMORY_MB}{gres} State=UNKNOWN\n"
    )


def _gres(root: Path) -> str:
    """Lines of gres.conf: Slurm needs a file for each GPU, not only a count."""
    return "".join(
        f"NodeName={name} Name=gpu Type={group.gpu_type} File={root}/gpu/nvidia[0-{group.gpus - 1}]\n"
        for group in GROUPS
        if group.gpus
        for name in group.names
    )
