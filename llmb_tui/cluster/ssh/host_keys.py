"""Host keys: OpenSSH's known_hosts files, read and appended to; and the decision about a server's key.

Paramiko hashes names; its own `HostKeys` knows no wildcards, no revoked keys and no type of key that it cannot use.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import paramiko

from llmb_tui.cluster.failures import HostKeyChanged, HostKeyUnknown
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.quoting import shell_join
from llmb_tui.errors import Trouble
from llmb_tui.language.text import clean_line
from llmb_tui.store.files import append_durable

# An RSA key is one type in a file and two signature algorithms on the wire.
_ALGORITHMS = {"ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256")}
_REVOKED, _AUTHORITY = "@revoked", "@cert-authority"


@dataclass(frozen=True, slots=True)
class ServerKey:
    """A server's public key."""

    type: str
    blob: bytes

    @property
    def fingerprint(self) -> str:
        """`SHA256:…`, as OpenSSH prints it."""
        digest = hashlib.sha256(self.blob).digest()
        return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


AcceptedKeys = set[tuple[str, ServerKey]]
"""Keys that were accepted and go into no file, each with its host's name: known for the life of one session."""


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
        matches = [one for one in self.hosts.lower().split(",") if _pattern_matches(one.removeprefix("!"), name)]
        return bool(matches) and not any(one.startswith("!") for one in matches)


class KnownHosts:
    """The known keys of all hosts. `files` are read; an accepted key is appended to the first.

    `hashed`: the host's name is hashed there (HashKnownHosts). `accepted` holds those that go into no file; given
    again it spares the question.
    """

    def __init__(self, files: Sequence[Path], *, hashed: bool = False, accepted: AcceptedKeys | None = None) -> None:
        self._file = files[0]
        self._hashed = hashed
        self._accepted = AcceptedKeys() if accepted is None else accepted
        self._entries = [entry for file in files for entry in _entries_in(file)]

    def check(self, host: str, port: int, key: ServerKey, prompter: Prompter | None) -> None:
        """Return when the key is known, or was accepted just now. Without a prompter nobody may accept one.

        Raises HostKeyChanged, without a question, when the host is known by another key or this key is revoked,
        and HostKeyUnknown when nobody accepts an unknown key.
        """
        name, plain = _name(host, port), host.lower()
        for entry in self._entries:
            if entry.marker == _REVOKED and entry.key == key and (entry.matches(name) or entry.matches(plain)):
                raise _revoked(name, entry)
        entries = self._entries_of(name)
        # As by OpenSSH the name without the port counts only where nothing is known by the one with it.
        if any(entry.key == key for entry in entries or self._entries_of(plain)):
            return
        if entries:
            raise _changed(name, key, entries)
        if (name, key) in self._accepted:
            return
        note = self._authority_of(name, plain)
        if prompter is None or not prompter.accept_host_key(clean_line(name), key.type, key.fingerprint, note):
            raise self._unknown(name, key, note, may_ask=prompter is not None)
        self._remember(name, key)

    def algorithms(self, host: str, port: int, supported: Iterable[str]) -> tuple[str, ...]:
        """`supported` with those of the host's known keys first.

        Without this a server with several keys may show one that is not in the file, and look unknown.
        """
        preferred = [
            name
            for entry in self._entries_of(_name(host, port))
            for name in _ALGORITHMS.get(entry.key.type, (entry.key.type,))
        ]
        return tuple(sorted(supported, key=lambda algorithm: algorithm not in preferred))

    def _entries_of(self, name: str) -> list[_Entry]:
        return [entry for entry in self._entries if not entry.marker and entry.matches(name)]

    def _authority_of(self, name: str, plain: str) -> str:
        """A sentence where the host's certificate would be enough for `ssh`, which may have told nobody of its key."""
        for entry in self._entries:
            if entry.marker == _AUTHORITY and (entry.matches(name) or entry.matches(plain)):
                file = clean_line(str(entry.file))
                return f"An authority in {file} vouches for this host, and this program reads no certificates of hosts."
        return ""

    def _unknown(self, name: str, key: ServerKey, note: str, *, may_ask: bool) -> HostKeyUnknown:
        outcome = "it was not accepted" if may_ask else "the OpenSSH configuration says StrictHostKeyChecking yes"
        entry = f"{clean_line(name)} {key.type} {base64.b64encode(key.blob).decode()}"
        asks = "say yes where a terminal or the screen asks (`llmb-tui doctor CLUSTER`), or " if may_ask else ""
        return HostKeyUnknown(
            f"The host key of {clean_line(name)} is not known: {key.type} {key.fingerprint}",
            f"It is not in {self._file}, and {outcome}. {note}".rstrip(),
            "Compare the fingerprint with the one that the cluster's administrators publish, then "
            f"{asks}add this line to {self._file}:\n{entry}",
        )

    def _remember(self, name: str, key: ServerKey) -> None:
        if str(self._file) == os.devnull:  # UserKnownHostsFile none
            self._accepted.add((name, key))
            return
        host = paramiko.HostKeys.hash_host(name) if self._hashed else name
        line = f"{host} {key.type} {base64.b64encode(key.blob).decode()}\n".encode()
        present = self._file.read_bytes() if self._file.exists() else b""
        try:
            append_durable(self._file, b"\n" + line if present and not present.endswith(b"\n") else line)
        except Trouble as trouble:  # a container's ~/.ssh is often read-only, and the key was accepted all the same
            if not isinstance(trouble.__cause__, OSError):  # a file that cannot be meant
                raise
            self._accepted.add((name, key))


def _name(host: str, port: int) -> str:
    """The host as a known_hosts file names it."""
    return host.lower() if port == 22 else f"[{host.lower()}]:{port}"


def _revoked(name: str, entry: _Entry) -> HostKeyChanged:
    return HostKeyChanged(
        f"The host key of {clean_line(name)} is revoked: {entry.key.type} {entry.key.fingerprint}",
        f"{entry.file} says that this key must not be trusted.",
        "Ask the cluster's administrators for the right key.",
    )


def _changed(name: str, key: ServerKey, entries: Sequence[_Entry]) -> HostKeyChanged:
    name = clean_line(name)
    expected = ", ".join(f"{entry.key.type} {entry.key.fingerprint} ({entry.file})" for entry in entries)
    files = dict.fromkeys(str(entry.file) for entry in entries)
    return HostKeyChanged(
        f"The host key of {name} has changed. Nothing was sent to it.",
        f"It shows {key.type} {key.fingerprint}, but known is {expected}. "
        "Someone may be listening in, or the login node was set up again.",
        "Ask the cluster's administrators. If the new key is right: "
        + " and ".join(shell_join(["ssh-keygen", "-f", file, "-R", name]) for file in files),
    )


def _entries_in(file: Path) -> list[_Entry]:
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise Trouble(
            f"Could not read {file}.", f"{error.strerror}.", "The host's key cannot be checked without it: mend it."
        ) from error
    return [entry for line in text.split("\n") if (entry := _parse(line, file)) is not None]


def _parse(line: str, file: Path) -> _Entry | None:
    """One entry; None for a comment and a line that OpenSSH would skip."""
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
    except (ValueError, AssertionError):  # not in base64, or of another length
        return False


def _pattern_matches(pattern: str, name: str) -> bool:
    """OpenSSH's wildcards: `*` any text, `?` any one character; nothing else is special."""
    return fnmatchcase(name, pattern.replace("[", "[[]"))
