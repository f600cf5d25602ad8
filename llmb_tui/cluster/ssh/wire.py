"""Data types of the SSH protocol (RFC 4251), read strictly: paramiko's `Message` fills missing bytes with zeros."""

from __future__ import annotations

import struct


class Fields:
    """Reads the fields of a message one after the other."""

    def __init__(self, data: bytes) -> None:
        self.rest = data
        """Bytes that were not read yet."""

    def number(self, size: int) -> int:
        """Read an unsigned number of `size` bytes. Raises ValueError if the data ends before."""
        return int.from_bytes(self._bytes(size))

    def string(self) -> bytes:
        """Read a string of bytes. Raises ValueError if the data ends before."""
        return self._bytes(self.number(4))

    def text(self) -> str:
        """Read a string as UTF-8; other bytes are replaced. Raises ValueError if the data ends before."""
        return self.string().decode(errors="replace")

    def _bytes(self, size: int) -> bytes:
        if len(self.rest) < size:
            raise ValueError("The data is too short.")
        data, self.rest = self.rest[:size], self.rest[size:]
        return data


def string(data: bytes) -> bytes:
    """Write a string of bytes."""
    return struct.pack(">I", len(data)) + data
