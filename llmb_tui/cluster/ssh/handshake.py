"""From a socket to a transport that is encrypted, with a host key that is known."""

from __future__ import annotations

import time
from collections.abc import Sequence

import paramiko

from llmb_tui.cluster.failures import Unreachable
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.ssh.channels import LINK_ERRORS
from llmb_tui.cluster.ssh.heartbeat import HeardTransport
from llmb_tui.cluster.ssh.host_keys import AcceptedKeys, KnownHosts, ServerKey
from llmb_tui.cluster.ssh.openssh import SSH_PORT, HostSettings
from llmb_tui.language.quantities import duration
from llmb_tui.language.text import clean_line

# Both are several times cheaper than paramiko's first choices.
_FAST_CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com")
_FAST_KEX = ("curve25519-sha256@libssh.org",)


class LoginTransport(HeardTransport):
    """A transport that keeps what the server says when it hangs up."""

    parting_words = ""

    def _parse_disconnect(self, message: paramiko.Message) -> None:
        """Paramiko only logs it. Its method of this name is not public: without it there would be no words."""
        message.get_int()
        self.parting_words = clean_line(message.get_binary().decode(errors="replace"))


class ConnectionRefused(Unreachable):
    """The server closed the connection without an SSH greeting, as a busy one does (MaxStartups)."""


def shake_hands(transport: LoginTransport, settings: HostSettings, prompter: Prompter, accepted: AcceptedKeys) -> None:
    """Agree on keys with the server, then decide about its host key. `accepted`: as `KnownHosts` takes it.

    Raises ConnectionRefused, Unreachable, HostKeyUnknown or HostKeyChanged.
    """
    known_hosts = KnownHosts(settings.known_hosts, hashed=settings.hash_known_hosts, accepted=accepted)
    # A host with an alias is known by that alone.
    host, port = (settings.host_key_alias, SSH_PORT) if settings.host_key_alias else (settings.host, settings.port)
    options = transport.get_security_options()
    options.ciphers = _first(_FAST_CIPHERS, options.ciphers)
    options.kex = _first(_FAST_KEX, options.kex)
    options.key_types = known_hosts.algorithms(host, port, options.key_types)
    transport.banner_timeout = settings.connect_deadline_s
    begun_at = time.monotonic()
    try:
        transport.start_client(timeout=settings.connect_deadline_s)
        key = transport.get_remote_server_key()
    except LINK_ERRORS as error:
        took_s = time.monotonic() - begun_at
        raise _no_handshake(transport, settings, error, timed_out=took_s >= settings.connect_deadline_s) from error
    asks = None if settings.trusts_known_keys_only else prompter
    known_hosts.check(host, port, ServerKey(key.get_name(), key.asbytes()), asks)


def _no_handshake(
    transport: LoginTransport, settings: HostSettings, error: Exception, *, timed_out: bool
) -> Unreachable:
    what = f"{settings.place}, did not complete an SSH handshake."
    if timed_out:
        why = f"It did not answer within {duration(settings.connect_deadline_s)}."
        return Unreachable(what, why, "Check that the port is SSH's, and that no firewall is in between.")
    if not transport.remote_version:
        return ConnectionRefused(
            what,
            "It closed the connection without an SSH greeting: too many people log in at this moment (MaxStartups), "
            "it takes no connections from this address, or the port is not SSH's.",
            "Wait a minute and try again; if that does not help, ask the cluster's administrators.",
        )
    why = transport.parting_words or clean_line(str(error)) or "It closed the connection"
    return Unreachable(what, f"{why.rstrip('.')}.", "`ssh -v` to the host in another terminal shows more.")


def _first(preferred: Sequence[str], all_of_them: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(all_of_them, key=lambda name: name not in preferred))
