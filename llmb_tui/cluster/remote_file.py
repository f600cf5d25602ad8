"""`RemoteFile`, `FileTail`, `JobOutput`: interfaces to the files that a job writes on a cluster."""

from __future__ import annotations

import zlib
from typing import NamedTuple, Protocol

from llmb_tui.errors import LlmbError


class Sample(NamedTuple):
    """Parts of a file that are compared: its first `head` bytes, and `length` bytes at the offset `start`."""

    head: int
    start: int
    length: int


class Proof(NamedTuple):
    """Identity of a remote file at one moment."""

    inode: str
    size: int
    checksum: str
    """Checksum of the requested sample, in the form of POSIX `cksum`."""
    is_rotated: bool = False
    """The file has lost its beginning, but contains the known bytes. In this case there is no checksum."""


class OutputUnreachableError(LlmbError):
    """A job's output cannot be read from this machine, now or later."""


class UnreadableFileError(LlmbError):
    """A remote file was removed, or its permissions forbid reading; other files may be readable."""


class DamagedDataError(UnreadableFileError):
    """The bytes of a `FileTail` do not have their checksum: any byte that it has returned may be wrong."""


class FileTail(Protocol):
    """Reader of a remote file from an offset, which returns bytes as they arrive. Close it after use."""

    changed: bool
    """True if the file was removed or replaced, or has other bytes before the position of the reader."""
    proof: Proof | None
    """Identity of the file when reading began; None if it does not exist."""

    @property
    def fills_gap(self) -> bool:
        """True if this reader ends at the size that the file had at its beginning; another reader continues."""

    def read(self, timeout_s: float) -> bytes | None:
        """The next bytes; None if none came within `timeout_s`; b"" at the end. Raises LlmbError, DamagedDataError."""

    def close(self) -> None:
        """Close the reader."""


class RemoteFile(Protocol):
    """The file at one path on the cluster, where another file may appear later."""

    path: str
    """Path to show; not clean."""

    def prove(self, sample: Sample, known: bytes) -> Proof | None:
        """Read the identity of the file, with the checksum of a sample; None if the file does not exist.

        `known`: the last bytes of the sample. Raises the errors of `Cluster`, and LlmbError if the file cannot be read.
        """

    def tail(self, sample: Sample, offset: int, known: bytes) -> FileTail:
        """Start reading at `offset`, with the same proof as `prove`. `known`: the bytes before the offset.

        Raises the errors of `prove`.
        """


class JobOutput(Protocol):
    """Files that a job writes, by start of the job."""

    one_for_all: bool
    """True if all starts of the job write to the same file: each appends to it, or overwrites it."""
    may_come_back: bool
    """True if a missing log may appear again, for example after its file system was away."""

    def starts(self) -> list[int]:
        """Restarts of the job that have their own log, ascending. Raises the errors of `RemoteFile.prove`."""

    def log(self, restart: int) -> RemoteFile:
        """Training log of one start of the job."""

    def other_output(self, most: int) -> bytes:
        """Ends of the job's other files, `most` bytes of each; may be empty. Raises the errors of `prove`."""


_MIRRORED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def cksum(data: bytes) -> str:
    """Compute the output of POSIX `cksum`: zlib's CRC over data and length, with the bits of each byte mirrored."""
    length = len(data)
    mirrored = (data + length.to_bytes((length.bit_length() + 7) // 8, "little")).translate(_MIRRORED)
    crc = zlib.crc32(mirrored, 0xFFFFFFFF) ^ 0xFFFFFFFF
    return f"{int(f'{crc:032b}'[::-1], 2) ^ 0xFFFFFFFF} {length}"
