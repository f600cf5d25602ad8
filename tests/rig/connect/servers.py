"""Changes to the rig's SSH servers and to the user's configuration, for tests of logging in."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from llmb_tui.cluster.slurm.profile import SlurmProfile
from tests.rig.cluster import Rig


@contextmanager
def with_options(rig: Rig, endpoint: str, *options: str) -> Iterator[None]:
    """Add lines to a server's configuration within the block; sshd uses the first line of a kind."""
    conf = rig.directory / "ssh" / f"{endpoint}.conf"
    before = conf.read_text()
    conf.write_text("".join(f"{option}\n" for option in options) + before)
    rig.servers.restart(endpoint)
    try:
        yield
    finally:
        conf.write_text(before)
        rig.servers.restart(endpoint)


@contextmanager
def account_rules(rig: Rig, endpoint: str, *rules: str) -> Iterator[None]:
    """Replace PAM's rules of kind `account` of a server within the block."""
    file = rig.directory / "ssh" / f"{endpoint}.pam.d" / "sshd"
    before = file.read_text()
    others = [line for line in before.splitlines() if not line.startswith("account")]
    file.write_text("".join(f"{line}\n" for line in (*others, *rules)))
    try:
        yield
    finally:
        file.write_text(before)


@contextmanager
def operators_password(rig: Rig, *, changed_on: str = "19000", account_ends_on: str = "") -> Iterator[None]:
    """Set the days of the operator's password and account in `/etc/shadow` within the block."""
    file = rig.directory / "etc" / "shadow"  # mounted as a file: it must stay the same file
    before = file.read_text()
    lines = [line.split(":") for line in before.splitlines()]
    for fields in lines:
        if fields[0] == rig.user:
            fields[2], fields[7] = changed_on, account_ends_on
    file.write_text("".join(f"{':'.join(fields)}\n" for fields in lines))
    try:
        yield
    finally:
        file.write_text(before)


def log_of(rig: Rig, endpoint: str) -> str:
    """The log of a server so far."""
    return (rig.directory / "log" / f"sshd-{endpoint}.out").read_text(errors="replace")


def connections(rig: Rig, endpoint: str) -> int:
    """Number of a server's connections, counted on the server's side."""
    local_address, established = f":{rig.port(endpoint):04X}", "01"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
    return sum(row[1].endswith(local_address) and row[3] == established for row in rows)


def configured(rig: Rig, tmp_path: Path, text: str, host: str) -> SlurmProfile:
    """A profile for a host of the test's own OpenSSH configuration, which ends with the rig's."""
    config = tmp_path / "config"
    config.write_text(f"{text}\nHost *\nInclude {rig.client.config}\n")
    return replace(rig.profile(), host=host, ssh_config=str(config), known_hosts=None)


def without_keys(rig: Rig, tmp_path: Path, endpoint: str, *lines: str) -> SlurmProfile:
    """A profile for an endpoint with an OpenSSH configuration that names no key; `lines` come first."""
    tail = [f"Port {rig.port(endpoint)}", "HostName 127.0.0.1", f"User {rig.user}", "GlobalKnownHostsFile /dev/null"]
    tail += [f"UserKnownHostsFile {rig.client.known_hosts}", f"IdentityFile {tmp_path}/none"]
    config = tmp_path / "config"
    config.write_text("".join(f"{line}\n" for line in [*lines, *tail]))
    return replace(rig.profile(endpoint), ssh_config=str(config), known_hosts=None)


def new_key(path: Path, passphrase: str = "", kind: str = "ed25519") -> Path:
    """A new key pair that no server accepts."""
    subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-f", str(path)], check=True)
    return path
