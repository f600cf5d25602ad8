"""`open_log`: a log file, read as text also if gzip, bzip2, xz or zstd compressed it."""

from __future__ import annotations

import bz2
import errno
import io
import lzma
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

from llmb_tui.language.quantities import byte_size

MOST_BYTES = 2 * 10**9
"""Number of bytes to which a compressed log may unpack: a few bytes may stand for any number."""
_PIECE = 1 << 16
_MOST_MEMORY = 1 << 28
"""Memory for the dictionary of xz, in bytes: the largest of `xz -9` has 64 MiB."""
_LONGEST_MAGIC = 6


class _Unpacker(Protocol):
    """The common part of the standard library's decompressors."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _Gunzip:
    """gzip in the form of the other decompressors."""

    def __init__(self) -> None:
        self._unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)

    @property
    def eof(self) -> bool:
        return self._unpacker.eof

    @property
    def needs_input(self) -> bool:
        return not self._unpacker.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._unpacker.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._unpacker.decompress(self._unpacker.unconsumed_tail + data, max_length)


def _xz() -> _Unpacker:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MOST_MEMORY)


def _unzstd() -> _Unpacker:
    return cast("_Unpacker", _zstd().ZstdDecompressor())


_FORMATS: dict[bytes, tuple[str, Callable[[], _Unpacker]]] = {
    b"\x1f\x8b": ("gzip", _Gunzip),
    b"BZh": ("bzip2", bz2.BZ2Decompressor),
    b"\xfd7zXZ\x00": ("xz", _xz),
    b"\x28\xb5\x2f\xfd": ("zstd", _unzstd),
}
"""(name, decompressor) by the first bytes of a file."""


def open_log(path: Path) -> BinaryIO:
    """Open a log for reading; a compressed log is unpacked while it is read. Raises OSError, also while reading."""
    file = path.open("rb")
    found = _format_of(file)
    return io.BufferedReader(_Unpacked(file, *found), _PIECE) if found else file


def is_compressed(path: Path) -> bool:
    """Whether `open_log` unpacks this file. Raises OSError."""
    with path.open("rb") as file:
        return _format_of(file) is not None


def _format_of(file: BinaryIO) -> tuple[str, Callable[[], _Unpacker]] | None:
    """Format by the first bytes; a file that cannot be rewound, such as a pipe, counts as text."""
    if not file.seekable():
        return None
    head = file.read(_LONGEST_MAGIC)
    file.seek(0)
    return next((found for magic, found in _FORMATS.items() if head.startswith(magic)), None)


class _Unpacked(io.RawIOBase):
    """The text of a compressed file, of one compressed part after another."""

    def __init__(self, file: BinaryIO, name: str, new_unpacker: Callable[[], _Unpacker]) -> None:
        self._file, self._name, self._new_unpacker = file, name, new_unpacker
        self._unpacker = new_unpacker()
        self._size = 0

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with text. Raises OSError for damaged or endless data."""
        try:
            text = self._read(len(buffer))
        except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, _zstd().ZstdError) as error:
            if isinstance(error, OSError) and error.errno:  # bzip2 has no error of its own
                raise
            raise OSError(errno.EIO, f"Its {self._name} data is damaged") from error
        self._size += len(text)
        if self._size > MOST_BYTES:
            limit = byte_size(MOST_BYTES)
            raise OSError(errno.EFBIG, f"Its {self._name} data unpacks to more than {limit}: unpack it first")
        buffer[: len(text)] = text
        return len(text)

    def _read(self, most: int) -> bytes:
        while True:
            data = b""
            if self._unpacker.eof:
                data = self._unpacker.unused_data or self._file.read(_PIECE)
                if not data.strip(b"\0"):  # programs for tapes fill the last block
                    return b""
                self._unpacker = self._new_unpacker()
            elif self._unpacker.needs_input:
                data = self._file.read(_PIECE)
            text = self._unpacker.decompress(data, most)
            if text:
                return text
            if not data and not self._unpacker.eof and self._unpacker.needs_input:
                raise OSError(errno.EIO, f"Its {self._name} data is incomplete")


def _zstd() -> Any:
    if sys.version_info >= (3, 14):
        from compression import zstd  # noqa: PLC0415 - few logs need it
    else:
        from backports import zstd  # noqa: PLC0415 - as above
    return zstd
