"""`pack` and `unpack`: an archive's bytes.

A tar file in one zstd frame with a content checksum, and behind it a frame that readers skip, with the SHA-256 of all
bytes before it. What the tar file looks like follows from the manifest, its first member, to the last byte: it is read
by comparing it with that, so there is nothing in a foreign one that could be obeyed.
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

from llmb_tui.errors import Trouble
from llmb_tui.evidence.manifest import MANIFEST, Manifest, Member, NotThisArchive, read_manifest
from llmb_tui.language.quantities import byte_size
from llmb_tui.language.text import clean_line
from llmb_tui.store.files import file_trouble, make_private_directory

_BLOCK = tarfile.BLOCKSIZE
_PIECE = 1 << 20
_PACKED_PIECE = 1 << 16
_END = b"\0" * (2 * _BLOCK)
"""Of a tar file."""
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_MAGIC = b"\x28\xb5\x2f\xfd"
_CHECKSUM = 0x04
"""Bit of a zstd frame's descriptor, the byte after the magic."""
_SEAL = b"\x5e\x2a\x4d\x18" + (32).to_bytes(4, "little")
"""Head of a skippable frame of 32 bytes."""
_LEVEL = 9

MOST_MANIFEST = 16 << 20
MOST_UNPACKED = 16 << 30
_ALWAYS_FINE = 256 << 20
_RATIO = 200
"""A log is packed to a thirtieth or so; more than this many times its size, and more than the size above, is no log."""

_KINDS = {
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.LNKTYPE: "a hard link",
    tarfile.DIRTYPE: "a directory",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a pipe",
}


class TooDense(NotThisArchive):
    """An archive that is so small for what it would become that it is not unpacked, whoever made it."""


def sum_of(path: Path) -> tuple[int, str]:
    """Size and SHA-256 of a file. Raises Trouble."""
    digest, size = hashlib.sha256(), 0
    with file_trouble("read", path), path.open("rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
            size += len(piece)
    return size, digest.hexdigest()


def pack(manifest: Manifest, folder: Path, out: IO[bytes]) -> None:
    """Write the archive of the members that lie in a folder: the same bytes whenever they are the same.

    Raises Trouble where a file is another one than the manifest says.
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
            raise Trouble(f"{member.name} has changed while it was packed.", "", "Export again.")
        yield _padding(size)
    yield _END


def unpack(path: Path, into: Path) -> Manifest:
    """Write the members of an archive into an empty private folder, after each byte of it was found to be right.

    Raises NotThisArchive, and Trouble (exit code 1) where there is no such file; what was written then is of no use.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe would be waited for
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise Trouble(f"{clean_line(str(path))} cannot be read.", f"{why}.", "Name an archive.", exit_code=1) from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise NotThisArchive("It is no file.", "Name a file that `export` has made.")
    with open(handle, "rb") as file:
        content = _Content(file, os.fstat(handle).st_size)
        return _unpacked(content, into)


def _unpacked(content: _Content, into: Path) -> Manifest:
    size = _size_in(content.read(_BLOCK), content)
    text = content.read(size)
    manifest = read_manifest(text, into)
    content.expect(_padding(size), "The manifest is followed by other bytes than zeros.")
    content.limit(_length(manifest))
    for index, member in enumerate(manifest.members):
        header = content.read(_BLOCK)
        if header != _header(member.name, member.size):
            raise NotThisArchive(_what_else(header, member, [one.name for one in manifest.members[:index]]))
        target = into / member.name
        make_private_directory(target.parent)
        digest = hashlib.sha256()
        with file_trouble("write", target), open(os.open(target, _NEW, 0o600), "wb") as file:
            for piece in content.pieces(member.size):
                digest.update(piece)
                file.write(piece)
        if digest.hexdigest() != member.sha256:
            raise NotThisArchive(f"The sum of {member.name} is wrong: it was changed or damaged.")
        content.expect(_padding(member.size), f"{member.name} is followed by other bytes than zeros.")
    content.expect(_END, "A member is in it that the manifest does not name.")
    content.finish()
    return manifest


def _size_in(header: bytes, content: _Content) -> int:
    """Of the manifest, by its header."""
    try:
        info = tarfile.TarInfo.frombuf(header, "utf-8", "strict")
    except (tarfile.HeaderError, UnicodeDecodeError) as error:
        raise NotThisArchive("What is packed in it is no tar file.", "Name a file that `export` has made.") from error
    if not 0 < info.size <= MOST_MANIFEST or info.name != MANIFEST or header != _header(MANIFEST, info.size):
        raise NotThisArchive(
            f"Its first member is {clean_line(info.name)[:80]!r}, and not the manifest of an archive of ours.",
            "Name a file that `export` has made.",
        )
    content.limit(2 * _BLOCK + info.size)
    return info.size


def _what_else(header: bytes, wanted: Member, before: list[str]) -> str:
    """What stands in the place of a member."""
    if not header.strip(b"\0"):
        return f"{wanted.name} is missing."
    try:
        info = tarfile.TarInfo.frombuf(header, "utf-8", "replace")
    except tarfile.HeaderError:
        return f"The head of {wanted.name} is damaged."
    name = clean_line(info.name)[:80]
    if info.type in _KINDS:
        return f"{name} is {_KINDS[info.type]}, which no archive of ours has. Nothing was followed."
    if info.name in before:
        return f"{name} is in it twice."
    if info.name == wanted.name:
        return f"The head of {name} is not as the manifest says: size, time, owner or mode."
    return f"{name} stands where the manifest has {wanted.name}: a member was added, removed or renamed."


class _Content:
    """What is unpacked of an archive, no more than is asked for; and all of the file's bytes are summed."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._zstd = _zstd()
        self._unpacker = self._zstd.ZstdDecompressor()
        self._file = file
        self._size = size
        self._packed = size - len(_SEAL) - 32
        """Bytes of the frame that are still to be read."""
        self._digest = hashlib.sha256()
        self._out = bytearray()
        self._room = _BLOCK
        """How many bytes may still be unpacked."""
        self._allowed = _BLOCK
        head = self._take(5)
        if head[:4] != _MAGIC:
            raise NotThisArchive("It is not packed as one.", "Name a file that `export` has made.")
        if not head[4] & _CHECKSUM:
            raise NotThisArchive("It carries no checksum of its content, as each archive of ours does.")
        self._unpack(head)

    def limit(self, length: int) -> None:
        """Let it be unpacked up to this length. Raises NotThisArchive for one that no log explains."""
        if length > min(MOST_UNPACKED, max(_ALWAYS_FINE, _RATIO * self._size)):
            words = f"It would become {byte_size(length)} of {byte_size(self._size)}, which no log explains."
            refusal = NotThisArchive if length > MOST_UNPACKED else TooDense
            raise refusal(f"{words} It was not unpacked.")
        self._room += length - self._allowed
        self._allowed = length

    def read(self, length: int) -> bytes:
        """Exactly so many bytes."""
        return b"".join(self.pieces(length))

    def pieces(self, length: int) -> Iterator[bytes]:
        """The same, in pieces."""
        while length:
            if not self._out:
                self._more()
            piece = bytes(self._out[:length])
            del self._out[:length]
            length -= len(piece)
            yield piece

    def expect(self, data: bytes, otherwise: str) -> None:
        """Read these very bytes."""
        if self.read(len(data)) != data:
            raise NotThisArchive(otherwise)

    def finish(self) -> None:
        """See that nothing else comes, and that the sum at the end of the file is right."""
        self._room += 1
        while not self._unpacker.eof and not self._out:
            self._more()
        if self._out or self._unpacker.unused_data or self._packed:
            raise NotThisArchive("Something follows the last member.")
        if self._file.read(len(_SEAL) + 33) != _SEAL + self._digest.digest():
            raise NotThisArchive("The sum at its end is wrong or missing: a byte was changed, lost or added.")

    def _more(self) -> None:
        if self._unpacker.eof:
            raise NotThisArchive("It ends too early: a member is missing, or a part of one.")
        self._unpack(self._take(_PACKED_PIECE) if self._unpacker.needs_input else b"")

    def _take(self, most: int) -> bytes:
        try:
            data = self._file.read(max(0, min(most, self._packed)))
        except OSError as error:
            raise Trouble("The archive cannot be read to its end.", f"{error.strerror}.", "Copy it again.") from error
        if not data:
            raise NotThisArchive("It ends too early: it was cut short.")
        self._packed -= len(data)
        self._digest.update(data)
        return data

    def _unpack(self, data: bytes) -> None:
        try:
            piece = self._unpacker.decompress(data, max_length=min(_PIECE, self._room))
        except (self._zstd.ZstdError, EOFError) as error:
            raise NotThisArchive("It cannot be unpacked: it was changed or damaged.") from error
        self._room -= len(piece)
        self._out += piece


def _header(name: str, size: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o600
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "strict")


def _padding(size: int) -> bytes:
    return b"\0" * (-size % _BLOCK)


def _length(manifest: Manifest) -> int:
    """Bytes of the tar file."""
    sizes = [len(manifest.text), *(member.size for member in manifest.members)]
    return sum(_BLOCK + size + -size % _BLOCK for size in sizes) + len(_END)


def _zstd() -> Any:
    if sys.version_info >= (3, 14):
        from compression import zstd  # noqa: PLC0415 - only archives need it
    else:
        from backports import zstd  # noqa: PLC0415 - only archives need it
    return zstd
