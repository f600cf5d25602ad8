"""Logging in: keys first, then whatever the server asks, one factor after the other."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import paramiko

from llmb_tui.cluster.failures import AuthenticationFailed
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.text import clean

_DEFAULT_KEYS = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")
_KEY_CLASSES: tuple[type[paramiko.PKey], ...] = (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey)
_HUMAN_TRIES = 3
_SERVER_TIMEOUT_S = 30.0
# A person looks for a phone: servers allow two minutes (LoginGraceTime), some more.
_HUMAN_TIMEOUT_S = 300.0


class _Declined(Exception):
    """The prompter gave no answer."""


class Login:
    """One attempt to log in on one transport."""

    def __init__(self, transport: paramiko.Transport, user: str, host: str, prompter: Prompter) -> None:
        self._transport = transport
        self._user = user
        self._host = host
        self._prompter = prompter
        self._tried: list[str] = []
        self.banner = b""
        """What the server greets with, as it came."""

    def run(self, identity_file: str | None) -> None:
        """Return when the server has let the user in.

        Raises AuthenticationFailed, which says what was tried. An answer is given to the server once, never again.
        """
        agent = paramiko.Agent()
        try:
            keys = self._keys(identity_file, _keys_of(agent))
            methods = self._ask_for_methods()
            while not self._transport.is_authenticated():
                methods = self._give_factor(methods, keys)
        except _Declined as declined:
            raise self._failure(f"No answer was given to: {declined}") from None
        finally:
            agent.close()

    def _ask_for_methods(self) -> list[str]:
        try:
            self._transport.auth_none(self._user)
        except paramiko.BadAuthenticationType as refusal:
            return list(refusal.allowed_types)
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise self._failure(_reason(error)) from error
        finally:
            # The server greets once, and paramiko forgets it at the next attempt.
            self.banner = self._transport.get_banner() or b""
        return []

    def _give_factor(self, methods: list[str], keys: Iterator[tuple[str, paramiko.PKey]]) -> list[str]:
        """Pass one factor; the methods that the server wants next, none when it is content."""
        if "publickey" in methods:
            for name, key in keys:
                remaining = self._try(name, partial(self._transport.auth_publickey, self._user, key))
                if remaining is not None:
                    return remaining
        remaining = None
        asked = False
        if "keyboard-interactive" in methods:
            asked, remaining = self._answer_questions()
        if "password" in methods and not asked:
            remaining = self._give_password()
        if remaining is None:
            raise self._failure(f"The server accepts: {', '.join(methods)}.")
        return remaining

    def _try(
        self, name: str, attempt: Callable[[], list[str]], timeout_s: float = _SERVER_TIMEOUT_S
    ) -> list[str] | None:
        """The methods that are left after a success, None after a refusal."""
        self._transport.auth_timeout = timeout_s
        started = time.monotonic()
        try:
            return attempt()
        except (paramiko.SSHException, EOFError, OSError) as error:
            self._tried.append(f"{name} ({_reason(error)})")
            if not self._transport.is_active():
                raise self._failure("The server then closed the connection.") from error
            if time.monotonic() - started >= timeout_s:
                raise self._failure("The server then stopped answering.") from error
            return None

    def _answer_questions(self) -> tuple[bool, list[str] | None]:
        """Keyboard-interactive: whether anything was asked, and the methods that are left."""
        for _ in range(_HUMAN_TRIES):
            questions = _Questions(self._prompter)
            remaining = self._try(
                "keyboard-interactive",
                partial(self._transport.auth_interactive, self._user, questions),
                _HUMAN_TIMEOUT_S,
            )
            if remaining is not None or not questions.asked:
                return questions.asked, remaining
        return True, None

    def _give_password(self) -> list[str] | None:
        for _ in range(_HUMAN_TRIES):
            password = _ask(self._prompter, f"Password for {self._user}@{self._host}: ", echo=False)
            remaining = self._try(
                "password",
                partial(self._transport.auth_password, self._user, password, fallback=False),
            )
            if remaining is not None:
                return remaining
        return None

    def _keys(self, identity_file: str | None, agent: list[paramiko.AgentKey]) -> Iterator[tuple[str, paramiko.PKey]]:
        """Keys to offer, each once: the profile's file, the agent's, the default files."""
        held = {key.asbytes(): key for key in agent}
        offered: set[bytes] = set()

        def files() -> Iterator[tuple[str, paramiko.PKey]]:
            if identity_file is not None:
                yield from self._key_in(identity_file, held)
            yield from (("a key of the agent", key) for key in agent)
            for path in _DEFAULT_KEYS:
                if Path(path).expanduser().exists():
                    yield from self._key_in(path, held)

        for name, key in files():
            if key.asbytes() not in offered:
                offered.add(key.asbytes())
                yield name, key

    def _key_in(self, path: str, held: dict[bytes, paramiko.AgentKey]) -> Iterator[tuple[str, paramiko.PKey]]:
        """The key in a file; an encrypted one is taken from the agent where it holds it."""
        try:
            yield f"key {path}", _load(path, None)
        except paramiko.PasswordRequiredException:
            in_agent = held.get(_public_blob(path))
            key = in_agent or self._unlock(path)
            if key is not None:
                yield f"key {path}", key
        except (paramiko.SSHException, OSError, ValueError) as error:
            self._tried.append(f"key {path} ({_reason(error)})")

    def _unlock(self, path: str) -> paramiko.PKey | None:
        prompt = f"Passphrase for {path}: "
        for _ in range(_HUMAN_TRIES):
            passphrase = self._prompter.answer(prompt, False)
            if passphrase is None:
                self._tried.append(f"key {path} (encrypted, no passphrase given)")
                return None
            try:
                return _load(path, passphrase)
            except (paramiko.SSHException, ValueError):
                prompt = f"That was not it. Passphrase for {path}: "
        self._tried.append(f"key {path} (wrong passphrase)")
        return None

    def _failure(self, why: str) -> AuthenticationFailed:
        tried = f"Tried: {', '.join(self._tried)}. " if self._tried else ""
        return AuthenticationFailed(
            f"{self._host} did not let {self._user} in.",
            tried + why,
            "Check the user name and the key of this cluster; `ssh` to it in another terminal shows more.",
        )


class _Questions:
    """Answers the rounds of one keyboard-interactive attempt. Paramiko calls it in the transport's thread."""

    def __init__(self, prompter: Prompter) -> None:
        self._prompter = prompter
        self.asked = False

    def __call__(self, title: str, instructions: str, prompts: list[tuple[str, bool]]) -> list[str]:
        answers = []
        preamble = "".join(f"{text.strip()}\n" for text in (title, instructions) if text.strip())
        for prompt, echo in prompts:
            self.asked = True
            # Raising ends the connection, and nothing that the person did not type is sent.
            answers.append(_ask(self._prompter, clean(preamble + prompt), echo))
        return answers


def _ask(prompter: Prompter, prompt: str, echo: bool) -> str:
    answer = prompter.answer(prompt, echo)
    if answer is None:
        raise _Declined(prompt.strip())
    return answer


def _keys_of(agent: paramiko.Agent) -> list[paramiko.AgentKey]:
    return list(agent.get_keys())


def _load(path: str, passphrase: str | None) -> paramiko.PKey:
    """Raises PasswordRequiredException for an encrypted file without a passphrase, SSHException for a wrong one."""
    file = str(Path(path).expanduser())
    for key_class in _KEY_CLASSES:
        try:
            return key_class.from_private_key_file(file, passphrase)
        except paramiko.PasswordRequiredException:
            raise
        except paramiko.SSHException:
            continue  # another kind of key, or a wrong passphrase: paramiko does not tell them apart
    raise paramiko.SSHException("not a private key, or a wrong passphrase")


def _public_blob(path: str) -> bytes:
    """The public key beside a private one, empty if there is none."""
    try:
        return base64.b64decode(Path(path + ".pub").expanduser().read_bytes().split()[1])
    except (OSError, ValueError, IndexError):
        return b""


def _reason(error: Exception) -> str:
    return clean(str(error)).strip().rstrip(".") or type(error).__name__
