"""`RemoteFile`, `FileTail`, `JobOutput`: what a job writes on a cluster, however that is read."""

from __future__ import annotations

import zlib
from typing import NamedTuple, Protocol

from llmb_tui.errors import Trouble


class Sample(NamedTuple):
    """What is compared of a file: its first `head` bytes, and `length` bytes at the offset `start`."""

    head: int
    start: int
    length: int


class Proof(NamedTuple):
    """What a remote file is at one moment."""

    inode: str
    size: int
    checksum: str
    """Of the sample that was asked for, as POSIX `cksum` prints it."""
    is_rotated: bool = False
    """Its beginning is gone, and what is known of its end was found in it; then there is no checksum."""


class OutOfReach(Trouble):
    """What a job writes cannot be read from here, now or later."""


class Unreadable(Trouble):
    """A remote file is not there any more, or may not be read; others may be."""


class FileTail(Protocol):
    """The bytes of a remote file from an offset on, as they come. To be closed."""

    changed: bool
    """It is no longer the same file: other bytes stand where reading stopped, or it is another one or gone."""
    proof: Proof | None
    """What the file was when reading began; None if there is none."""

    @property
    def fills_gap(self) -> bool:
        """It ends when it has given what the file held when it began; read on with another one."""

    def read(self, timeout_s: float) -> bytes | None:
        """The next bytes; None when none came within `timeout_s`; b"" at the end. Raises Disconnected, Trouble."""

    def close(self) -> None:
        """End it."""


class RemoteFile(Protocol):
    """The file at one place on the cluster, which may be another one later."""

    path: str
    """How it is named to a person; not clean."""

    def prove(self, sample: Sample, known: bytes) -> Proof | None:
        """What the file is, with the checksum of a sample of it; None if there is none. `known`: the sample's end.

        Raises what the cluster's questions raise, and Trouble when it cannot be read.
        """

    def tail(self, sample: Sample, offset: int, known: bytes) -> FileTail:
        """The bytes from `offset` on, before which stands what is `known`, with the same proof as `prove`.

        Raises as `prove` does.
        """


class JobOutput(Protocol):
    """What a job writes, start by start."""

    one_for_all: bool
    """Every start of the job writes to the same file: after it, or over it from its beginning."""
    may_come_back: bool
    """A log that is gone may be there again, as when its file system was away for a while."""

    def starts(self) -> list[int]:
        """The restarts of the job that have a log of their own, ascending. Raises as `RemoteFile.prove` does."""

    def log(self, restart: int) -> RemoteFile:
        """The training's log of one start of it."""

    def beside(self, most: int) -> bytes:
        """The ends, `most` bytes of each, of what it writes beside that; may be empty. Raises as above."""


_MIRRORED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def cksum(data: bytes) -> str:
    """What POSIX `cksum` prints: its CRC is zlib's with the bits of each byte mirrored, over data and length."""
    length = len(data)
    mirrored = (data + length.to_bytes((length.bit_length() + 7) // 8, "little")).translate(_MIRRORED)
    crc = zlib.crc32(mirrored, 0xFFFFFFFF) ^ 0xFFFFFFFF
    return f"{int(f'{crc:032b}'[::-1], 2) ^ 0xFFFFFFFF} {length}"
