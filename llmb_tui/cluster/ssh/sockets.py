"""Sockets to a host: over TCP, forwarded by a jump host, or through a proxy command."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import socket
import subprocess
import threading

import paramiko

from llmb_tui.cluster.failures import UnreachableError
from llmb_tui.cluster.ssh.channels import LINK_ERRORS, close_quietly
from llmb_tui.cluster.ssh.openssh import HostSettings
from llmb_tui.cluster.tcp import connect_tcp
from llmb_tui.language.quantities import duration
from llmb_tui.language.redact import server_words
from llmb_tui.language.text import clean, clean_line

_END_S = 2.0
_WORDS_KEPT = 4096

# Codes of a server that refuses to open a channel (RFC 4254, 5.1).
_PROHIBITED = 1
_CONNECT_FAILED = 2


def open_tcp(settings: HostSettings) -> socket.socket:
    """Open a TCP connection to a host. Raises UnreachableError."""
    try:
        sock = connect_tcp(settings.host, settings.port, settings.connect_deadline_s)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except (OSError, OverflowError, UnicodeError) as error:
        raise _unreachable(settings, error) from error
    return sock


class ForwardedSocket:
    """A connection that a jump host forwards, with the methods of a socket that a transport needs."""

    def __init__(self, channel: paramiko.Channel) -> None:
        self._channel = channel
        self.settimeout = channel.settimeout
        self.recv = channel.recv
        self.send = channel.send

    @property
    def _closed(self) -> bool:
        """Attribute that paramiko reads of a socket and of a channel."""
        return self._channel.closed

    @property
    def has_ended(self) -> bool:
        """True if the other end has closed the connection."""
        return bool(self._channel.closed or self._channel.eof_received)

    def close(self) -> None:
        """Close the channel, even if the connection of the jump host has ended."""
        close_quietly(self._channel)


def open_through(before: paramiko.Transport, via: HostSettings, settings: HostSettings) -> ForwardedSocket:
    """Open a connection to a host through the jump host before it. Raises UnreachableError."""
    place = (settings.host, settings.port)
    try:
        channel = before.open_channel("direct-tcpip", place, ("127.0.0.1", 0), timeout=settings.connect_deadline_s)
    except paramiko.ChannelException as refusal:
        why = {
            _PROHIBITED: f"{clean(via.name)} does not forward connections to this host.",
            _CONNECT_FAILED: f"{clean(via.name)} could not connect to it: {clean_line(server_words(refusal.text))!r}.",
        }.get(refusal.code, f"{clean(via.name)} refused: {clean_line(server_words(refusal.text))!r}.")
        raise UnreachableError(
            f"Could not reach {settings.place}, through {clean(via.name)}.",
            why,
            "Check that the jump host knows this name, and ask its administrators whether it forwards connections.",
        ) from refusal
    except LINK_ERRORS as error:
        raise UnreachableError(
            f"Could not reach {settings.place}, through {clean(via.name)}.",
            "The connection to the jump host broke, or the jump host did not answer.",
            "Check the network, and try again.",
        ) from error
    return ForwardedSocket(channel)


class ProxyCommand:
    """The user's proxy command, whose stdin and stdout are the connection; `socket` is the end for this program.

    As in `ssh`, the user's shell runs the command. It has its own session, so that it cannot ask at the terminal. If it
    is not closed, it is ended with this program.
    """

    def __init__(self, command: str) -> None:
        """Raises UnreachableError if the command cannot be started."""
        self.socket, theirs = socket.socketpair()
        self._words = b""
        words, stderr = os.pipe()
        shell = os.environ.get("SHELL") or "/bin/sh"
        with theirs, open(stderr, "wb"):
            try:
                self._process = subprocess.Popen(
                    [shell, "-c", f"exec {command}"],
                    stdin=theirs.fileno(),
                    stdout=theirs.fileno(),
                    stderr=stderr,
                    start_new_session=True,
                )
            except OSError as error:
                self.socket.close()
                os.close(words)
                raise UnreachableError(
                    "Could not start the proxy command.", f"{shell}: {error.strerror}.", "Check the variable SHELL."
                ) from error
        atexit.register(self._signal, signal.SIGTERM)
        self._listener = threading.Thread(target=self._listen, args=(words,), daemon=True)
        self._listener.start()

    @property
    def last_line(self) -> str:
        """Last line of its stderr, clean. Waits at most 2 seconds for the end of stderr."""
        self._listener.join(_END_S)
        lines = self._words.decode(errors="replace").strip().splitlines()
        return clean_line(server_words(lines[-1])) if lines else ""

    def close(self) -> None:
        """End the command and the processes that it started."""
        self.socket.close()
        for kind in (signal.SIGTERM, signal.SIGKILL):
            self._signal(kind)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_S)
                break
        atexit.unregister(self._signal)

    def _signal(self, kind: signal.Signals) -> None:
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, kind)

    def _listen(self, words: int) -> None:
        with open(words, "rb", buffering=0) as stderr:
            while chunk := stderr.read(_WORDS_KEPT):
                self._words = (self._words + chunk)[-_WORDS_KEPT:]


def _unreachable(settings: HostSettings, error: Exception) -> UnreachableError:
    what = f"Could not reach {settings.place}."
    if isinstance(error, (socket.gaierror, UnicodeError)):
        return UnreachableError(
            what, f"The host name is unknown. {settings.source}", "Check the host name, and that the VPN is up."
        )
    if isinstance(error, ConnectionRefusedError):
        return UnreachableError(
            what, "The host refused the connection to this port.", "Check the host name and the port."
        )
    if isinstance(error, TimeoutError):
        why = f"The host did not answer within {duration(settings.connect_deadline_s)}."
        return UnreachableError(what, why, "Check that the VPN is up, and that a firewall does not block the port.")
    why = getattr(error, "strerror", None) or server_words(str(error)) or "The connection was closed"
    return UnreachableError(
        what, f"{why.rstrip('.')}.", "Check the network; run `ssh` to the host in another terminal for details."
    )
