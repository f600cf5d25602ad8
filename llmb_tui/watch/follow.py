"""`Follower`: a log on the cluster → an append-only local copy, no byte dropped and none doubled.

The offset is always the size of the local copy. Before bytes are added to it, at every beginning and from
time to time, it is proved that the remote file still begins with what the copy holds: same inode, not
shorter, same checksum of the last block.
"""

from __future__ import annotations

import fcntl
import os
import time
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from llmb_tui.errors import Trouble
from llmb_tui.store.files import make_private_directory
from llmb_tui.text import clean_line

if TYPE_CHECKING:
    from llmb_tui.cluster.channel import Stream
    from llmb_tui.cluster.session import Session

_BLOCK = 1 << 16
_LOOK_EVERY_S = 2.0
"""How often a file that is not there yet, or that another process here copies, is looked for."""
_PROVE_EVERY_S = 30.0

# Inode, size and, from $2 on, the checksum of $3 bytes.
_PROOF = """
[ -e "$1" ] || exit 44
ls -Li "$1" && wc -c < "$1" && tail -c "+$2" "$1" | head -c "$3" | cksum
"""
_MISSING = 44

# The end of stdin ends it: a channel that closes leaves nothing behind, even where tail only writes to nobody.
# GNU tail looks once a second unless told otherwise; others look often enough and have no -s.
_TAIL = """
every=
if tail --version > /dev/null 2>&1; then every="-s 0.5"; fi
exec 3<&0
tail $every -c "+$2" -f "$1" &
tail=$!
{ cat <&3; kill "$tail"; } > /dev/null 2>&1 &
wait "$tail"
"""


class LogReplaced(Trouble):
    """The remote log is no longer the file that was copied. The copy is kept and nothing more is added to it."""


class _Remote(NamedTuple):
    inode: str
    size: int
    checksum: str


class Follower:
    """Copies one remote file while it grows.

    One process at a time copies: a second one on this machine only sees the copy grow, and takes over when the
    first one ends. Not for use by several threads at once.
    """

    def __init__(self, session: Session, remote_path: str, local_path: Path) -> None:
        self._session = session
        self._remote_path = remote_path
        self._local_path = local_path
        self._fd: int | None = None
        self._copies = False
        self._stream: Stream | None = None
        self._inode: str | None = None
        self._known = _Remote("", 0, "")
        self._size_when_proved = 0
        self._next_look = 0.0
        self._next_proof = 0.0

    def pump(self, timeout_s: float) -> int:
        """Bytes that the local copy gained, after waiting for at most `timeout_s` or as long as a command takes.

        Raises LogReplaced; Disconnected and what else a `Session` raises, after which it may be called again;
        and Trouble when the copy cannot be written.
        """
        before = self._local_size()
        if not self._may_copy():
            time.sleep(timeout_s)
            return self._local_size() - before
        try:
            return self._copy(timeout_s)
        except BaseException:
            self._end_stream()
            raise

    def behind(self) -> int:
        """Bytes that the remote file holds at this moment and the copy does not; 0 if there is no such file.

        Raises as `pump` does.
        """
        remote = self._prove()
        return 0 if remote is None else max(0, remote.size - self._local_size())

    def close(self) -> None:
        """End the remote command and let go of the local copy."""
        self._end_stream()
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
            self._copies = False

    def _copy(self, timeout_s: float) -> int:
        if self._stream is None and not self._begin(timeout_s):
            return 0
        assert self._stream is not None  # noqa: S101 - for the type checker: _begin has just made it
        data = self._stream.read(timeout_s)
        if data == b"":  # tail has ended: killed, or the file system went away
            self._end_stream()
            self._next_look = time.monotonic() + _LOOK_EVERY_S
            return 0
        # tail starts anew on a file that was cut short, and says so: look before its bytes are taken.
        if time.monotonic() >= self._next_proof or "truncated" in self._stream.stderr:
            self._check_on_stream()
        if data:
            self._append(data)
        return len(data or b"")

    def _begin(self, timeout_s: float) -> bool:
        """Start the remote command if there is a file to copy."""
        wait = self._next_look - time.monotonic()
        if wait > 0:
            time.sleep(min(wait, timeout_s))
            return False
        if self._prove() is None:
            self._next_look = time.monotonic() + _LOOK_EVERY_S
            return False
        offset = self._local_size()
        self._stream = self._session.stream(["sh", "-c", _TAIL, "sh", self._remote_path, str(offset + 1)])
        return True

    def _check_on_stream(self) -> None:
        """Prove again; and begin again where the file has long had more than comes."""
        stalled = self._local_size() == self._size_when_proved < self._known.size
        self._prove()
        if stalled:
            self._end_stream()

    def _prove(self) -> _Remote | None:
        """What the remote file is now, None if there is none. Raises LogReplaced."""
        size = self._local_size()
        length = min(size, _BLOCK)
        remote = self._look(size - length, length)
        self._next_proof = time.monotonic() + _PROVE_EVERY_S
        if remote is None:
            return None
        if self._inode is not None and remote.inode != self._inode:
            raise self._replaced("It is another file than before.")
        if remote.size < size:
            raise self._replaced(f"It has {remote.size} bytes, and {size} are copied already.")
        if length and remote.checksum != cksum(self._read(size - length, length)):
            raise self._replaced("It begins with other bytes than the copy.")
        self._inode, self._known, self._size_when_proved = remote.inode, remote, size
        return remote

    def _look(self, start: int, length: int) -> _Remote | None:
        done = self._session.run_script(_PROOF, [self._remote_path, str(start + 1), str(length)])
        if done.exit_code == _MISSING:
            return None
        lines = done.stdout.split("\n")
        try:
            return _Remote(lines[0].split()[0], int(lines[1]), " ".join(lines[2].split()))
        except (IndexError, ValueError):
            why = clean_line(done.stderr.strip().partition("\n")[0]) or "The cluster gave no reason."
            raise Trouble(f"The log {clean_line(self._remote_path)} cannot be read.", why) from None

    def _replaced(self, why: str) -> LogReplaced:
        return LogReplaced(
            f"The remote log {clean_line(self._remote_path)} was replaced.",
            why,
            f"The copy is kept as it was: {self._local_path}. Read the new log on the cluster.",
        )

    def _may_copy(self) -> bool:
        """True if this is the one process that adds to the local copy."""
        if not self._copies:
            try:
                fcntl.flock(self._open(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            except OSError:
                pass  # a file system without locks
            self._copies = True
        return True

    def _open(self) -> int:
        if self._fd is None:
            make_private_directory(self._local_path.parent)
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._fd = os.open(self._local_path, flags, 0o600)
        return self._fd

    def _local_size(self) -> int:
        return os.fstat(self._open()).st_size

    def _read(self, start: int, length: int) -> bytes:
        return os.pread(self._open(), length, start)

    def _append(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._open(), view) :]
        except OSError as error:
            raise Trouble(
                f"The log's copy {self._local_path} cannot be written.",
                f"{error.strerror}.",
                "Free space on this machine; copying goes on where it stopped.",
            ) from error

    def _end_stream(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None


_MIRRORED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def cksum(data: bytes) -> str:
    """What POSIX `cksum` prints: its CRC is zlib's with the bits of each byte mirrored, over data and length."""
    length = len(data)
    mirrored = (data + length.to_bytes((length.bit_length() + 7) // 8, "little")).translate(_MIRRORED)
    crc = zlib.crc32(mirrored, 0xFFFFFFFF) ^ 0xFFFFFFFF
    return f"{int(f'{crc:032b}'[::-1], 2) ^ 0xFFFFFFFF} {length}"
