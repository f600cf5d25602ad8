"""`DemoCluster`: a login node with a simulated Slurm, inside this process, labelled as simulated."""

from __future__ import annotations

import os
import pwd
import shlex
import sys
from pathlib import Path

import paramiko

from llmb_tui.cluster.login_profile import NO_SSH_CONFIG
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.demo import command, enroot
from llmb_tui.demo.server import HOST, Account, Server
from llmb_tui.demo.site import SPEED, DemoSite
from llmb_tui.demo.slurm import facts, store
from llmb_tui.demo.slurm.pyxis import SYSTEM_PATH
from llmb_tui.errors import LlmbError


class DemoCluster(DemoSite):
    """A simulated login node and its Slurm.

    Everything is below `root`: keys, `known_hosts`, the user's home, Slurm's state. Jobs are separate processes and
    outlive the cluster: the next start on the same root finds them.
    """

    def __init__(self, root: Path, *, speed: float = SPEED) -> None:
        super().__init__(root, speed)
        self.server: Server | None = None
        """The login node; None before `start` and after `stop`."""

    def listen(self) -> None:
        """Write missing files below the root, and accept logins."""
        for name in ("keys", "home", "shared"):
            (self.root / name).mkdir(mode=0o700, exist_ok=True)
        user = _user_name()
        store.create(self.root / "slurm", {"speed": self.speed, "user": user})
        self._write_commands()
        enroot.write_settings(self.root / "enroot")
        host_key, user_key = self._key("host"), self._key("user")
        path = f"{self.root / 'bin'}:{SYSTEM_PATH}"
        home = self.root / "home"
        environment = {"HOME": str(home), "LOGNAME": user, "PATH": path, "SHELL": "/bin/sh", "USER": user}
        self.server = Server(host_key, Account(user, user_key, home, environment, self.banner))
        self.server.start()
        known_hosts = paramiko.HostKeys()
        known_hosts.add(f"[{HOST}]:{self.server.port}", host_key.get_name(), host_key)
        known_hosts.save(str(self._known_hosts))

    def end(self) -> None:
        """End the login node and its connections."""
        if self.server:
            self.server.stop()
            self.server = None

    @property
    def banner(self) -> str:
        """Banner of the login node, before the login."""
        return (
            "This cluster is simulated: it runs on your own machine, trains nothing,\n"
            f"and the clock of its jobs runs {self.speed:g} times faster.\n"
        )

    @property
    def profile(self) -> SlurmProfile:
        """Profile of the cluster. Raises RuntimeError before `start`."""
        if self.server is None:
            raise RuntimeError("the demo cluster is not started")
        return SlurmProfile(
            name="demo",
            host=HOST,
            port=self.server.port,
            user=_user_name(),
            identity_file=str(self._key_file("user")),
            known_hosts=str(self._known_hosts),
            ssh_config=NO_SSH_CONFIG,
            account=facts.ACCOUNT,
            partition=facts.DEFAULT.name,
            install_dir=str(self.root / "shared" / "llmb"),
            notice=self.notice,
        )

    @property
    def _known_hosts(self) -> Path:
        return self.root / "keys" / "known_hosts"

    def _key_file(self, name: str) -> Path:
        return self.root / "keys" / f"{name}_ecdsa"

    def _key(self, name: str) -> paramiko.PKey:
        path = self._key_file(name)
        if not path.exists():
            fresh = path.with_suffix(".new")
            paramiko.ECDSAKey.generate().write_private_key_file(str(fresh))
            fresh.replace(path)
        return paramiko.ECDSAKey.from_private_key_file(str(path))

    def _write_commands(self) -> None:
        start = [sys.executable, "-S", "-E", command.__file__, str(self.root / "slurm")]
        # The folder for unpacking images has as much simulated space as the folder that keeps them.
        folders = {"site": self.root / "enroot", "temp": self.root / "shared"}
        config = enroot.CONFIG.format_map({name: shlex.quote(str(path)) for name, path in folders.items()})
        for folder, names in command.FOLDERS.items():
            (self.root / folder).mkdir(mode=0o700, exist_ok=True)
            for name in names:
                path = self.root / folder / name
                first = config if name == "enroot" else ""
                path.write_text(f'#!/bin/sh\n{first}exec {shlex.join([*start, name])} "$@"\n')
                path.chmod(0o700)
        # A shell skips a program on the PATH that it may not run, and would find this machine's own Slurm, if any.
        if not os.access(self.root / "bin" / "sbatch", os.X_OK):
            why = "Its file system is mounted noexec."
            raise LlmbError(
                f"Programs in {self.root} cannot be run.", why, "Set TMPDIR to another folder.", exit_code=1
            )


def _user_name() -> str:
    """User name as `id -un` prints it, regardless of the environment."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a user id without a name, as in some containers
        return str(os.getuid())
