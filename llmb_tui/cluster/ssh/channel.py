"""What goes through one exec channel: its deadline, its stdin and its output."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

import paramiko

LINK_ERRORS = (paramiko.SSHException, EOFError, OSError)
"""What paramiko raises when a link breaks or a server refuses."""

CHUNK = 1 << 20


class Feeder(threading.Thread):
    """Writes a command's stdin while its output is read, so that neither side waits for the other."""

    def __init__(self, channel: paramiko.Channel, data: bytes) -> None:
        super().__init__(name="ssh-stdin", daemon=True)
        self._channel = channel
        self._data = data

    def run(self) -> None:
        """Write everything, then the end. A command that ends earlier or a broken link ends it too."""
        with contextlib.suppress(*LINK_ERRORS):
            for start in range(0, len(self._data), CHUNK):
                self._channel.sendall(self._data[start : start + CHUNK])
            self._channel.shutdown_write()


def drain(channel: paramiko.Channel) -> tuple[bytes, bytes]:
    """Everything that comes on stdout and stderr until both end. Raises one of LINK_ERRORS when some of it is lost."""
    stderr: list[bytes] = []
    lost: list[Exception] = []

    def read_stderr() -> None:
        try:
            stderr.append(_read_all(channel.recv_stderr))
        except LINK_ERRORS as error:
            lost.append(error)

    reader = threading.Thread(target=read_stderr, name="ssh-stderr", daemon=True)
    reader.start()
    stdout = _read_all(channel.recv)
    reader.join()
    if lost:
        raise lost[0]
    return stdout, stderr[0]


@contextlib.contextmanager
def closing_at(channel: paramiko.Channel, ends: float) -> Iterator[threading.Event]:
    """Close the channel at the monotonic time `ends` if the block is not done by then; the event says that it was.

    Some of paramiko's waits have no timeout of their own; all of them end when the channel does.
    """
    closed = threading.Event()

    def close() -> None:
        closed.set()
        close_quietly(channel)

    timer = threading.Timer(max(0.0, ends - time.monotonic()), close)
    timer.daemon = True
    timer.start()
    try:
        yield closed
    finally:
        timer.cancel()


def close_quietly(channel: paramiko.Channel) -> None:
    """Close a channel, on whatever is left of its link."""
    with contextlib.suppress(*LINK_ERRORS):
        channel.close()


def _read_all(receive: Callable[[int], bytes]) -> bytes:
    chunks = []
    while chunk := receive(CHUNK):
        chunks.append(chunk)
    return b"".join(chunks)
