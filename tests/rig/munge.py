"""munged, which authenticates users to Slurm's programs."""

from __future__ import annotations

import os
import shutil

from tests.kit.waiting import until
from tests.rig.machine import Daemon, Machine


def start(machine: Machine) -> Daemon:
    """Start munged with a new key, at the usual socket."""
    key, log = machine.root / "etc" / "munge.key", machine.root / "log" / "munged"
    log.mkdir(mode=0o700)
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    for path in (key, log):
        shutil.chown(path, "munge", "munge")
    machine.run("chown munge:munge /run/munge && chmod 755 /run/munge", check=True)
    command = ["munged", "--foreground", "--force", f"--key-file={key}", f"--log-file={log}/munged.log"]
    daemon = machine.daemon(
        "munged", _as("munge", [*command, "--pid-file=/run/munge/pid", "--seed-file=/run/munge/seed"])
    )
    until(lambda: machine.run(["munge", "--no-input"]).returncode == 0, "munge answers")
    return daemon


def _as(user: str, command: list[str]) -> list[str]:
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *command]
