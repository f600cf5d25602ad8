"""`Rig`: a login node with real SSH servers and (optionally) a real Slurm, on loopback."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.demo.enroot import write_settings
from tests.kit.waiting import until
from tests.rig import cgroup, faults, munge, packages, totp
from tests.rig.accounting import Accounting
from tests.rig.block import Block
from tests.rig.client import Client
from tests.rig.machine import OPERATOR, OPERATOR_GROUP, OPERATOR_ID, PASSWORD, REPOSITORY, Machine
from tests.rig.slurm import GROUPS, Slurm
from tests.rig.sshd import ENDPOINTS, Servers

SPEED = 200.0
"""Default speed of the training stand-in as a multiple of real time."""

KEPT = ("speed", "spank_pyxis.so")
"""Files in the directory of the switches that are not switches."""


class Rig:
    """One rig. All its files are below `directory`, which has the same path on the login node and the nodes."""

    password = PASSWORD
    user = OPERATOR

    def __init__(self, *, slurm: bool = True, accounting: bool = True) -> None:
        self.block = Block()
        self.directory = self.block.directory
        self.machine = Machine(self.directory)
        self.servers = Servers(self.machine, {name: self.block.port() for name in ENDPOINTS})
        self.client = Client(self.machine)
        self.accounting = Accounting(self.machine, self.block.port()) if slurm and accounting else None
        self.slurm = Slurm(self.machine, self.accounting) if slurm else None
        self.home = self.directory / "home" / OPERATOR
        """The operator's home directory as this machine sees it; on the login node it is /home/operator."""
        self.knobs = self.directory / "knobs"

    @staticmethod
    def unavailable() -> str:
        """The reason why no rig can start on this machine; empty if a rig can start."""
        return packages.unavailable()

    def start(self, say: Callable[[str], None] = lambda _: None) -> Rig:
        """Start everything; `say` receives a message before each stage. After an error nothing is left running."""
        try:
            say("login node")
            self.machine.prepare()
            self._prepare_stand_ins()
            self.servers.prepare(self.client.make_keys())
            self.client.configure(self.servers)
            if self.slurm:
                node_ports = {name: self.block.port() for group in GROUPS for name in group.names}
                self.slurm.configure(self.block.port(), node_ports)
            self.machine.start()
            if self.accounting:
                self.accounting.install()
            self.servers.start()
            self.new_dir("main")
            if self.slurm:
                say("Slurm")
                munge.start(self.machine)
                self.slurm.build_pyxis()
                if self.accounting:
                    say("accounting")
                    self.accounting.start()
                say("nodes")
                self.slurm.start()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End all processes of the rig, and remove its directory."""
        self.machine.stop()
        cgroup.remove(self.machine)
        self.block.release()

    def _prepare_stand_ins(self) -> None:
        folder = Path(__file__).parent
        site = self.directory / "etc" / "enroot"
        _install_program(folder / "bin" / "enroot.py", self.directory / "bin" / "enroot.py")
        config = (folder / "bin" / "enroot.in").read_text().replace("@sysconfdir@", str(site))
        enroot = self.directory / "bin" / "enroot"
        enroot.write_text(f'{config}exec "{self.directory}/bin/enroot.py" "$@"\n')
        enroot.chmod(0o755)
        write_settings(site)
        with (site / "enroot.conf").open("a") as conf:
            conf.write("ENROOT_RUNTIME_PATH /tmp/enroot-$(id -u)\n")
        for name in ("python", "python3"):
            _install_program(folder / "container" / "python.py", self.knobs / "container" / name)
        for name in ("nsys", "numactl"):
            _install_program(folder / "container" / "demo_program.py", self.knobs / "container" / name)
        library = self.knobs / "lib" / "llmb_tui"
        shutil.copytree(
            REPOSITORY / "llmb_tui" / "demo", library / "demo", ignore=shutil.ignore_patterns("__pycache__")
        )
        shutil.copy(REPOSITORY / "llmb_tui" / "__init__.py", library)
        shutil.copy(folder / "container" / "rank_zero.py", library.parent)
        (self.knobs / "training").mkdir()
        (self.knobs / "training").chmod(0o1777)
        (self.knobs / "faults").mkdir()
        self.set("speed", str(SPEED))

    # Methods for tests

    def profile(self, endpoint: str = "login", **changes: Any) -> SlurmProfile:
        """A profile for an endpoint of the rig; `changes` are changed fields of the profile."""
        return self.client.profile(endpoint, **changes)

    def port(self, endpoint: str = "login") -> int:
        """Port of an endpoint's server, for a `Line`; `password` and `enc` are other ways into `login`."""
        return self.servers.ports.get(endpoint, self.servers.ports["login"])

    def totp(self) -> str:
        """The current one-time code."""
        return totp.code()

    def as_operator(self, command: str | Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
        """Run an argument list, or a line of sh, on the login node as the operator. Options: see `Machine.run`."""
        return self.machine.run(command, user=OPERATOR, **options)

    def as_root(self, command: str | Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a command on the login node as root."""
        return self.machine.run(command, **options)

    def operator_processes(self) -> list[str]:
        """Command lines of the operator's processes on the login node and the nodes, except sshd's own.

        A process that is just ending has no command line any more: ps shows its name in brackets.
        """
        lines = self.as_root(["ps", "-u", OPERATOR, "-o", "stat=,args="]).stdout.splitlines()
        rows = [line.split(None, 1) for line in lines]
        return [words[1] for words in rows if words[0][0] != "Z" and not words[1].startswith(("sshd", "[sshd"))]

    def new_dir(self, name: str = "") -> Path:
        """A new directory of the operator on the cluster, for `install_dir`."""
        path = self.directory / "install" / (name or f"{time.time_ns()}")
        path.mkdir(parents=True)
        path.parent.chmod(0o755)
        os.chown(path, OPERATOR_ID, OPERATOR_GROUP)
        return path

    def lend(self, path: Path) -> Path:
        """Show the operator a directory of this machine, even one out of the operator's reach; returns its path there.

        The directory is read-only, and containers may mount it. Directories below /home, /run and /tmp cannot be lent,
        except those of the repository and its Python: on the rig these paths are other directories.
        """
        place = self.directory / "lent" / f"{len(list((self.directory / 'lent').glob('*')))}"
        bind = "mkdir -p {1} && mount --bind {0} {1} && mount -o remount,bind,ro {1}"
        self.as_root(bind.format(shlex.quote(str(path)), place), check=True)
        return place

    def set(self, name: str, text: str) -> None:
        """Write a file of the stand-ins' settings, such as `speed`."""
        path = self.knobs / name
        temporary = path.with_name(f".{path.name}")
        temporary.write_text(text)
        temporary.replace(path)

    @contextmanager
    def knob(self, name: str, text: str = "") -> Iterator[None]:
        """Switch a setting or fault of the stand-ins on within the block."""
        path = self.knobs / name
        before = path.read_text() if path.exists() else None
        self.set(name, text)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
            if before is not None:
                self.set(name, before)

    def squeue(self) -> list[str]:
        """Numbers of the jobs that have not ended."""
        return self.as_root(["squeue", "--noheader", "--format=%A"]).stdout.split()

    def cancel_jobs(self) -> None:
        """End all jobs, and wait until they have ended and the nodes are free."""
        if not self.slurm or not (jobs := self.squeue()):
            return
        self.as_root(["scancel", "--quiet", *jobs])
        self.as_root(["scancel", "--quiet", "--signal=KILL", *jobs])
        until(lambda: not self.squeue(), "all jobs have ended")

    def tidy(self) -> None:
        """Remove jobs, faults and changed settings. Files on the cluster stay."""
        self.cancel_jobs()
        for path in self.knobs.iterdir():
            if path.is_file() and path.name not in KEPT:
                path.unlink()
        for path in (self.knobs / "faults").iterdir():
            path.unlink()
        if (self.knobs / "speed").read_text() != str(SPEED):
            self.set("speed", str(SPEED))

    controller_hung = faults.controller_hung
    controller_down = faults.controller_down
    database_down = faults.database_down
    database_hung = faults.database_hung
    node_down = faults.node_down
    hidden_partition = faults.hidden_partition
    job_rules = faults.job_rules
    qos = faults.qos
    reservation = faults.reservation
    fresh_home = faults.fresh_home
    full_disk = faults.full_disk


def _install_program(source: Path, target: Path) -> None:
    target.parent.mkdir(exist_ok=True)
    target.write_text(f"#!/usr/bin/python3 -I\n{source.read_text()}")
    target.chmod(0o755)
