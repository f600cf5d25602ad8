"""`Heartbeat`: closes an SSH connection within 15 seconds after the server fell silent.

Every few seconds it sends a request that sshd itself must answer. The request needs no channel and no process, so a
login node answers even if its Slurm controller hangs or all its sessions are in use.
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

ASK_EVERY_S = 5.0
PATIENCE_S = 8.0
CHECK_EVERY_S = 0.5
"""Interval of requests, longest wait for an answer, and interval of checks meanwhile, seconds. Their sum is the longest
time until a dead link is noticed: less than 15 s."""

LISTENS_S = 1.0
"""A thread that waits for bytes wakes up at this interval, seconds, for other work. Paramiko's own interval of 0.1 s
costs as much processor time as the rest of an idle connection."""

# A check that is this late did not get the processor, and neither did the receiving thread.
_STARVED_S = 3.0

_REQUEST = "keepalive@openssh.com"


class HeardTransport(paramiko.Transport):
    """A transport that records when it last received bytes.

    It counts bytes, not messages: on a slow line an answer waits behind a window full of output.
    """

    def __init__(self, sock: Any) -> None:
        self._observed = _ObservedSocket(sock)
        super().__init__(sock, packetizer_class=lambda _: Packetizer(self._observed))  # type: ignore[arg-type]
        sock.settimeout(LISTENS_S)

    @property
    def heard_at(self) -> float:
        """Monotonic time of the last received byte."""
        return self._observed.heard_at

    def listen_after(self, wait: Callable[[], None]) -> None:
        """Call `wait` before each read of received bytes, to give other work priority."""
        self._observed.wait = wait


class Heartbeat:
    """Sends requests while the transport is active, and closes it if no answer comes."""

    def __init__(self, transport: HeardTransport, on_beat: Callable[[], None], on_end: Callable[[], None]) -> None:
        """Start at once, in threads that end with the transport.

        `on_beat` is called before each request, `on_end` once, at the end.
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
        """Present response times."""
        now = time.monotonic()
        return Pulse(self._round_trip_s, max(0.0, now - self._transport.heard_at), self._awaited_s(now))

    def _ask(self) -> None:
        """Send requests, in a thread: waiting for the answer, and even sending, may block if the line hangs."""
        while self._transport.is_active():
            asked_at = self._asked_at = time.monotonic()
            # An error here affects the whole transport: it ends, or `_watch` notices the missing answer.
            with contextlib.suppress(paramiko.SSHException, EOFError, OSError):
                self._on_beat()
                self._transport.global_request(_REQUEST)
                self._round_trip_s = time.monotonic() - asked_at
                self._asked_at = None
            self._transport.join(ASK_EVERY_S)

    def _watch(self) -> None:
        checked_at = time.monotonic()
        while self._transport.is_active():
            self._transport.join(CHECK_EVERY_S)
            now = time.monotonic()
            if now - checked_at > _STARVED_S:
                self._awake_at = now
            checked_at = now
            if self._awaited_s(now) > PATIENCE_S:
                self._transport.close()
        self._on_end()

    def _awaited_s(self, now: float) -> float:
        asked_at = self._asked_at
        return 0.0 if asked_at is None else max(0.0, now - max(asked_at, self._transport.heard_at, self._awake_at))


class _ObservedSocket:
    """The part of a socket that paramiko's packets need: `recv`, `send`, `close`."""

    def __init__(self, sock: Any) -> None:
        self._sock = sock
        self._recv = sock.recv
        self.send = sock.send
        self.wait: Callable[[], None] = lambda: None
        self.heard_at = time.monotonic()

    def close(self) -> None:
        """Close the socket. Without the shutdown, a thread that waits for its bytes would not wake up."""
        if isinstance(self._sock, socket.socket):
            with contextlib.suppress(OSError):
                self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()

    def recv(self, size: int) -> bytes:
        self.wait()
        data: bytes = self._recv(size)
        self.heard_at = time.monotonic()
        return data
