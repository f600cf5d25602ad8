"""`Heartbeat`: notices within 15 seconds that an SSH connection is dead, however silently it died.

Every few seconds sshd itself is asked something that it must answer. That takes no channel and starts nothing, so
that a login node whose Slurm controller hangs, or whose every session is taken, still answers.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import paramiko
from paramiko.packet import Packetizer

from llmb_tui.cluster.link import Pulse

# Together with one look these are how long a dead link stays unnoticed at most: below 15 s.
_ASK_EVERY_S = 5.0
_PATIENCE_S = 8.0
_LOOK_EVERY_S = 0.5

# What waits for bytes wakes up this often to see whether anything else is to be done; paramiko's own tenth of a second
# costs as much as all else of a connection on which nothing happens.
_LISTENS_S = 1.0

# A look that comes this late was kept from the processor, and so was the thread that receives.
_STARVED_S = 3.0

_REQUEST = "keepalive@openssh.com"


class HeardTransport(paramiko.Transport):
    """A transport that knows when it last received anything.

    Bytes count, not messages: over a slow line an answer waits behind a window full of output.
    """

    def __init__(self, sock: Any) -> None:
        self._ear = _Ear(sock)
        super().__init__(sock, packetizer_class=lambda _: Packetizer(self._ear))  # type: ignore[arg-type]
        sock.settimeout(_LISTENS_S)

    @property
    def heard_at(self) -> float:
        """Monotonic time."""
        return self._ear.heard_at

    def listen_after(self, wait: Callable[[], None]) -> None:
        """Call `wait` before each look at what came: what it waits for goes before this transport's bytes."""
        self._ear.wait = wait


class Heartbeat:
    """Asks while the transport lives, and closes it when no answer comes."""

    def __init__(self, transport: HeardTransport, on_beat: Callable[[], None], on_end: Callable[[], None]) -> None:
        """Begins at once, in threads of its own, which end with the transport.

        `on_beat` is called before each question, `on_end` once, at the end.
        """
        self._transport = transport
        self._on_beat = on_beat
        self._on_end = on_end
        self._round_trip_s: float | None = None
        self._asked_at: float | None = None
        self._awake_at = 0.0
        for part in (self._ask, self._watch):
            threading.Thread(target=part, name="ssh-heartbeat", daemon=True).start()

    @property
    def pulse(self) -> Pulse:
        """What is known at this moment."""
        now = time.monotonic()
        return Pulse(self._round_trip_s, max(0.0, now - self._transport.heard_at), self._awaited_s(now))

    def _ask(self) -> None:
        """A thread: it waits as long as an answer takes, and even sending may wait when the line hangs."""
        while self._transport.is_active():
            asked_at = self._asked_at = time.monotonic()
            # What fails here has failed for everybody: the transport ends, or no answer is heard.
            with contextlib.suppress(paramiko.SSHException, EOFError, OSError):
                self._on_beat()
                self._transport.global_request(_REQUEST)
                self._round_trip_s = time.monotonic() - asked_at
                self._asked_at = None
            self._transport.join(_ASK_EVERY_S)

    def _watch(self) -> None:
        looked_at = time.monotonic()
        while self._transport.is_active():
            self._transport.join(_LOOK_EVERY_S)
            now = time.monotonic()
            if now - looked_at > _STARVED_S:
                self._awake_at = now
            looked_at = now
            if self._awaited_s(now) > _PATIENCE_S:
                self._transport.close()
        self._on_end()

    def _awaited_s(self, now: float) -> float:
        asked_at = self._asked_at
        return 0.0 if asked_at is None else max(0.0, now - max(asked_at, self._transport.heard_at, self._awake_at))


class _Ear:
    """As much of a socket as paramiko's packets need: `recv`, `send`, `close`."""

    def __init__(self, sock: Any) -> None:
        self._sock = sock
        self._recv = sock.recv
        self.send = sock.send
        self.wait: Callable[[], None] = lambda: None
        self.heard_at = time.monotonic()

    def close(self) -> None:
        """Of a socket the end alone would not wake who waits for its bytes."""
        if isinstance(self._sock, socket.socket):
            with contextlib.suppress(OSError):
                self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()

    def recv(self, size: int) -> bytes:
        self.wait()
        data: bytes = self._recv(size)
        self.heard_at = time.monotonic()
        return data
