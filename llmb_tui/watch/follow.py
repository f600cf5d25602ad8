"""`Follower`: copies a log on the cluster into an append-only local file; no byte is lost or copied twice.

The offset is always the size of the local copy. At every start of the remote command, and at least every 90 seconds,
the remote file must prove that it still begins with the content of the copy: same inode, not shorter, same checksum of
its first block and of the block before the offset. In between, each piece begins with bytes that the copy has.

A long gap comes compressed, with a checksum at its end. If that is wrong, the gap's bytes are removed from the copy.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from llmb_tui.cluster.failures import DisconnectedError
from llmb_tui.cluster.remote_file import (
    DamagedDataError,
    FileTail,
    Proof,
    RemoteFile,
    Sample,
    UnreadableFileError,
    cksum,
)
from llmb_tui.errors import LlmbError
from llmb_tui.language.quantities import count
from llmb_tui.language.text import clean_line
from llmb_tui.store.files import explained_errors, make_private_directory, try_lock


class LocalCopy:
    """One file, to which one process at a time appends. Not for use by several threads at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None
        self._mine = False

    @property
    def size(self) -> int:
        """Number of copied bytes."""
        return os.fstat(self._open()).st_size

    def take(self) -> bool:
        """Take the lock of the file; True if this process may append, until `close`, and no other process may.

        Without file locks, each process writes the same bytes to the same place.
        """
        self._mine = self._mine or try_lock(self._open())
        return self._mine

    def read(self, start: int, length: int) -> bytes:
        """Up to `length` bytes at an offset."""
        return os.pread(self._open(), length, start)

    def write(self, data: bytes, offset: int) -> None:
        """Write the bytes at their offset. Raises LlmbError; bytes that were written before the error count."""
        view = memoryview(data)
        try:
            while view:
                count = os.pwrite(self._open(), view, offset)
                view, offset = view[count:], offset + count
        except OSError as error:
            raise LlmbError(
                f"The log's copy {self.path} cannot be written.",
                f"{error.strerror}.",
                "Free space on this machine; copying then continues.",
            ) from error

    def cut(self, size: int) -> None:
        """Remove the bytes after this size, which were wrong. Raises LlmbError."""
        with explained_errors("write", self.path):
            os.ftruncate(self._open(), size)

    def close(self) -> None:
        """Close the file; the next `take` or `write` opens it again."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
            self._mine = False

    def _open(self) -> int:
        if self._fd is None:
            make_private_directory(self.path.parent)
            with explained_errors("write", self.path):
                self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        return self._fd


_BLOCK = 1 << 16
_RENEW_EVERY_S = 60.0
"""After this time the remote command is restarted with a proof as soon as no data arrives."""
FIRST_PAUSE_S = 2.0
LONGEST_PAUSE_S = 10.0
"""Shortest and longest pause before a file that is missing, unreadable or unwritable is tried again."""


class LogReplacedError(LlmbError):
    """The remote log is no longer the copied one. The copy is kept, and nothing more is appended to it."""


class LogMissingError(UnreadableFileError):
    """The remote log is missing although a copy exists: it was removed, or its file system is not available."""


class Follower:
    """Copies one remote file while it grows.

    One process at a time copies. A second process on this machine only sees the copy grow, and takes over when the
    first one ends. Not for use by several threads at once.
    """

    def __init__(self, remote: RemoteFile, local_path: Path) -> None:
        self._remote = remote
        self._copy = LocalCopy(local_path)
        self._tail: FileTail | None = None
        self._offset = 0
        """Offset at which the next bytes of the tail belong."""
        self._began = 0
        """Offset at which the tail began."""
        self._inode: str | None = None
        self._renew_at = 0.0
        self._pause_s = FIRST_PAUSE_S
        self._not_before = 0.0

    @property
    def copied(self) -> int:
        """Size of the local copy, bytes."""
        return self._copy.size

    @property
    def follows(self) -> bool:
        """Whether the remote file was proved to be the copied one, and its new bytes are copied."""
        return self._tail is not None

    def copy_available(self, timeout_s: float) -> int:
        """Copy new bytes, after waiting at most `timeout_s` or as long as a command takes; return their number.

        Raises LogReplacedError; DisconnectedError and the other errors of a `Session`; LlmbError if the log cannot be
        read or the copy cannot be written. After any error except LogReplacedError it may be called again.
        """
        before = self._copy.size
        wait = self._not_before - time.monotonic()
        if not self._copy.take() or wait > 0:
            time.sleep(min(wait, timeout_s) if wait > 0 else timeout_s)
            return self._copy.size - before
        try:
            self._pump(timeout_s)
        except BaseException as error:
            self._end_tail()
            if isinstance(error, LlmbError) and not isinstance(error, DisconnectedError):
                self._try_later()
            raise
        return self._copy.size - before

    def behind(self) -> int:
        """Bytes that the remote file holds at this moment and the copy lacks; 0 if there never was such a file.

        Raises LogReplacedError, LogMissingError, DisconnectedError and the other errors of a `Session`, and LlmbError
        if the log cannot be read.
        """
        size = self._copy.size
        proof = self._remote.prove(self._sample(size), self._end(size))
        if proof is None:
            if size:
                raise self._gone(size)
            return 0
        self._check(proof, size)
        return max(0, proof.size - self._copy.size)

    def retry_soon(self) -> None:
        """Try again without a pause: a file that was missing may exist now."""
        self._pause_s, self._not_before = FIRST_PAUSE_S, 0.0

    def close(self) -> None:
        """End the remote command and close the local copy."""
        self._end_tail()
        self._copy.close()

    def _pump(self, timeout_s: float) -> None:
        tail = self._tail or self._begin()
        if tail is None:
            return
        try:
            data = tail.read(timeout_s)
        except DamagedDataError:
            self._copy.cut(self._began)
            raise
        if data:
            self._copy.write(data, self._offset)
            self._offset += len(data)
        elif data == b"":  # the gap is filled, tail was killed, or the file system is not available
            if not tail.fills_gap and not tail.changed and time.monotonic() < self._renew_at:
                self._try_later()
            self._end_tail()  # if it has changed, the next proof shows how
        elif time.monotonic() >= self._renew_at:
            self._end_tail()

    def _begin(self) -> FileTail | None:
        """Start the remote command if there is a file to copy."""
        size = self._copy.size
        tail = self._tail = self._remote.tail(self._sample(size), size, self._end(size))
        if tail.proof is None:
            self._end_tail()
            self._try_later()
            if size:
                raise self._gone(size)
            return None
        self._check(tail.proof, size)
        self._offset = self._began = size
        self._pause_s = FIRST_PAUSE_S
        self._renew_at = time.monotonic() + _RENEW_EVERY_S
        return tail

    def _check(self, proof: Proof, size: int) -> None:
        """Raise LogReplacedError unless the remote file begins with the first `size` bytes of the copy."""
        if self._inode not in (None, proof.inode):
            raise self._replaced("It is another file now.")
        if proof.size < size:
            raise self._replaced(f"It was cut short to {count(proof.size)} bytes; {count(size)} are copied already.")
        head, start, length = self._sample(size)
        if not proof.is_rotated and proof.checksum != cksum(self._copy.read(0, head) + self._copy.read(start, length)):
            damaged = "" if self._inode else ", or the copy on this machine is damaged"
            raise self._replaced(f"Its beginning differs from the copy{damaged}.")
        self._inode = proof.inode

    def _end(self, size: int) -> bytes:
        """The last block of the copy."""
        return self._copy.read(max(0, size - _BLOCK), _BLOCK)

    def _sample(self, size: int) -> Sample:
        start = max(0, size - _BLOCK)
        return Sample(min(size, _BLOCK), start, size - start)

    def _replaced(self, why: str) -> LogReplacedError:
        return LogReplacedError(
            f"The remote log {clean_line(self._remote.path)} was replaced.",
            f"{why} The copy is kept, and nothing is appended to it.",
            "The new content of the log is copied into another file.",
        )

    def _gone(self, size: int) -> LogMissingError:
        return LogMissingError(
            f"The remote log {clean_line(self._remote.path)} is gone.",
            f"It was removed or renamed, or its file system is not available; the copy keeps the {count(size)} bytes "
            "that were read.",
            "Copying continues if the log comes back.",
        )

    def _try_later(self) -> None:
        self._not_before = time.monotonic() + self._pause_s
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)

    def _end_tail(self) -> None:
        if self._tail is not None:
            self._tail.close()
            self._tail = None
