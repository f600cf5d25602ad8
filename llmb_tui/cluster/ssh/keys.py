"""The user's keys from files and from the agent, with their certificates. Each is offered to a server once."""

from __future__ import annotations

import base64
import copy
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import paramiko
from paramiko.agent import SSH2_AGENT_IDENTITIES_ANSWER, AgentKey, AgentSSH, cSSH2_AGENTC_REQUEST_IDENTITIES

from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.ssh.certificates import parse_certificate
from llmb_tui.cluster.ssh.key_files import (
    KeyFileError,
    KeyLockedError,
    WrongPassphraseError,
    load_private_key,
    public_part,
)
from llmb_tui.cluster.ssh.openssh import HostSettings
from llmb_tui.language.text import clean, clean_line
from llmb_tui.store.paths import expand_user

_PASSPHRASE_TRIES = 3
AGENT_DEADLINE_S = 60.0
"""Deadline of an agent's answer, seconds: it may wait for the user to touch a token or to confirm."""

UnlockedKeys = dict[tuple[str, int, int], paramiko.PKey]
"""Unlocked private keys, by path, time and size of their file: a replaced file is another key.

They stay in memory for one session, as in an agent.
"""


class NoSignatureError(paramiko.SSHException):
    """The agent did not sign in time. Nothing was sent to the server."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A key that may be offered to a server."""

    name: str
    public: bytes
    """Public key or certificate for the server; empty if only the locked private key contains it."""
    asks: bool
    """Whether its use may ask the user for a passphrase, or for a touch of an agent's token."""
    private: Callable[[], paramiko.PKey | None]
    """Returns the key for signing; None if its passphrase was not given."""
    has_expired: bool = False
    """Whether it is a certificate that has expired."""


class Keys:
    """The keys for one host in the order of their use: keys named for the host, the agent's keys, default keys."""

    def __init__(self, settings: HostSettings, prompter: Prompter, unlocked: UnlockedKeys) -> None:
        self._settings = settings
        self._prompter = prompter
        self._unlocked = unlocked
        self._agent: _Agent | None = None
        self._agent_keys: dict[bytes, _AgentKey] = {}
        self.unusable: list[str] = []
        """Keys that could not be offered, each with the reason."""
        self.has_asked = False
        """Whether the user was asked for a passphrase and did not give the right one."""

    def close(self) -> None:
        """Close the connection to the agent; its keys cannot be used after that."""
        if self._agent is not None:
            self._agent.close()

    def candidates(self) -> Iterator[Candidate]:
        """Yield each key once, after its certificates."""
        self._ask_agent()
        offered: set[bytes] = set()
        for candidate in self._all():
            if not candidate.public or candidate.public not in offered:
                offered.add(candidate.public)
                yield candidate

    def _all(self) -> Iterator[Candidate]:
        for path in self._settings.identity_files:
            yield from self._in_file(path)
        if not self._settings.identities_only:
            for key in self._agent_keys.values():
                yield from self._with_certificates(_agent_candidate(key), self._settings.certificate_files)
        for path in self._settings.default_keys:
            if expand_user(path).exists():
                yield from self._in_file(path)

    def _ask_agent(self) -> None:
        if self._settings.agent is None:
            return
        try:
            self._agent = _Agent(self._settings.agent)
        except (paramiko.SSHException, OSError) as error:
            self.unusable.append(f"the agent at {self._settings.agent} ({reason(error)})")
            return
        self._agent_keys = {key.blob: key for key in self._agent.keys}

    def _in_file(self, path: str) -> Iterator[Candidate]:
        candidate = self._candidate(path)
        if candidate is not None:
            certificate = f"{path.removesuffix('.pub')}-cert.pub"
            own = [certificate] if expand_user(certificate).exists() else []
            yield from self._with_certificates(candidate, (*self._settings.certificate_files, *own))

    def _candidate(self, path: str) -> Candidate | None:
        """Find the key that belongs to a file: in the agent, among the unlocked keys, or in the file itself."""
        # From the unencrypted part of the private key, from the file itself, or from its `.pub` file; may be empty.
        file = expand_user(path)
        public = public_part(file) or _public_file(file) or _public_file(expand_user(f"{path}.pub"))
        key = self._agent_keys.get(public) or self._unlocked.get(_version(path))
        if key is None and public[4:].startswith(b"sk-"):
            self.unusable.append(f"key {path} (on a security key: run `ssh-add {path}` to use it through the agent)")
            return None
        try:
            key = key or load_private_key(file)
        except KeyLockedError:
            return Candidate(f"key {path}", public, True, partial(self._unlock, path))
        except (KeyFileError, OSError) as error:
            self.unusable.append(f"key {path} ({reason(error)})")
            return None
        return Candidate(f"key {path}", key.asbytes(), isinstance(key, _AgentKey), lambda: key)

    def _with_certificates(self, candidate: Candidate, files: tuple[str, ...]) -> Iterator[Candidate]:
        for file in dict.fromkeys(files):
            certificate = _certificate(file, candidate.public)
            if certificate is not None:
                private = partial(_certified, candidate.private, certificate)
                yield _with_fault(Candidate(f"certificate {file}", certificate.asbytes(), candidate.asks, private))
        yield candidate

    def _unlock(self, path: str) -> paramiko.PKey | None:
        unlocked = self._unlocked.get(_version(path))
        if unlocked is not None:
            return unlocked
        prompt = f"Passphrase for {clean(path)}: "
        for _ in range(_PASSPHRASE_TRIES):
            passphrase = self._prompter.answer(prompt, False)
            if not passphrase:
                break
            try:
                key = load_private_key(expand_user(path), passphrase)
            except WrongPassphraseError:
                prompt = f"Wrong passphrase. Passphrase for {clean(path)}: "
            except (KeyFileError, OSError) as error:
                self.unusable.append(f"key {path} ({reason(error)})")
                break
            else:
                self._unlocked[_version(path)] = key
                return key
        self.has_asked = True
        return None


class _Agent(AgentSSH):
    """The agent at a socket. Paramiko's class only supports SSH_AUTH_SOCK, and decodes all comments as UTF-8."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.is_silent = False
        """Whether a signature is still due: a late answer could be mistaken for the next signature."""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.settimeout(AGENT_DEADLINE_S)
            self._socket.connect(path)
            self.keys = self._list_keys()
        except BaseException:
            self._socket.close()
            raise

    def close(self) -> None:
        self._socket.close()

    def _list_keys(self) -> tuple[_AgentKey, ...]:
        self._conn = self._socket
        # The type stubs lack this method.
        kind, answer = self._send_message(cSSH2_AGENTC_REQUEST_IDENTITIES)  # type: ignore[attr-defined]
        if kind != SSH2_AGENT_IDENTITIES_ANSWER:
            raise paramiko.SSHException("it did not list its keys")
        entries = [(answer.get_binary(), answer.get_binary()) for _ in range(answer.get_int())]
        return tuple(_AgentKey(self, blob, comment.decode(errors="replace")) for blob, comment in entries)


class _AgentKey(AgentKey):
    """A key or certificate of the agent. Paramiko's class mistakes an RSA certificate for its key."""

    def asbytes(self) -> bytes:
        return self.blob

    def sign_ssh_data(self, data: Any, algorithm: str | None = None) -> paramiko.Message:
        """Sign by the agent. Raises NoSignatureError if it waits in vain for a touch; then none of its keys is used."""
        agent = cast("_Agent", self.agent)
        if not agent.is_silent:
            try:
                return super().sign_ssh_data(data, algorithm)
            except TimeoutError:
                agent.is_silent = True
        raise NoSignatureError("the agent gave no signature in time")


def reason(error: Exception) -> str:
    """Text of an error, clean, without its full stop."""
    text = getattr(error, "strerror", None) or str(error)
    return clean_line(text).strip().rstrip(".") or type(error).__name__


def _agent_candidate(key: AgentKey) -> Candidate:
    comment = clean_line(key.comment)[:60]
    return _with_fault(Candidate(f"the agent's key {comment}".rstrip(), key.asbytes(), True, lambda: key))


def _with_fault(candidate: Candidate) -> Candidate:
    """Add to the name why a certificate is not valid. It is offered all the same: this machine's clock may be wrong."""
    try:
        certificate = parse_certificate(candidate.public)
    except ValueError:  # a key, or a certificate for a type of key that only an agent has
        return candidate
    now = time.time()
    fault = certificate.user_fault(now)
    name = f"{candidate.name}, which {fault}" if fault else candidate.name
    return replace(candidate, name=name, has_expired=certificate.has_expired(now))


def _version(path: str) -> tuple[str, int, int]:
    try:
        status = expand_user(path).stat()
    except OSError:
        return str(expand_user(path)), 0, 0
    return str(expand_user(path)), status.st_mtime_ns, status.st_size


def _public_file(file: Path) -> bytes:
    try:
        kind, encoded = file.read_bytes().split()[:2]
        blob = base64.b64decode(encoded, validate=True)
    except (OSError, ValueError):
        return b""
    return blob if blob[4:].startswith(kind) else b""


def _certificate(file: str, public: bytes) -> paramiko.Message | None:
    """Certificate in a file; None if it is not for this public key."""
    certificate, key = paramiko.Message(_public_file(expand_user(file))), paramiko.Message(public)
    kind = key.get_text()
    if not public or not certificate.get_text().startswith(f"{kind}-cert-"):
        return None
    certificate.get_binary()  # the nonce; the fields of the key follow, in the same order as in the key
    if not certificate.get_remainder().startswith(key.get_remainder()):
        return None
    certificate.rewind()
    return certificate


def _certified(private: Callable[[], paramiko.PKey | None], certificate: paramiko.Message) -> paramiko.PKey | None:
    key = private()
    if key is None:
        return None
    twin = _AgentKey(key.agent, key.blob, key.comment) if isinstance(key, _AgentKey) else copy.copy(key)
    twin.load_certificate(paramiko.Message(certificate.asbytes()))
    return twin
