"""`connect`: from a profile to a live `Connection`: the socket, the host key, the login.

Paramiko's Transport is driven by hand: SSHClient.connect asks on the terminal, which belongs to the screen.
"""

from __future__ import annotations

import getpass
import logging
import socket
from collections.abc import Sequence
from pathlib import Path

import paramiko

from llmb_tui.cluster.authentication import Login
from llmb_tui.cluster.channel import LINK_ERRORS
from llmb_tui.cluster.connection import Connection
from llmb_tui.cluster.failures import Unreachable
from llmb_tui.cluster.host_keys import HostKey, KnownHosts
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.text import clean

# Without a handler of their own, paramiko's tracebacks would be printed over the screen.
logging.getLogger("paramiko").addHandler(logging.NullHandler())

_SSH_PORT = 22
_KEEPALIVE_S = 15
_CONNECT_DEADLINE_S = 15.0

# Both are several times cheaper than paramiko's first choices.
_FAST_CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com")
_FAST_KEX = ("curve25519-sha256@libssh.org",)


def connect(profile: ClusterProfile, prompter: Prompter) -> Connection:
    """Connect, check the host key and log in; questions go to `prompter`.

    Raises Unreachable, HostKeyUnknown, HostKeyChanged or AuthenticationFailed.
    """
    port = profile.port or _SSH_PORT
    sock = _open_socket(profile.host, port)
    transport = None
    try:
        transport = paramiko.Transport(sock)
        _shake_hands(transport, profile, port, prompter)
        login = Login(transport, profile.user or getpass.getuser(), profile.host, prompter)
        login.run(profile.identity_file)
        transport.set_keepalive(_KEEPALIVE_S)
        return Connection(transport, profile.host, login.banner.decode(errors="replace"))
    except BaseException:
        if transport is not None:
            transport.close()
        sock.close()
        raise


def _open_socket(host: str, port: int) -> socket.socket:
    try:
        sock = socket.create_connection((host, port), timeout=_CONNECT_DEADLINE_S)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except (OSError, UnicodeError) as error:
        raise _unreachable(host, port, error) from error
    return sock


def _unreachable(host: str, port: int, error: Exception) -> Unreachable:
    what = f"Could not reach {clean(host)}, port {port}."
    if isinstance(error, (socket.gaierror, UnicodeError)):
        return Unreachable(what, "The name is not known.", "Check the host name, and that the VPN is up.")
    if isinstance(error, ConnectionRefusedError):
        return Unreachable(what, "Nothing listens on this port.", "Check the port, and that it is a login node.")
    if isinstance(error, TimeoutError):
        why = f"No answer within {_CONNECT_DEADLINE_S:.0f} seconds."
        return Unreachable(what, why, "Check that the VPN is up, and that no firewall is in between.")
    why = getattr(error, "strerror", None) or clean(str(error)) or "The connection was closed"
    return Unreachable(
        what, f"{why.rstrip('.')}.", "Check the network; `ssh` to the host in another terminal shows more."
    )


def _shake_hands(transport: paramiko.Transport, profile: ClusterProfile, port: int, prompter: Prompter) -> None:
    """Agree on keys with the server, then decide about its host key."""
    known_hosts = KnownHosts(_known_hosts_files(profile))
    options = transport.get_security_options()
    options.ciphers = _first(_FAST_CIPHERS, options.ciphers)
    options.kex = _first(_FAST_KEX, options.kex)
    options.key_types = known_hosts.algorithms(profile.host, port, options.key_types)
    transport.banner_timeout = _CONNECT_DEADLINE_S
    try:
        transport.start_client(timeout=_CONNECT_DEADLINE_S)
        key = transport.get_remote_server_key()
    except LINK_ERRORS as error:
        raise Unreachable(
            f"{clean(profile.host)}, port {port}, did not complete an SSH handshake.",
            clean(str(error)).rstrip(".") + "." if str(error) else "It closed the connection.",
            "Check that the port is SSH's. A busy login node refuses at random: try again.",
        ) from error
    known_hosts.check(profile.host, port, HostKey(key.get_name(), key.asbytes()), prompter)


def _known_hosts_files(profile: ClusterProfile) -> list[Path]:
    if profile.known_hosts is not None:
        return [Path(profile.known_hosts).expanduser()]
    return [Path("~/.ssh/known_hosts").expanduser(), Path("/etc/ssh/ssh_known_hosts")]


def _first(preferred: Sequence[str], all_of_them: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(all_of_them, key=lambda name: name not in preferred))
