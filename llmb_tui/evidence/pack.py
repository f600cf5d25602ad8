"""`pack` and `unpack`: write and read an archive.

The archive is a tar file in one zstd frame with a content checksum, followed by a frame that readers skip, with the
SHA-256 of all previous bytes. The manifest, its first member, determines every byte of the tar file. Reading compares
the file with that, so nothing in a foreign archive is interpreted.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from llmb_tui.errors import LlmbError
from llmb_tui.evidence.manifest import MANIFEST, ArchiveError, Manifest, Member, read_manifest
from llmb_tui.language.quantities import byte_size
from llmb_tui.language.text import clean_line
from llmb_tui.store.files import explained_errors, make_private_directory

_BLOCK = tarfile.BLOCKSIZE
_PIECE = 1 << 20
_PACKED_PIECE = 1 << 16
_END = b"\0" * (2 * _BLOCK)
"""End of a tar file."""
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_MAGIC = b"\x28\xb5\x2f\xfd"
_CHECKSUM = 0x04
"""Bit of a zstd frame's descriptor, which is the byte after the magic number."""
_SEAL = b"\x5e\x2a\x4d\x18" + (32).to_bytes(4, "little")
"""Head of a skippable frame of 32 bytes."""
_LEVEL = 9

MOST_MANIFEST = 16 << 20
MOST_UNPACKED = 16 << 30
ALWAYS_FINE = 256 << 20
"""Size, bytes, up to which an archive is unpacked whatever its ratio is."""
RATIO = 200
"""Largest ratio of a log's size to its packed size, for archives larger than the size above; logs usually have 30."""

_KINDS = {
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.LNKTYPE: "a hard link",
    tarfile.DIRTYPE: "a directory",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a pipe",
}


class ArchiveTooDenseError(ArchiveError):
    """An archive that is too small for its unpacked size, and is therefore not unpacked, whoever made it."""


def sum_of(path: Path) -> tuple[int, str]:
    """Size and SHA-256 of a file. Raises LlmbError."""
    digest, size = hashlib.sha256(), 0
    with explained_errors("read", path), path.open("rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
            size += len(piece)
    return size, digest.hexdigest()


def pack(manifest: Manifest, folder: Path, out: IO[bytes]) -> None:
    """Write the archive of the members in a folder; equal contents give equal bytes.

    Raises LlmbError if a file differs from the manifest.
    """
    zstd = _zstd()
    parameter = zstd.CompressionParameter
    packer = zstd.ZstdCompressor(options={parameter.compression_level: _LEVEL, parameter.checksum_flag: 1})
    digest = hashlib.sha256()

    def write(data: bytes) -> None:
        digest.update(data)
        out.write(data)

    for data in _tar(manifest, folder):
        write(packer.compress(data))
    write(packer.flush())
    out.write(_SEAL + digest.digest())


def _tar(manifest: Manifest, folder: Path) -> Iterator[bytes]:
    yield _header(MANIFEST, len(manifest.text)) + manifest.text + _padding(len(manifest.text))
    for member in manifest.members:
        yield _header(member.name, member.size)
        digest, size = hashlib.sha256(), 0
        with (folder / member.name).open("rb") as file:
            while piece := file.read(_PIECE):
                digest.update(piece)
                size += len(piece)
                yield piece
        if (size, digest.hexdigest()) != (member.size, member.sha256):
            raise LlmbError(f"{member.name} changed while it was packed.", "", "Export again.")
        yield _padding(size)
    yield _END


def unpack(path: Path, into: Path) -> Manifest:
    """Write the members of an archive into an empty private folder, after checking every byte.

    Raises ArchiveError, and LlmbError (exit code 1) if the file does not exist; the written files are then useless.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # opening a pipe would block
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise LlmbError(
            f"{clean_line(str(path))} cannot be read.", f"{why}.", "Name an archive.", exit_code=1
        ) from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise ArchiveError("It is not a regular file.", "Name a file that `export` has written.")
    with open(handle, "rb") as file:
        content = _Content(file, os.fstat(handle).st_size)
        return _unpacked(content, into)


def _unpacked(content: _Content, into: Path) -> Manifest:
    size = _size_in(content.read(_BLOCK), content)
    text = content.read(size)
    manifest = read_manifest(text, into)
    content.expect(_padding(size), "The padding after the manifest is not zero.")
    content.limit(_length(manifest))
    for index, member in enumerate(manifest.members):
        header = content.read(_BLOCK)
        if header != _header(member.name, member.size):
            raise ArchiveError(
                _unexpected_member(header, member, [earlier.name for earlier in manifest.members[:index]])
            )
        target = into / member.name
        make_private_directory(target.parent)
        digest = hashlib.sha256()
        with explained_errors("write", target), open(os.open(target, _NEW, 0o600), "wb") as file:
            for piece in content.pieces(member.size):
                digest.update(piece)
                file.write(piece)
        if digest.hexdigest() != member.sha256:
            raise ArchiveError(f"The checksum of {member.name} is wrong: it was changed or damaged.")
        content.expect(_padding(member.size), f"The padding after {member.name} is not zero.")
    content.expect(_END, "It has a member that the manifest does not list.")
    content.finish()
    return manifest


def _size_in(header: bytes, content: _Content) -> int:
    """Size of the manifest, from its header."""
    try:
        info = tarfile.TarInfo.frombuf(header, "utf-8", "strict")
    except (tarfile.HeaderError, UnicodeDecodeError) as error:
        raise ArchiveError("Its content is not a tar file.", "Name a file that `export` has written.") from error
    if not 0 < info.size <= MOST_MANIFEST or info.name != MANIFEST or header != _header(MANIFEST, info.size):
        raise ArchiveError(
            f"Its first member is {clean_line(info.name)[:80]!r}, not the manifest of an archive of llmb-tui.",
            "Name a file that `export` has written.",
        )
    content.limit(2 * _BLOCK + info.size)
    return info.size


def _unexpected_member(header: bytes, wanted: Member, before: list[str]) -> str:
    """Description of the data in the place of a member."""
    if not header.strip(b"\0"):
        return f"{wanted.name} is missing."
    try:
        info = tarfile.TarInfo.frombuf(header, "utf-8", "replace")
    except tarfile.HeaderError:
        return f"The header of {wanted.name} is damaged."
    name = clean_line(info.name)[:80]
    if info.type in _KINDS:
        return f"{name} is {_KINDS[info.type]}, which no archive of llmb-tui has. It was not followed."
    if info.name in before:
        return f"It has {name} twice."
    if info.name == wanted.name:
        return f"The header of {name} differs from the manifest: size, time, owner or mode."
    return f"It has {name} in the place of {wanted.name}: a member was added, removed or renamed."


class _Content:
    """Unpacked content of an archive, read only as far as requested, with a checksum over all bytes of the file."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._zstd = _zstd()
        self._unpacker = self._zstd.ZstdDecompressor()
        self._file = file
        self._size = size
        self._packed = size - len(_SEAL) - 32
        """Bytes of the frame that have not been read yet."""
        self._digest = hashlib.sha256()
        self._out = bytearray()
        self._room = _BLOCK
        """Number of bytes that may still be unpacked."""
        self._allowed = _BLOCK
        head = self._take(5)
        if head[:4] != _MAGIC:
            raise ArchiveError("It has another file format.", "Name a file that `export` has written.")
        if not head[4] & _CHECKSUM:
            raise ArchiveError("It has no checksum of its content, but every archive of llmb-tui has one.")
        self._unpack(head)

    def limit(self, length: int) -> None:
        """Allow unpacking up to this length. Raises ArchiveError for a length that logs cannot explain."""
        if length > min(MOST_UNPACKED, max(ALWAYS_FINE, RATIO * self._size)):
            words = f"It would grow from {byte_size(self._size)} to {byte_size(length)}, which logs cannot explain."
            refusal = ArchiveError if length > MOST_UNPACKED else ArchiveTooDenseError
            raise refusal(f"{words} It was not unpacked.")
        self._room += length - self._allowed
        self._allowed = length

    def read(self, length: int) -> bytes:
        """Exactly `length` bytes."""
        return b"".join(self.pieces(length))

    def pieces(self, length: int) -> Iterator[bytes]:
        """Exactly `length` bytes, in pieces."""
        while length:
            if not self._out:
                self._more()
            piece = bytes(self._out[:length])
            del self._out[:length]
            length -= len(piece)
            yield piece

    def expect(self, data: bytes, problem: str) -> None:
        """Read exactly these bytes. Raises ArchiveError with `problem` for any others."""
        if self.read(len(data)) != data:
            raise ArchiveError(problem)

    def finish(self) -> None:
        """Check that nothing else follows, and that the checksum at the end of the file is right."""
        self._room += 1
        while not self._unpacker.eof and not self._out:
            self._more()
        if self._out or self._unpacker.unused_data or self._packed:
            raise ArchiveError("Something follows the last member.")
        if self._file.read(len(_SEAL) + 33) != _SEAL + self._digest.digest():
            raise ArchiveError("The checksum at its end is wrong or missing: a byte was changed, lost or added.")

    def _more(self) -> None:
        if self._unpacker.eof:
            raise ArchiveError("It ends too early: a member is missing, or a part of one.")
        self._unpack(self._take(_PACKED_PIECE) if self._unpacker.needs_input else b"")

    def _take(self, most: int) -> bytes:
        try:
            data = self._file.read(max(0, min(most, self._packed)))
        except OSError as error:
            raise LlmbError("The archive cannot be read to its end.", f"{error.strerror}.", "Copy it again.") from error
        if not data:
            raise ArchiveError("It ends too early: it was cut short.")
        self._packed -= len(data)
        self._digest.update(data)
        return data

    def _unpack(self, data: bytes) -> None:
        try:
            piece = self._unpacker.decompress(data, max_length=min(_PIECE, self._room))
        except (self._zstd.ZstdError, EOFError) as error:
            raise ArchiveError("It cannot be unpacked: it was changed or damaged.") from error
        self._room -= len(piece)
        self._out += piece


def _header(name: str, size: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o600
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "strict")


def _padding(size: int) -> bytes:
    return b"\0" * (-size % _BLOCK)


def _length(manifest: Manifest) -> int:
    """Length of the tar file in bytes."""
    sizes = [len(manifest.text), *(member.size for member in manifest.members)]
    return sum(_BLOCK + size + -size % _BLOCK for size in sizes) + len(_END)


def _zstd() -> Any:
    if sys.version_info >= (3, 14):
        from compression import zstd  # noqa: PLC0415 - only archives need it
    else:
        from backports import zstd  # noqa: PLC0415 - only archives need it
    return zstd
