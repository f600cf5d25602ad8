"""Host keys: reads and extends OpenSSH's known_hosts files, and checks the key of a server.

Of paramiko's `HostKeys` only the hashing of names is used: the class does not support wildcards, revoked keys, and key
types that paramiko cannot use.
"""

from __future__ import annotations

import base64
import hashlib
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import paramiko

from llmb_tui.cluster.failures import HostKeyChangedError, HostKeyUnknownError
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.quoting import shell_join
from llmb_tui.cluster.ssh.certificates import SUFFIX, Certificate, parse_certificate
from llmb_tui.cluster.ssh.revoked_keys import is_revoked
from llmb_tui.cluster.ssh.wire import Fields
from llmb_tui.errors import LlmbError
from llmb_tui.language.text import clean_line
from llmb_tui.store.files import append_durable

# An RSA key has one type in a file, and two signature algorithms in the protocol.
_ALGORITHMS = {"ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256")}
_NOT_KEPT = "The answer is not saved: name a file as `known_hosts` in the cluster's profile."
_REVOKED, _AUTHORITY = "@revoked", "@cert-authority"


@dataclass(frozen=True, slots=True)
class ServerKey:
    """A server's public key."""

    type: str
    blob: bytes

    @property
    def fingerprint(self) -> str:
        """Fingerprint in OpenSSH's form, `SHA256:…`."""
        digest = hashlib.sha256(self.blob).digest()
        return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


AcceptedKeys = set[tuple[str, ServerKey]]
"""Accepted keys that are not written to a file, each with its host's name; kept for one session."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """One line of a known_hosts file."""

    marker: str
    hosts: str
    key: ServerKey
    file: Path

    def matches(self, name: str) -> bool:
        if self.hosts.startswith("|1|"):
            return _hash_matches(self.hosts, name)
        patterns = self.hosts.lower().split(",")
        matches = [pattern for pattern in patterns if _pattern_matches(pattern.removeprefix("!"), name)]
        return bool(matches) and not any(pattern.startswith("!") for pattern in matches)


class KnownHosts:
    """The known keys of all hosts. It reads all `files`, and appends an accepted key to the first.

    `hashed`: write hashed host names (HashKnownHosts). `accepted` holds accepted keys that are not written to a file;
    pass it again to avoid the same question. `revoked`: files of revoked keys (RevokedHostKeys).
    """

    def __init__(
        self,
        files: Sequence[Path],
        *,
        hashed: bool = False,
        accepted: AcceptedKeys | None = None,
        revoked: Sequence[Path] = (),
    ) -> None:
        self._revoked = revoked
        self._file = files[0]
        self._hashed = hashed
        self._accepted = AcceptedKeys() if accepted is None else accepted
        self._entries = [entry for file in files for entry in _entries_in(file)]

    def check(
        self, host: str, port: int, key: ServerKey, prompter: Prompter | None, certificate: bytes | None = None
    ) -> None:
        """Check a host's key. The prompter may accept an unknown key; without a prompter it is an error.

        As in OpenSSH, a valid certificate of a trusted authority (`@cert-authority`) makes the key known, and any other
        certificate is ignored.
        Raises HostKeyChangedError, without a question, if another key is known for the host, or this key or its
        certificate's authority is revoked; HostKeyUnknownError if an unknown key is not accepted.
        """
        name, plain = _name(host, port), host.lower()
        proof = _parsed(certificate)
        for entry in (*self._entries_of(name, _REVOKED), *self._entries_of(plain, _REVOKED)):
            if entry.key == key:
                raise _revoked(f"The host key of {clean_line(name)}", entry.key, entry.file)
            if proof is not None and entry.key.blob == proof.authority:
                subject = f"The authority that signed the host certificate of {clean_line(name)}"
                raise _revoked(subject, entry.key, entry.file)
        shown = [key.blob] if certificate is None or proof is None else [key.blob, certificate, proof.authority]
        for file in self._revoked:
            if is_revoked(file, shown):
                raise _revoked(f"The host key of {clean_line(name)}, or its certificate,", key, file)
        authorities = self._authorities_of(host, port)
        fault = _certificate_fault(host, key, certificate, proof, authorities)
        if authorities and not fault:
            return
        entries = self._entries_of(name)
        # As in OpenSSH, the name without a port counts only if there is no entry for the name with the port.
        if any(entry.key == key for entry in entries or self._entries_of(plain)):
            return
        if entries:
            raise _changed(name, key, entries)
        if (name, key) in self._accepted:
            return
        note = ""
        if authorities:
            note = f"{clean_line(str(authorities[0].file))} trusts an authority for this host, but {fault}."
        question = f"{note} {_NOT_KEPT}".lstrip() if self._keeps_no_keys else note
        if prompter is None or not prompter.accept_host_key(clean_line(name), key.type, key.fingerprint, question):
            raise self._unknown(name, key, note, may_ask=prompter is not None)
        self._remember(name, key)

    def algorithms(self, host: str, port: int, supported: Iterable[str]) -> tuple[str, ...]:
        """Return `supported`, with the algorithms of the host's known keys first, and their certificates.

        Otherwise a server with several keys may show one that is not in the file, and appear to be unknown.
        Certificates come first for a host with a trusted authority.
        """
        name = _name(host, port)
        preferred = [
            algorithm
            for entry in self._entries_of(name)
            for algorithm in _ALGORITHMS.get(entry.key.type, (entry.key.type,))
        ]
        keys = tuple(sorted(supported, key=lambda algorithm: algorithm not in preferred))
        certificates = tuple(f"{algorithm}{SUFFIX}" for algorithm in keys)
        return certificates + keys if self._authorities_of(host, port) else keys + certificates

    @property
    def _keeps_no_keys(self) -> bool:
        """Whether an accepted key is written to no file: UserKnownHostsFile is `none` or /dev/null."""
        return str(self._file) == os.devnull

    def _authorities_of(self, host: str, port: int) -> list[_Entry]:
        return [*self._entries_of(_name(host, port), _AUTHORITY), *self._entries_of(host.lower(), _AUTHORITY)]

    def _entries_of(self, name: str, marker: str = "") -> list[_Entry]:
        return [entry for entry in self._entries if entry.marker == marker and entry.matches(name)]

    def _unknown(self, name: str, key: ServerKey, note: str, *, may_ask: bool) -> HostKeyUnknownError:
        outcome = "it was not accepted" if may_ask else "the OpenSSH configuration has StrictHostKeyChecking yes"
        entry = f"{clean_line(name)} {key.type} {base64.b64encode(key.blob).decode()}"
        accept = "accept it in a terminal (`llmb-tui doctor CLUSTER`) or on the screen, or " if may_ask else ""
        file, first = str(self._file), ""
        if self._keeps_no_keys:
            file, first = "that file", "Name a file as `known_hosts` in the cluster's profile. "
        return HostKeyUnknownError(
            f"The host key of {clean_line(name)} is unknown: {key.type} {key.fingerprint}",
            f"It is not in {self._file}, and {outcome}. {note}".rstrip(),
            f"{first}Compare the fingerprint with the one that the cluster's administrators publish, then "
            f"{accept}add this line to {file}:\n{entry}",
        )

    def _remember(self, name: str, key: ServerKey) -> None:
        if self._keeps_no_keys:
            self._accepted.add((name, key))
            return
        host = paramiko.HostKeys.hash_host(name) if self._hashed else name
        line = f"{host} {key.type} {base64.b64encode(key.blob).decode()}\n".encode()
        present = self._file.read_bytes() if self._file.exists() else b""
        try:
            append_durable(self._file, b"\n" + line if present and not present.endswith(b"\n") else line)
        except LlmbError as error:  # ~/.ssh is often read-only in containers: keep the accepted key in memory
            if not isinstance(error.__cause__, OSError):  # the path is not a usable file
                raise
            self._accepted.add((name, key))


def _name(host: str, port: int) -> str:
    """Name of a host in a known_hosts file."""
    return host.lower() if port == 22 else f"[{host.lower()}]:{port}"


def _parsed(certificate: bytes | None) -> Certificate | None:
    try:
        return None if certificate is None else parse_certificate(certificate)
    except ValueError:
        return None


def _certificate_fault(
    host: str, key: ServerKey, certificate: bytes | None, proof: Certificate | None, authorities: Sequence[_Entry]
) -> str:
    """Reason why the host's certificate does not prove its key; empty if it does."""
    if certificate is None:
        return "the host showed no certificate"
    if proof is None or proof.key != key.blob:
        return "the host's certificate cannot be read"
    if proof.authority not in [entry.key.blob for entry in authorities]:
        authority = ServerKey(Fields(proof.authority).text(), proof.authority)
        shown = f"{clean_line(authority.type)} {authority.fingerprint}"
        return f"the host's certificate is signed by another authority: {shown}"
    fault = proof.host_fault(host, time.time())
    return f"the host's certificate {fault}" if fault else ""


def _revoked(subject: str, key: ServerKey, file: Path) -> HostKeyChangedError:
    return HostKeyChangedError(
        f"{subject} is revoked: {key.type} {key.fingerprint}",
        f"{file} marks it as revoked: it must not be trusted.",
        "Ask the cluster's administrators for the correct key.",
    )


def _changed(name: str, key: ServerKey, entries: Sequence[_Entry]) -> HostKeyChangedError:
    name = clean_line(name)
    expected = ", ".join(f"{entry.key.type} {entry.key.fingerprint} ({entry.file})" for entry in entries)
    files = dict.fromkeys(str(entry.file) for entry in entries)
    return HostKeyChangedError(
        f"The host key of {name} has changed. Nothing was sent to it.",
        f"The host shows {key.type} {key.fingerprint}, but the known key is {expected}. "
        "Someone may be intercepting the connection, or the login node was set up again.",
        "Ask the cluster's administrators. If the new key is correct, run "
        + " and ".join(shell_join(["ssh-keygen", "-f", file, "-R", name]) for file in files),
    )


def _entries_in(file: Path) -> list[_Entry]:
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise LlmbError(
            f"Could not read {file}.", f"{error.strerror}.", "Fix this file: the host key cannot be checked without it."
        ) from error
    return [entry for line in text.split("\n") if (entry := _parse(line, file)) is not None]


def _parse(line: str, file: Path) -> _Entry | None:
    """Parse one line; None for a comment, and for a line that OpenSSH would skip."""
    words = line.split()
    if not words or words[0].startswith("#"):
        return None
    marker = words.pop(0) if words[0].startswith("@") else ""
    if marker not in ("", _REVOKED, _AUTHORITY) or len(words) < 3:
        return None
    try:
        blob = base64.b64decode(words[2], validate=True)
    except ValueError:
        return None
    return _Entry(marker, words[0], ServerKey(words[1], blob), file)


def _hash_matches(hosts: str, name: str) -> bool:
    try:
        return paramiko.HostKeys.hash_host(name, hosts) == hosts
    except (ValueError, AssertionError):  # invalid base64, or a wrong length
        return False


def _pattern_matches(pattern: str, name: str) -> bool:
    """Match OpenSSH's wildcards: `*` is any text, `?` any character; other characters are literal."""
    return fnmatchcase(name, pattern.replace("[", "[[]"))
