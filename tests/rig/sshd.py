"""The SSH servers of a rig: real OpenSSH servers, one for each way to log in."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.kit.waiting import until
from tests.rig import totp
from tests.rig.machine import OPERATOR, OPERATOR_GROUP, OPERATOR_ID, Daemon, Machine

BANNER = "*** llmb-rig: a test cluster on this machine. Authorised use only. ***\n"

_COMMON = """\
ListenAddress 127.0.0.1:{port}
PidFile none
HostKey {keys}/host_ed25519
HostKey {keys}/host_rsa
AuthorizedKeysFile .ssh/authorized_keys
PermitRootLogin no
X11Forwarding no
PrintMotd no
PrintLastLog no
UseDNS no
Subsystem sftp internal-sftp
LogLevel VERBOSE
"""
_NO_PASSWORDS = "UsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
ENDPOINTS = {
    "login": "UsePAM yes\nPasswordAuthentication yes\nKbdInteractiveAuthentication no\nMaxSessions 10\n"
    "MaxStartups 100\nBanner {keys}/banner\n",
    "mfa": "UsePAM yes\nPasswordAuthentication no\nKbdInteractiveAuthentication yes\n"
    "AuthenticationMethods publickey,keyboard-interactive\nMaxStartups 100\n",
    "pwotp": "UsePAM yes\nPasswordAuthentication no\nPubkeyAuthentication no\nKbdInteractiveAuthentication yes\n"
    "AuthenticationMethods keyboard-interactive\nMaxStartups 100\n",
    "bastion": _NO_PASSWORDS + "AllowTcpForwarding local\nPermitTTY no\nForceCommand /bin/false\nMaxStartups 100\n",
    "behind": _NO_PASSWORDS + "MaxStartups 100\n",
    "tight": _NO_PASSWORDS + "MaxSessions 1\nMaxStartups 2:100:2\nMaxAuthTries 2\n",
}
"""Configuration lines that differ between the servers. {keys} is the directory of their keys."""
BEHIND = "login02.llmb.internal"
"""Host name that only the bastion can resolve."""

# Each server has its own /etc/pam.d, because all of them use the PAM service `sshd`.
_SSHD = 'mount --bind "$1.pam.d" /etc/pam.d && exec /usr/sbin/sshd -D -e -f "$1.conf"'
_PASSWORD = "auth required pam_unix.so nodelay\n"
_CODE = "auth required pam_google_authenticator.so\n"
_REST = "account required pam_permit.so\nsession required pam_permit.so\n"
_PAM = {"login": _PASSWORD + _REST, "mfa": _CODE + _REST, "pwotp": _PASSWORD + _CODE + _REST}
_DENY = "".join(f"{kind} required pam_deny.so\n" for kind in ("auth", "account", "password", "session"))


class Servers:
    """The servers, by the name of their endpoint."""

    def __init__(self, machine: Machine, ports: dict[str, int]) -> None:
        self._machine = machine
        self.ports = ports
        self._keys = machine.root / "ssh"
        self._running: dict[str, Daemon] = {}

    def prepare(self, authorized: str) -> None:
        """Write keys and configurations; `authorized` is the text of the operator's `authorized_keys`."""
        self._keys.mkdir(mode=0o755)
        (self._keys / "banner").write_text(BANNER)
        for name in ("host_ed25519", "host_rsa", "changed_ed25519"):
            make_key(self._keys / name, name.partition("_")[2])
        root, home = self._machine.root, self._machine.root / "home" / OPERATOR
        for name, port in self.ports.items():
            conf = (_COMMON + ENDPOINTS[name]).format(port=port, keys=self._keys)
            (self._keys / f"{name}.conf").write_text(conf)
            pam = self._keys / f"{name}.pam.d"
            pam.mkdir()
            (pam / "sshd").write_text(_PAM.get(name, _DENY))
            (pam / "other").write_text(_DENY)
        with (root / "etc" / "hosts").open("a") as hosts:
            hosts.write(f"127.0.0.1 {BEHIND}\n")
        (home / ".ssh").mkdir(mode=0o700)
        (home / ".ssh" / "authorized_keys").write_text(authorized)
        os.chown(home / ".ssh", OPERATOR_ID, OPERATOR_GROUP)
        self.write_authenticator()

    def write_authenticator(self, *options: str) -> None:
        """Set up the operator's second factor; an option is a line such as `DISALLOW_REUSE`."""
        file = self._machine.root / "home" / OPERATOR / ".google_authenticator"
        file.unlink(missing_ok=True)
        lines = [totp.SECRET, *(f'" {option}' for option in (*options, "WINDOW_SIZE 3", "TOTP_AUTH"))]
        file.write_text("".join(f"{line}\n" for line in lines))
        os.chown(file, OPERATOR_ID, OPERATOR_GROUP)
        file.chmod(0o400)

    def start(self) -> None:
        """Start all servers."""
        for name in self.ports:
            self.start_one(name)
        for name in self.ports:
            self._wait(name)

    def start_one(self, name: str) -> None:
        """Start one server."""
        wrapper = ["unshare", "--mount", "--propagation", "slave", "sh", "-c", _SSHD, "sh", str(self._keys / name)]
        self._running[name] = self._machine.daemon(f"sshd-{name}", wrapper)

    def _wait(self, name: str) -> None:
        port = self.ports[name]
        listening = f":{port:04X} 00000000:0000 0A"  # a test connection would count for MaxStartups
        until(lambda: listening in Path("/proc/net/tcp").read_text(), f"sshd {name} listens")

    def sessions(self, name: str) -> list[int]:
        """Ids of the server's own processes that serve connections."""
        children = _children(self._running[name].pid)
        processes = [*children, *(below for pid in children for below in _children(pid))]
        return [pid for pid in processes if _program(pid).startswith("sshd")]

    def end_sessions(self, name: str) -> None:
        """Kill the processes that serve connections. The server and the operator's programs continue."""
        server = self._running[name].pid
        for session in _children(server):
            _stop(session, server)  # during a login it is about to fork
            for pid, parent in (*((child, session) for child in _children(session)), (session, server)):
                if _program(pid).startswith("sshd"):
                    _signal(pid, parent, signal.SIGKILL)

    def end_logins(self, name: str) -> None:
        """Close connections that are still logging in, with the same alarm that sshd uses for `LoginGraceTime`."""
        server = self._running[name].pid
        for session in _children(server):
            _signal(session, server, signal.SIGALRM)

    def stop(self, name: str, *, sessions: bool = True) -> None:
        """Stop listening; with `sessions` also end all connections, like a machine that goes down."""
        if sessions:
            self._running[name].freeze()
            self.end_sessions(name)
        self._running.pop(name).stop()

    def restart(self, name: str, *, sessions: bool = True) -> None:
        """Stop and start a server with its current configuration."""
        self.stop(name, sessions=sessions)
        self.start_one(name)
        self._wait(name)

    @contextmanager
    def changed_host_key(self, name: str = "login") -> Iterator[Path]:
        """Give the server another host key within the block; yields the file of the public key."""
        conf = self._keys / f"{name}.conf"
        before = conf.read_text()
        lines = [line for line in before.splitlines() if not line.startswith("HostKey")]
        conf.write_text("\n".join([*lines, f"HostKey {self._keys}/changed_ed25519", ""]))
        self.restart(name)
        try:
            yield self._keys / "changed_ed25519.pub"
        finally:
            conf.write_text(before)
            self.restart(name)

    def known_hosts(self) -> str:
        """Lines for the client's known_hosts file, for every server."""
        keys = [(self._keys / f"host_{kind}.pub").read_text().rsplit(" ", 1)[0] for kind in ("ed25519", "rsa")]
        hosts = [f"[{BEHIND if name == 'behind' else '127.0.0.1'}]:{port}" for name, port in self.ports.items()]
        return "".join(f"{host} {key}\n" for host in hosts for key in keys)


def make_key(path: Path, kind: str, passphrase: str = "") -> None:
    """Make a key pair."""
    bits = ["-b", "1024"] if kind == "rsa" else []  # a longer key takes up to a second
    command = ["ssh-keygen", "-q", "-t", kind, *bits, "-N", passphrase, "-C", path.name, "-f", str(path)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def _signal(pid: int, parent: int, number: signal.Signals) -> None:
    """Send a signal to a child of this process that may have ended already.

    Its process id may belong to another process by now, such as a step of another rig, which would then stay stopped.
    """
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        try:
            if _state_and_parent(pid)[1] == parent:
                signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)


def _stop(pid: int, parent: int) -> None:
    """Stop a child of this process, and wait for the stop: after the signal alone it may run a little further."""
    _signal(pid, parent, signal.SIGSTOP)
    goes_on = {(state, parent) for state in "RSD"}
    until(lambda: _state_and_parent(pid) not in goes_on, f"process {pid} has stopped")


def _children(pid: int) -> list[int]:
    """Children of a process. The kernel's own list of children can omit some while others end."""
    numbers = [int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit()]
    return [number for number in numbers if _state_and_parent(number)[1] == pid]


def _state_and_parent(pid: int) -> tuple[str, int]:
    """State letter and parent id of a process; `X` and 0 if the process does not exist."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "X", 0
    return words[0], int(words[1])


def _program(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
