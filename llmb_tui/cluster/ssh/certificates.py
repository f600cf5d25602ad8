"""OpenSSH certificates (PROTOCOL.certkeys): reads them, and checks those of hosts as `ssh` does."""

from __future__ import annotations

from dataclasses import dataclass

import paramiko

from llmb_tui.cluster.ssh.wire import Fields, string
from llmb_tui.language.instants import local_time
from llmb_tui.language.text import clean_line

SUFFIX = "-cert-v01@openssh.com"
"""Ending of a certificate's type; before it stands the type of its key."""
_USER, _HOST = 1, 2
_LATEST = 253402300799
"""Last second of the year 9999: later times cannot be written."""
_KEY_FIELDS = {
    "ssh-ed25519": 1,
    "ssh-rsa": 2,
    "ecdsa-sha2-nistp256": 2,
    "ecdsa-sha2-nistp384": 2,
    "ecdsa-sha2-nistp521": 2,
}
"""Number of fields of a public key, by its type."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A public key with the statements of an authority, which may be false until `host_fault` has checked them."""

    key: bytes
    """The key without its certificate."""
    purpose: int
    principals: tuple[str, ...]
    """Names of hosts or users; none stands for all."""
    valid_from: int
    """Unix time."""
    valid_before: int
    """Unix time."""
    critical_options: bytes
    authority: bytes
    """Public key of the authority."""
    _signed: bytes
    _signature: bytes

    def user_fault(self, now: float) -> str:
        """Reason why no server will accept the certificate for a user at a Unix time; empty if none is known here."""
        return self._time_fault(now) if self.purpose == _USER else "is not for a user"

    def has_expired(self, now: float) -> bool:
        """Whether the certificate was valid once, and no longer is at a Unix time."""
        return now >= self.valid_before

    def host_fault(self, host: str, now: float) -> str:
        """Reason why the certificate does not prove that its key is the host's; empty if it does.

        The caller decides whether it trusts the authority.
        """
        if fault := self._signature_fault():
            return fault
        if self.purpose != _HOST:
            return "is not for a host"
        if fault := self._time_fault(now):
            return fault
        if self.principals and not {host, host.lower()} & set(self.principals):
            return f"is for other names: {clean_line(', '.join(self.principals))[:200]}"
        if self.critical_options:
            return "has critical options, which no host certificate may have"
        return ""

    def _time_fault(self, now: float) -> str:
        if now < self.valid_from:
            return f"is not valid before {local_time(min(self.valid_from, _LATEST), now)}"
        if self.has_expired(now):
            return f"expired on {local_time(self.valid_before, now)}"
        return ""

    def _signature_fault(self) -> str:
        kind, signature = Fields(self.authority).text(), Fields(self._signature)
        if signature.text() == "ssh-rsa":
            return "is signed with SHA-1, which is not secure"
        try:
            key = paramiko.PKey.from_type_string(kind, self.authority)
            signature.string()
            is_right = not signature.rest and key.verify_ssh_sig(self._signed, paramiko.Message(self._signature))
        except paramiko.pkey.UnknownKeyType:
            return f"is signed with a key of the type {clean_line(kind)}, which this program cannot check"
        except (paramiko.SSHException, ValueError):
            is_right = False
        return "" if is_right else "has an invalid signature"


def parse_certificate(blob: bytes) -> Certificate:
    """Parse a certificate. Raises ValueError, also for one whose type of key is not supported."""
    fields = Fields(blob)
    kind = fields.text()
    key_type = kind.removesuffix(SUFFIX)
    if key_type == kind or key_type not in _KEY_FIELDS:
        raise ValueError(f"{kind} is no supported type of certificate.")
    fields.string()  # nonce
    key = string(key_type.encode()) + b"".join(string(fields.string()) for _ in range(_KEY_FIELDS[key_type]))
    fields.number(8)  # serial number
    purpose = fields.number(4)
    fields.string()  # name of the certificate
    names, principals = Fields(fields.string()), []
    while names.rest:
        principals.append(names.text())
    valid_from, valid_before = fields.number(8), fields.number(8)
    critical_options = fields.string()
    for _ in ("extensions", "reserved"):
        fields.string()
    authority = fields.string()
    signed = blob[: len(blob) - len(fields.rest)]
    signature = fields.string()
    for text in (authority, signature):
        Fields(text).string()
    if fields.rest:
        raise ValueError("Data follows the signature.")
    return Certificate(
        key, purpose, tuple(principals), valid_from, valid_before, critical_options, authority, signed, signature
    )
