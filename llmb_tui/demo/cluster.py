"""`DemoCluster`: a login node with a small Slurm, inside this process. Simulated, and it says so."""

from __future__ import annotations

import fcntl
import os
import pwd
import shlex
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

import paramiko
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from llmb_tui.cluster.profile import NO_SSH_CONFIG, ClusterProfile
from llmb_tui.demo import command, faults
from llmb_tui.demo.server import HOST, Account, Server
from llmb_tui.demo.slurm import facts, scancel, store
from llmb_tui.demo.slurm.pyxis import SYSTEM_PATH
from llmb_tui.errors import Trouble

SPEED = 60.0
END_JOBS_S = 10.0


class DemoCluster:
    """A simulated cluster that lives in the folder `root`, for as long as it is started.

    Everything is below `root`: keys, `known_hosts`, the user's home, Slurm's state. Jobs are processes of their
    own and outlive the cluster: who starts it on the same root again finds them. `speed` is how much faster than
    real time the clock of a new job runs.
    """

    def __init__(self, root: Path, *, speed: float = SPEED) -> None:
        if not 0 < speed < float("inf"):
            raise ValueError(f"speed must be a positive number, not {speed}")
        self.root = root.resolve()
        self.speed = speed
        self._server: Server | None = None
        self._open = ExitStack()

    def __enter__(self) -> DemoCluster:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Write what is missing below the root, and listen. Raises Trouble when the root is in use."""
        for folder in (self.root, *(self.root / name for name in ("keys", "home", "shared"))):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._take_root()
        user = _user_name()
        self._store = store.create(self.root / "slurm", {"speed": self.speed, "user": user})
        self._write_commands()
        host_key, user_key = self._key("host"), self._key("user")
        path = f"{self.root / 'bin'}:{SYSTEM_PATH}"
        home = self.root / "home"
        environment = {"HOME": str(home), "LOGNAME": user, "PATH": path, "SHELL": "/bin/sh", "USER": user}
        # Where images are unpacked there is as much simulated space as where they are kept.
        environment["ENROOT_TEMP_PATH"] = str(self.root / "shared")
        self._server = Server(host_key, Account(user, user_key, home, environment, self.banner))
        self._server.start()
        known_hosts = paramiko.HostKeys()
        known_hosts.add(f"[{HOST}]:{self._server.port}", host_key.get_name(), host_key)
        known_hosts.save(str(self._known_hosts))

    def stop(self) -> None:
        """End the server and its connections. Jobs run on."""
        if self._server:
            self._server.stop()
            self._server = None
        self._open.close()

    @property
    def banner(self) -> str:
        """What the login node says before the login."""
        return (
            "This cluster is simulated: it runs on your own machine, trains nothing,\n"
            f"and the clock of its jobs runs {self.speed:g} times faster.\n"
        )

    @property
    def profile(self) -> ClusterProfile:
        """How to reach the cluster. Raises RuntimeError before `start`."""
        if self._server is None:
            raise RuntimeError("the demo cluster is not started")
        return ClusterProfile(
            name="demo",
            host=HOST,
            port=self._server.port,
            user=_user_name(),
            identity_file=str(self.root / "keys" / "user_ed25519"),
            known_hosts=str(self._known_hosts),
            ssh_config=NO_SSH_CONFIG,
            account=facts.ACCOUNT,
            partition=facts.PARTITIONS[0].name,
            install_dir=str(self.root / "shared" / "llmb"),
            notice=f"simulated, clock x{self.speed:g}",
        )

    def fault(self, name: str, text: str | None = "") -> None:
        """Switch a fault of `faults.NAMES` on, with its text; None switches it off."""
        if name not in faults.NAMES:
            raise ValueError(f"no fault is called {name!r}")
        path = faults.folder(self.root / "slurm") / name
        if text is None:
            path.unlink(missing_ok=True)
        else:
            path.write_text(text)

    def drop_connections(self) -> None:
        """Cut every SSH connection."""
        if self._server:
            self._server.drop_connections()

    def refuse(self, refused: bool) -> None:
        """Refuse new SSH connections, or take them again."""
        if self._server:
            self._server.refuse(refused)

    def end_jobs(self) -> None:
        """Cancel all jobs and wait until their processes are gone. Raises Trouble when they are not."""
        jobs = store.Store(self.root / "slurm")
        for job in jobs.all():
            if job.active:
                scancel.cancel(jobs, job.id)
        deadline = time.monotonic() + END_JOBS_S
        while any(jobs.is_alive(job.id) for job in jobs.all()):
            if time.monotonic() > deadline:
                raise Trouble("A job of the demo cluster does not end.", f"Its folder is {jobs.path / 'jobs'}.")
            time.sleep(0.02)

    @property
    def _known_hosts(self) -> Path:
        return self.root / "keys" / "known_hosts"

    def _take_root(self) -> None:
        handle = os.open(self.root / "in-use", os.O_RDWR | os.O_CREAT, 0o600)
        self._open.callback(os.close, handle)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._open.close()
            raise Trouble(
                f"The demo cluster in {self.root} is running already.",
                "Another llmb-tui has started it.",
                "Leave that one first, or give this one another folder.",
                exit_code=1,
            ) from None

    def _key(self, name: str) -> paramiko.PKey:
        """The key of that name; made once and kept."""
        path = self.root / "keys" / f"{name}_ed25519"
        if not path.exists():
            key = Ed25519PrivateKey.generate()
            fresh = path.with_suffix(".new")
            with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
            fresh.replace(path)
        return paramiko.Ed25519Key.from_private_key_file(str(path))

    def _write_commands(self) -> None:
        start = [sys.executable, "-S", "-E", command.__file__, str(self.root / "slurm")]
        for folder, names in (
            ("bin", command.LOGIN_COMMANDS),
            ("node-bin", command.NODE_COMMANDS),
            ("container-bin", command.CONTAINER_COMMANDS),
        ):
            (self.root / folder).mkdir(mode=0o700, exist_ok=True)
            for name in names:
                path = self.root / folder / name
                path.write_text(f'#!/bin/sh\nexec {shlex.join([*start, name])} "$@"\n')
                path.chmod(0o700)


def _user_name() -> str:
    """The user as `id -un` names them, whatever the environment says."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a user id without a name, as in some containers
        return str(os.getuid())
