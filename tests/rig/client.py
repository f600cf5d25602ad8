"""Files on the operator's laptop: keys, known hosts and an OpenSSH configuration for the rig's servers."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from llmb_tui.cluster.slurm.profile import SlurmProfile
from tests.rig.accounting import ACCOUNT
from tests.rig.machine import OPERATOR, Machine
from tests.rig.sshd import BEHIND, Servers, make_key

PASSPHRASE = "key-passphrase"
"""Passphrase of the key `id_enc`."""
ALIASES = ("login", "password", "enc", "mfa", "pwotp", "bastion", "behind", "tight")
"""Host aliases in the OpenSSH configuration; they are the endpoints of `profile`."""

_EXTRAS = {
    "password": "PreferredAuthentications password\nPubkeyAuthentication no",
    "pwotp": "PreferredAuthentications keyboard-interactive\nPubkeyAuthentication no",
    "behind": f"HostName {BEHIND}\nProxyJump bastion",
}


class Client:
    """The files, below `directory`."""

    def __init__(self, machine: Machine) -> None:
        self.directory = machine.root / "client"
        self.config = self.directory / "config"
        self.known_hosts = self.directory / "known_hosts"
        self._machine = machine

    def key(self, name: str = "id_ed25519") -> Path:
        """A private key that every server accepts: `id_ed25519`, `id_rsa`, or `id_enc` with its passphrase."""
        return self.directory / name

    def make_keys(self) -> str:
        """Create the keys; returns the text for `authorized_keys`."""
        self.directory.mkdir(mode=0o700)
        make_key(self.key(), "ed25519")
        make_key(self.key("id_rsa"), "rsa")
        make_key(self.key("id_enc"), "ed25519", PASSPHRASE)
        return "".join(path.read_text() for path in sorted(self.directory.glob("*.pub")))

    def configure(self, servers: Servers) -> None:
        """Write the configuration and the known hosts."""
        self.known_hosts.write_text(servers.known_hosts())
        lines = []
        for alias in ALIASES:
            lines += [f"Host {alias}", f"Port {servers.ports.get(alias, servers.ports['login'])}"]
            lines += _EXTRAS.get(alias, "").splitlines()
            lines.append(f"IdentityFile {self.key('id_enc' if alias == 'enc' else 'id_ed25519')}")
        lines += ["Host *", "HostName 127.0.0.1", f"User {OPERATOR}", "IdentitiesOnly yes"]
        lines += [f"UserKnownHostsFile {self.known_hosts}", "GlobalKnownHostsFile /dev/null", ""]
        self.config.write_text("\n".join(lines))
        owner = os.environ.get("SUDO_UID")  # the user who started the rig with sudo needs access to the files
        if owner:
            for path in (self.directory, *self.directory.iterdir()):
                shutil.chown(path, int(owner))

    def profile(self, endpoint: str, **changes: Any) -> SlurmProfile:
        """A profile for an endpoint; `changes` are changed fields of the profile."""
        if endpoint not in ALIASES:
            raise ValueError(f"no endpoint {endpoint}; there are {', '.join(ALIASES)}")
        fields: dict[str, Any] = {
            "name": f"rig-{endpoint}",
            "host": endpoint,
            "account": ACCOUNT,
            "partition": "batch",
            "install_dir": str(self._machine.root / "install" / "main"),
            "ssh_config": str(self.config),
            "known_hosts": str(self.known_hosts),
        }
        return SlurmProfile(**(fields | changes))
