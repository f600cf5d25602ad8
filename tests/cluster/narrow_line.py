"""A line with a low, constant bandwidth."""

from __future__ import annotations

import asyncio
import contextlib

from tests.rig.line import Line

_PIECE = 4096


class NarrowLine(Line):
    """A `Line` of a fixed width, for each direction and connection."""

    def __init__(self, target_port: int, bytes_per_s: float) -> None:
        self._bytes_per_s = bytes_per_s
        super().__init__(target_port)

    async def _read(self, reader: asyncio.StreamReader, kept: asyncio.Queue[tuple[float, bytes]]) -> None:
        data = b"-"
        while data:
            data = b""
            with contextlib.suppress(OSError):
                data = await reader.read(_PIECE)
            await asyncio.sleep(len(data) / self._bytes_per_s)
            await kept.put((0.0, data))
