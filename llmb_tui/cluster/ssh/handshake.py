"""SSH handshake: makes an encrypted transport with a known host key."""

from __future__ import annotations

import time
from collections.abc import Sequence

import paramiko

from llmb_tui.cluster.failures import UnreachableError
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.ssh.channels import LINK_ERRORS
from llmb_tui.cluster.ssh.heartbeat import HeardTransport
from llmb_tui.cluster.ssh.host_keys import AcceptedKeys, KnownHosts, ServerKey
from llmb_tui.cluster.ssh.openssh import SSH_PORT, HostSettings
from llmb_tui.language.quantities import duration
from llmb_tui.language.redact import server_words
from llmb_tui.language.text import clean_line

# Both need a fraction of the processor time of paramiko's first choices.
_FAST_CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com")
_FAST_KEX = ("curve25519-sha256@libssh.org",)


class LoginTransport(HeardTransport):
    """A transport that keeps the message with which the server hangs up."""

    parting_words = ""

    def _parse_disconnect(self, message: paramiko.Message) -> None:
        """Keep the message, which paramiko only logs. This overrides a private method: there is no public one."""
        message.get_int()
        self.parting_words = clean_line(server_words(message.get_binary().decode(errors="replace")))


class SshRefusedError(UnreachableError):
    """The server closed the connection without an SSH greeting, for example because it is busy (MaxStartups)."""


def shake_hands(transport: LoginTransport, settings: HostSettings, prompter: Prompter, accepted: AcceptedKeys) -> None:
    """Exchange keys with the server, then check its host key. `accepted`: see `KnownHosts`.

    Raises SshRefusedError, UnreachableError, HostKeyUnknownError or HostKeyChangedError.
    """
    known_hosts = KnownHosts(settings.known_hosts, hashed=settings.hash_known_hosts, accepted=accepted)
    # A host with an alias is only known by its alias.
    host, port = (settings.host_key_alias, SSH_PORT) if settings.host_key_alias else (settings.host, settings.port)
    options = transport.get_security_options()
    options.ciphers = _first(_FAST_CIPHERS, options.ciphers)
    options.kex = _first(_FAST_KEX, options.kex)
    options.key_types = known_hosts.algorithms(host, port, options.key_types)
    transport.banner_timeout = settings.connect_deadline_s
    started_at = time.monotonic()
    try:
        transport.start_client(timeout=settings.connect_deadline_s)
        key = transport.get_remote_server_key()
    except LINK_ERRORS as error:
        took_s = time.monotonic() - started_at
        raise _no_handshake(transport, settings, error, timed_out=took_s >= settings.connect_deadline_s) from error
    asks = None if settings.trusts_known_keys_only else prompter
    known_hosts.check(host, port, ServerKey(key.get_name(), key.asbytes()), asks)


def _no_handshake(
    transport: LoginTransport, settings: HostSettings, error: Exception, *, timed_out: bool
) -> UnreachableError:
    what = f"{settings.place}, did not complete an SSH handshake."
    if timed_out:
        why = f"It did not answer within {duration(settings.connect_deadline_s)}."
        return UnreachableError(what, why, "Check that SSH uses this port, and that a firewall does not block it.")
    if not transport.remote_version:
        return SshRefusedError(
            what,
            "It closed the connection without an SSH greeting: too many users are logging in (MaxStartups), "
            "it rejects connections from this address, or SSH does not use this port.",
            "Wait a minute and try again; if that does not help, ask the cluster's administrators.",
        )
    why = transport.parting_words or clean_line(server_words(str(error))) or "It closed the connection"
    return UnreachableError(what, f"{why.rstrip('.')}.", "Run `ssh -v` to the host in another terminal for details.")


def _first(preferred: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(names, key=lambda name: name not in preferred))
