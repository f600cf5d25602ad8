"""The socket to a host: over TCP, through the host before it on the way, or through a proxy command."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import socket
import subprocess
import threading

import paramiko

from llmb_tui.cluster.failures import Unreachable
from llmb_tui.cluster.ssh.channels import LINK_ERRORS, close_quietly
from llmb_tui.cluster.ssh.openssh import HostSettings
from llmb_tui.cluster.tcp import connect_tcp
from llmb_tui.language.quantities import duration
from llmb_tui.language.text import clean, clean_line

_END_S = 2.0
_WORDS_KEPT = 4096

# Reasons that a server gives for a channel that it does not open (RFC 4254, 5.1).
_PROHIBITED = 1
_CONNECT_FAILED = 2


def open_tcp(settings: HostSettings) -> socket.socket:
    """A TCP connection to a host. Raises Unreachable."""
    try:
        sock = connect_tcp(settings.host, settings.port, settings.connect_deadline_s)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except (OSError, OverflowError, UnicodeError) as error:
        raise _unreachable(settings, error) from error
    return sock


class Through:
    """A connection that the host before it makes to a host, as far as a transport needs a socket."""

    def __init__(self, channel: paramiko.Channel) -> None:
        self._channel = channel
        self.settimeout = channel.settimeout
        self.recv = channel.recv
        self.send = channel.send

    @property
    def _closed(self) -> bool:
        """Paramiko looks at this, of a socket as of a channel."""
        return self._channel.closed

    @property
    def has_ended(self) -> bool:
        """The other end has closed."""
        return bool(self._channel.closed or self._channel.eof_received)

    def close(self) -> None:
        """Unlike a channel's own, it may be called when the connection below has ended."""
        close_quietly(self._channel)


def open_through(before: paramiko.Transport, via: HostSettings, settings: HostSettings) -> Through:
    """A connection to a host, made by the host before it on the way. Raises Unreachable."""
    place = (settings.host, settings.port)
    try:
        channel = before.open_channel("direct-tcpip", place, ("127.0.0.1", 0), timeout=settings.connect_deadline_s)
    except paramiko.ChannelException as refusal:
        why = {
            _PROHIBITED: f"{clean(via.name)} forwards no connections, or not to there.",
            _CONNECT_FAILED: f"{clean(via.name)} does not reach it: it said {clean_line(refusal.text)!r}.",
        }.get(refusal.code, f"{clean(via.name)} refused: {clean_line(refusal.text)!r}.")
        raise Unreachable(
            f"Could not reach {settings.place}, through {clean(via.name)}.",
            why,
            "Check the host name as the jump host knows it, and ask its administrators whether it may forward.",
        ) from refusal
    except LINK_ERRORS as error:
        raise Unreachable(
            f"Could not reach {settings.place}, through {clean(via.name)}.",
            "The connection to the jump host broke, or it gave no answer.",
            "Check the network, and try again.",
        ) from error
    return Through(channel)


class ProxyCommand:
    """A command of the user's own whose stdin and stdout are the connection; `socket` is our end of it.

    As with ssh the user's shell runs it. It has a session of its own, so that it cannot ask at the terminal. One that
    does not end with its stdin ends with the program, where nobody has closed it.
    """

    def __init__(self, command: str) -> None:
        """Raises Unreachable when it cannot be started."""
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
                raise Unreachable(
                    "Could not start the proxy command.", f"{shell}: {error.strerror}.", "Check the variable SHELL."
                ) from error
        atexit.register(self._signal, signal.SIGTERM)
        self._listener = threading.Thread(target=self._listen, args=(words,), daemon=True)
        self._listener.start()

    @property
    def last_words(self) -> str:
        """The last line that it said on stderr, clean; what it says while it ends is waited for."""
        self._listener.join(_END_S)
        lines = self._words.decode(errors="replace").strip().splitlines()
        return clean_line(lines[-1]) if lines else ""

    def close(self) -> None:
        """End the command, and what it started."""
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


def _unreachable(settings: HostSettings, error: Exception) -> Unreachable:
    what = f"Could not reach {settings.place}."
    if isinstance(error, (socket.gaierror, UnicodeError)):
        return Unreachable(
            what, f"The name is not known. {settings.source}", "Check the host name, and that the VPN is up."
        )
    if isinstance(error, ConnectionRefusedError):
        return Unreachable(what, "Nothing listens on this port.", "Check the port, and that it is a login node.")
    if isinstance(error, TimeoutError):
        why = f"No answer within {duration(settings.connect_deadline_s)}."
        return Unreachable(what, why, "Check that the VPN is up, and that no firewall is in between.")
    why = getattr(error, "strerror", None) or clean(str(error)) or "The connection was closed"
    return Unreachable(
        what, f"{why.rstrip('.')}.", "Check the network; `ssh` to the host in another terminal shows more."
    )
