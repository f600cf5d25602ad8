"""A login node for tests: a real SSH server on loopback that runs real commands with sh."""

from __future__ import annotations

import contextlib
import os
import shlex
import socket
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, cast

import paramiko
from paramiko.common import (
    AUTH_FAILED,
    AUTH_PARTIALLY_SUCCESSFUL,
    AUTH_SUCCESSFUL,
    OPEN_FAILED_CONNECT_FAILED,
    OPEN_SUCCEEDED,
)
from paramiko.server import InteractiveQuery

from llmb_tui.cluster.login_profile import NO_SSH_CONFIG
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.demo.server import AnsweringTransport

PASSWORD = "correct horse"
SHELL_PRINTS = ("Welcome.\nQuota: 80 % used.\n", "\033]0;operator@login1\007")
"""Output of a `.bashrc`: words, and the title of a window without a line end."""
SITES = Path(__file__).parent / "sites"
WORDS_AT_EXIT = (SITES / "02-motd-and-exit-trap.bashrc").read_text()
"""A `.bashrc` that prints words at login and at exit, after aiida-core#2978."""
PERL_SETTINGS = (("PERL_UNICODE", "SDA"), ("PERL5OPT", "-Mopen=:std,:utf8"))
"""Variables of users, each of which makes Perl read and write characters instead of bytes."""


def make_key(path: Path, kind: str = "ed25519", passphrase: str = "") -> paramiko.PKey:
    subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-f", str(path)], check=True)
    classes: dict[str, type[paramiko.PKey]] = {"ed25519": paramiko.Ed25519Key, "ecdsa": paramiko.ECDSAKey}
    return classes[kind].from_private_key_file(str(path), passphrase or None)


@dataclass
class Person:
    """Prompter that answers from a list and records the prompts."""

    answers: list[str | None] = field(default_factory=list)
    accepts: bool = False
    prompts: list[tuple[str, bool]] = field(default_factory=list)
    host_keys: list[tuple[str, str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Note in the question about each host key."""

    def accept_host_key(self, host: str, key_type: str, fingerprint: str, note: str = "") -> bool:
        self.host_keys.append((host, key_type, fingerprint))
        self.notes.append(note)
        return self.accepts

    def answer(self, prompt: str, echo: bool) -> str | None:
        self.prompts.append((prompt, echo))
        return self.answers.pop(0) if self.answers else None


class LoginNode:
    """The server. Its fields may be changed between connections."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.home = directory / "home"
        self.home.mkdir()
        self.key_file = directory / "user_key"
        self.user_key = make_key(self.key_file)
        self.host_keys: list[paramiko.PKey] = [make_key(directory / "host_key")]
        self.known_hosts = directory / "known_hosts"
        self.factors: Sequence[str] = ("publickey",)
        self.rounds: Sequence[Sequence[str | bytes]] = (("Password: ",),)
        """Questions of each round. The answer to one that names Enter is empty and echoed."""
        self.codes: list[str] = []
        """One-time codes, each valid for one login."""
        self.max_sessions = 10
        self.banner = ""
        self.shell_prints = ""
        """Output of the login shell before each command, as from a `.bashrc`."""
        self.startup_file = ""
        """Commands of a start-up file of the login shell, run before each command."""
        self.ciphers: tuple[str, ...] = ()
        """The only ciphers that the server has; empty: all that paramiko has."""
        self.instructions = ""
        """Instructions in each round of questions."""
        self.refuse_exec = False
        self.tells_exit_code_early = False
        self.answering = threading.Event()
        self.answering.set()
        self.offered: list[tuple[str, str]] = []
        """Login attempts: (method, sent text)."""
        self.methods_asked = 0
        """Number of requests for the list of methods."""
        self.sessions_at_once = 0
        self.commands: list[bytes] = []
        """Started commands, each on its own channel."""
        self.refusals = 0
        """Number of refused sessions."""
        self.transports: list[paramiko.Transport] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.trust()
        self._stopped = threading.Event()
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def trust(self) -> None:
        lines = (f"[127.0.0.1]:{self.port} {key.get_name()} {key.get_base64()}\n" for key in self.host_keys)
        self.known_hosts.write_text("".join(lines))

    def profile(self) -> SlurmProfile:
        return SlurmProfile(
            name="node",
            host="127.0.0.1",
            port=self.port,
            user="operator",
            account="demo",
            partition="batch",
            install_dir=str(self.home),
            identity_file=str(self.key_file),
            known_hosts=str(self.known_hosts),
            ssh_config=NO_SSH_CONFIG,
        )

    def cut(self) -> None:
        """Break all connections at once, as a network failure does."""
        for transport in self.transports:
            transport.close()

    def close(self) -> None:
        self.answering.set()
        self._stopped.set()
        self._accepting.join()
        self._socket.close()
        self.cut()

    def _accept(self) -> None:
        self._socket.settimeout(0.05)
        while not self._stopped.is_set():
            try:
                connection, _ = self._socket.accept()
            except TimeoutError:
                continue
            server = _Server(self)
            transport = AnsweringTransport(connection, server.start_asked)
            for key in self.host_keys:
                transport.add_server_key(key)
            if self.ciphers:
                transport.get_security_options().ciphers = self.ciphers
            self.transports.append(transport)
            with contextlib.suppress(paramiko.SSHException, EOFError, OSError):
                transport.start_server(event=threading.Event(), server=server)


class _Server(paramiko.ServerInterface):
    def __init__(self, node: LoginNode) -> None:
        self._node = node
        self._banner = node.banner
        self._passed = 0
        self._welcome: set[str] = set()
        self._round = 0
        self._sessions = 0
        self._asked: dict[int, bytes] = {}

    def get_banner(self) -> tuple[str | None, str | None]:
        """OpenSSH sends its banner once, however many attempts follow."""
        banner, self._banner = self._banner, ""
        return (banner, "en") if banner else (None, None)

    def get_allowed_auths(self, _username: str) -> str:
        # A key that the client only asks about counts as accepted, with paramiko as the server.
        return self._node.factors[min(self._passed, len(self._node.factors) - 1)]

    def check_auth_none(self, _username: str) -> int:
        self._node.methods_asked += 1
        return AUTH_FAILED

    def check_auth_publickey(self, _username: str, key: paramiko.PKey) -> int:
        """A client may ask about a key before it uses it: both requests arrive here."""
        self._node.offered.append(("publickey", key.get_base64()))
        if key.get_base64() in self._welcome:
            return self._verdict()
        if key == self._node.user_key and "publickey" in self._node.factors[self._passed]:
            self._welcome.add(key.get_base64())
        return self._outcome("publickey", key == self._node.user_key)

    def check_auth_password(self, _username: str, password: str) -> int:
        self._node.offered.append(("password", password))
        return self._outcome("password", password == PASSWORD)

    def check_auth_interactive(self, username: str, _submethods: str) -> int | InteractiveQuery:
        if "keyboard-interactive" not in self.get_allowed_auths(username):
            return AUTH_FAILED
        self._round = 0
        return self._query()

    def check_auth_interactive_response(self, responses: list[str]) -> int | InteractiveQuery:
        prompts = self._node.rounds[self._round]
        for prompt, response in zip(prompts, responses, strict=True):
            self._node.offered.append(("keyboard-interactive", response))
            if not self._is_right(prompt, response):
                return self._outcome("keyboard-interactive", False)
        self._round += 1
        if self._round < len(self._node.rounds):
            return self._query()
        return self._outcome("keyboard-interactive", True)

    def check_channel_request(self, _kind: str, _chanid: int) -> int:
        self._node.answering.wait()
        if self._sessions >= self._node.max_sessions:
            self._node.refusals += 1
            return OPEN_FAILED_CONNECT_FAILED
        self._sessions += 1
        self._node.sessions_at_once = max(self._node.sessions_at_once, self._sessions)
        return OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        if self._node.refuse_exec:
            return False
        self._asked[channel.chanid] = command
        self._node.commands.append(command)
        return True

    def start_asked(self, channel: paramiko.Channel) -> None:
        """Start the requested command on the channel."""
        command = self._asked.pop(channel.chanid, None)
        if command is not None:
            threading.Thread(target=self._execute, args=(channel, command), daemon=True).start()

    def _query(self) -> InteractiveQuery:
        prompts = ((cast("str", prompt), "Enter" in str(prompt)) for prompt in self._node.rounds[self._round])
        return InteractiveQuery("", self._node.instructions, *prompts)

    def _is_right(self, prompt: str | bytes, response: str) -> bool:
        if "Password" in str(prompt):
            return response == PASSWORD
        if "Enter" in str(prompt):
            return response == ""
        if response in self._node.codes:
            self._node.codes.remove(response)
            return True
        return False

    def _outcome(self, method: str, right: bool) -> int:
        if not right or method not in self._node.factors[self._passed]:
            return AUTH_FAILED
        self._passed += 1
        return self._verdict()

    def _verdict(self) -> int:
        if self._passed == len(self._node.factors):
            return AUTH_SUCCESSFUL
        return AUTH_PARTIALLY_SUCCESSFUL

    def _execute(self, channel: paramiko.Channel, command: bytes) -> None:
        startup = f"{self._node.startup_file}printf %s {shlex.quote(self._node.shell_prints)}"
        process = subprocess.Popen(
            ["/bin/sh", "-c", f"{startup}; {command.decode()}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self._node.home,
            env={**os.environ, "HOME": str(self._node.home)},
        )
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        outputs = [
            threading.Thread(target=_copy, args=(process.stdout.fileno(), channel.sendall), daemon=True),
            threading.Thread(target=_copy, args=(process.stderr.fileno(), channel.sendall_stderr), daemon=True),
        ]
        for thread in outputs:
            thread.start()
        threading.Thread(target=_feed, args=(channel, process.stdin), daemon=True).start()
        if self._node.tells_exit_code_early:
            channel.send_exit_status(0)
        for thread in outputs:
            thread.join()
        exit_code = process.wait()
        process.stdout.close()
        process.stderr.close()
        self._sessions -= 1
        with contextlib.suppress(paramiko.SSHException, EOFError, OSError):
            channel.shutdown_write()
            if exit_code >= 0:
                channel.send_exit_status(exit_code)
            channel.close()


def _copy(source: int, send: Callable[[bytes], object]) -> None:
    with contextlib.suppress(paramiko.SSHException, EOFError, OSError):
        while data := os.read(source, 65536):
            send(data)


def _feed(channel: paramiko.Channel, stdin: IO[bytes]) -> None:
    with contextlib.suppress(paramiko.SSHException, EOFError, OSError):
        while data := channel.recv(65536):
            stdin.write(data)
            stdin.flush()
    with contextlib.suppress(OSError):
        stdin.close()
