"""Faults of a rig: context managers that restore the previous state. They are methods of `Rig`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.kit.waiting import until
from tests.rig.accounting import Accounting
from tests.rig.machine import OPERATOR
from tests.rig.slurm import Slurm

if TYPE_CHECKING:
    from tests.rig.cluster import Rig

_JOB_SUBMIT = """\
function slurm_job_submit(job, partitions, uid)
{rules}
end
function slurm_job_modify(job, record, partitions, uid)
    return slurm.SUCCESS
end
return slurm.SUCCESS
"""


@contextmanager
def controller_hung(rig: Rig) -> Iterator[None]:
    """slurmctld accepts connections and never answers: Slurm's commands give up after 10 s."""
    controller = _slurm(rig).controller
    controller.freeze()
    try:
        yield
    finally:
        controller.thaw()


@contextmanager
def controller_down(rig: Rig) -> Iterator[None]:
    """slurmctld is stopped."""
    slurm = _slurm(rig)
    slurm.controller.stop()
    try:
        yield
    finally:
        slurm.restart_controller()


@contextmanager
def database_down(rig: Rig) -> Iterator[None]:
    """slurmdbd is stopped: `sacct` fails, `squeue` and `sbatch` work."""
    accounting = _accounting(rig)
    accounting.slurmdbd.stop()
    try:
        yield
    finally:
        accounting.restart_slurmdbd()


@contextmanager
def database_hung(rig: Rig) -> Iterator[None]:
    """slurmdbd accepts connections and never answers: `sacct` waits for minutes, `squeue` and `sbatch` work."""
    slurmdbd = _accounting(rig).slurmdbd
    slurmdbd.freeze()
    try:
        yield
    finally:
        slurmdbd.thaw()


@contextmanager
def node_down(rig: Rig, name: str, reason: str = "xid79") -> Iterator[None]:
    """A node fails: its jobs end with NODE_FAIL, or are requeued if they allow it."""
    slurm = _slurm(rig)
    rig.as_root(["scontrol", "update", f"NodeName={name}", "State=DOWN", f"Reason={reason}"], check=True)
    try:
        yield
    finally:
        rig.as_root(["scontrol", "update", f"NodeName={name}", "State=RESUME"])
        slurm.nodes[name].stop()
        slurm.start_node(name)
        until(lambda: slurm.node_states().get(name) == "idle", f"{name} is back")


@contextmanager
def hidden_partition(rig: Rig, name: str) -> Iterator[None]:
    """Slurm hides a partition, and the nodes that are in no other, unless a command asks for hidden ones as well."""
    rig.as_root(["scontrol", "update", f"PartitionName={name}", "Hidden=YES"], check=True)
    try:
        yield
    finally:
        rig.as_root(["scontrol", "update", f"PartitionName={name}", "Hidden=NO"], check=True)


@contextmanager
def job_rules(rig: Rig, rules: str) -> Iterator[None]:
    """The site's plugin judges each job, as many sites' do: lines of Lua for a `job`, which end with a return."""
    folder = rig.directory / "etc" / "slurm"
    settings = (folder / "slurm.conf").read_text()
    (folder / "job_submit.lua").write_text(_JOB_SUBMIT.format(rules=rules))
    (folder / "slurm.conf").write_text(f"JobSubmitPlugins=lua\n{settings}")
    rig.as_root(["scontrol", "reconfigure"], check=True)
    try:
        yield
    finally:
        rig.cancel_jobs()
        (folder / "slurm.conf").write_text(settings)
        rig.as_root(["scontrol", "reconfigure"], check=True)


@contextmanager
def qos(rig: Rig, name: str, limits: str) -> Iterator[None]:
    """The operator may use another QOS; `limits` are words of `sacctmgr add qos`, such as `MinTRES=node=4`."""
    user = ["user", OPERATOR, "set"]
    rig.as_root(["sacctmgr", "-i", "add", "qos", name, *limits.split()], check=True)
    rig.as_root(["sacctmgr", "-i", "modify", *user, f"qos+={name}"], check=True)
    try:
        yield
    finally:
        rig.cancel_jobs()
        rig.as_root(["sacctmgr", "-i", "delete", "qos", name], check=True)


@contextmanager
def reservation(rig: Rig, name: str = "bench", nodes: str = "cn001", users: str = OPERATOR) -> Iterator[None]:
    """Nodes are reserved for users for the next hour."""
    command = f"scontrol create reservation ReservationName={name} StartTime=now Duration=60 Users={users}"
    rig.as_root([*command.split(), f"Nodes={nodes}"], check=True)
    try:
        yield
    finally:
        rig.cancel_jobs()
        rig.as_root(["scontrol", "delete", f"ReservationName={name}"], check=True)


@contextmanager
def fresh_home(rig: Rig) -> Iterator[Path]:
    """The operator's home directory contains only the files that a login needs; yields its path on this machine."""
    home_dir = rig.directory / "homes" / f"{time.time_ns()}"
    home_dir.mkdir(parents=True)
    # -p keeps modes and owners, without which sshd and PAM would refuse the files
    home = f"/home/{OPERATOR}"
    rig.as_root(
        f"cp -rp {home}/.ssh {home}/.google_authenticator {home_dir} && chown --reference={home} {home_dir}",
        check=True,
    )
    rig.as_root(["mount", "--bind", str(home_dir), home], check=True)
    try:
        yield home_dir
    finally:
        rig.as_root(["umount", "--lazy", home], check=True)


@contextmanager
def full_disk(rig: Rig, path: Path, megabytes: int = 1) -> Iterator[None]:
    """The cluster sees an empty file system of that size at `path`; this machine still sees the previous files."""
    rig.as_root(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=777", "full", str(path)], check=True)
    try:
        yield
    finally:
        rig.as_root(["umount", "--lazy", str(path)], check=True)


def _slurm(rig: Rig) -> Slurm:
    if rig.slurm is None:
        raise RuntimeError("this rig has no Slurm")
    return rig.slurm


def _accounting(rig: Rig) -> Accounting:
    if rig.accounting is None:
        raise RuntimeError("this rig has no accounting")
    return rig.accounting
