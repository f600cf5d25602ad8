"""SSH handshake: makes an encrypted transport with a known host key."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import paramiko
from paramiko.common import MSG_USERAUTH_BANNER

from llmb_tui.cluster.failures import UnreachableError
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.ssh.channels import LINK_ERRORS
from llmb_tui.cluster.ssh.heartbeat import HeardTransport
from llmb_tui.cluster.ssh.host_keys import AcceptedKeys, KnownHosts, ServerKey
from llmb_tui.cluster.ssh.openssh import SSH_PORT, HostSettings
from llmb_tui.language.quantities import duration
from llmb_tui.language.text import clean_line

# Both need a fraction of the processor time of paramiko's first choices.
_FAST_CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com")
_KEX_NAME, _KEX_OLD_NAME = "curve25519-sha256", "curve25519-sha256@libssh.org"
_FAST_KEX = (_KEX_NAME, _KEX_OLD_NAME)
# Names in the list of key exchange methods that announce something else.
_NO_METHODS = ("ext-info-", "kex-strict-")
_BANNER_BYTES = 16384
_LONGEST_LIST = 500


class LoginTransport(HeardTransport):
    """A transport that keeps what the server offers, shows and sends with its end.

    It overrides private methods of paramiko: there are no public ones.
    """

    # RFC 8731 gave the same method a second name, which paramiko lacks; some servers offer only that.
    _kex_info = {**paramiko.Transport._kex_info, _KEX_NAME: paramiko.Transport._kex_info[_KEX_OLD_NAME]}  # type: ignore[attr-defined]  # noqa: RUF012

    def __init__(self, sock: Any) -> None:
        super().__init__(sock)
        self.host_key_algorithms: tuple[str, ...] = ()
        """Algorithms of host keys to ask for, in order; if empty, paramiko's."""
        self.parting_words = ""
        """Message with which the server hung up."""
        self.banners: list[bytes] = []
        """Messages that the server sent during the login, unchanged, at most 16 KiB in all."""
        self._offers: dict[str, list[str]] = {}
        self._handler_table[MSG_USERAUTH_BANNER] = self._parse_banner  # type: ignore[attr-defined]

    @property
    def preferred_keys(self) -> Sequence[str]:
        """Algorithms of host keys in order, those of certificates included."""
        return self.host_key_algorithms or super().preferred_keys

    @property
    def disagreement(self) -> str:
        """Sentences about the first list of algorithms in which both sides have nothing in common; or empty."""
        lists = {
            "key exchange method": ("kex_algo_list", self.preferred_kex),
            "host key algorithm": ("server_key_algo_list", self.preferred_keys),
            "cipher": ("server_encrypt_algo_list", self.preferred_ciphers),
            "MAC": ("server_mac_algo_list", self.preferred_macs),
        }
        for name, (key, ours) in lists.items():
            theirs = [algorithm for algorithm in self._offers.get(key, ours) if not algorithm.startswith(_NO_METHODS)]
            if not set(theirs) & set(ours):
                offer = clean_line(", ".join(theirs))[:_LONGEST_LIST]
                what = f"The server and this program have no {name} in common."
                return f"{what} The server offers {offer}; this program has {', '.join(ours)}."
        return ""

    def _parse_kex_init(self, message: paramiko.Message) -> None:
        self._offers = self._really_parse_kex_init(paramiko.Message(message.asbytes()))  # type: ignore[attr-defined]
        super()._parse_kex_init(message)  # type: ignore[misc]

    def _parse_banner(self, message: paramiko.Message) -> None:
        room = _BANNER_BYTES - sum(map(len, self.banners))
        if room > 0:
            self.banners.append(message.get_binary()[:room])

    def _parse_disconnect(self, message: paramiko.Message) -> None:
        """Keep the message, which paramiko only logs."""
        message.get_int()
        self.parting_words = clean_line(message.get_binary().decode(errors="replace"))


class SshRefusedError(UnreachableError):
    """The server closed the connection without an SSH greeting, for example because it is busy (MaxStartups)."""


def shake_hands(transport: LoginTransport, settings: HostSettings, prompter: Prompter, accepted: AcceptedKeys) -> None:
    """Exchange keys with the server, then check its host key. `accepted`: see `KnownHosts`.

    Raises SshRefusedError, UnreachableError, HostKeyUnknownError or HostKeyChangedError.
    """
    known_hosts = KnownHosts(
        settings.known_hosts,
        hashed=settings.hash_known_hosts,
        accepted=accepted,
        revoked=settings.revoked_host_keys,
    )
    # A host with an alias is only known by its alias.
    host, port = (settings.host_key_alias, SSH_PORT) if settings.host_key_alias else (settings.host, settings.port)
    options = transport.get_security_options()
    options.ciphers = _first(_FAST_CIPHERS, options.ciphers)
    options.kex = _first(_FAST_KEX, (*options.kex, _KEX_NAME))
    transport.host_key_algorithms = known_hosts.algorithms(host, port, options.key_types)
    transport.banner_timeout = settings.connect_deadline_s
    started_at = time.monotonic()
    try:
        transport.start_client(timeout=settings.connect_deadline_s)
        key = transport.get_remote_server_key()
    except LINK_ERRORS as error:
        took_s = time.monotonic() - started_at
        raise _no_handshake(transport, settings, error, timed_out=took_s >= settings.connect_deadline_s) from error
    asks = None if settings.trusts_known_keys_only else prompter
    certificate = None if key.public_blob is None else key.public_blob.key_blob
    known_hosts.check(host, port, ServerKey(key.get_name(), key.asbytes()), asks, certificate)


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
    if disagreement := transport.disagreement:
        fix = "Ask the cluster's administrators to enable one that this program has, too: `ssh` may have others."
        return UnreachableError(what, disagreement, fix)
    why = transport.parting_words or clean_line(str(error)) or "It closed the connection"
    fix = f"`{settings.debug_command}` shows details in another terminal."
    return UnreachableError(what, f"{why.rstrip('.')}.", fix)


def _first(preferred: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(names, key=lambda name: name not in preferred))
