"""Command `python -m bench._wan TARGET MS MBIT`: forward TCP to port TARGET with delay and limited bandwidth.

MS milliseconds are added to each round trip, and each direction carries MBIT Mbit/s. The command prints its listening
port. It is a separate process, so that it does not slow down the measured program.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from bench._baselines import ROOT
from bench._rounds import python

_CHUNK = 16384


@contextmanager
def wan(target: int, round_trip_ms: float, mbit: float) -> Iterator[int]:
    """Forward to a port of this machine in a separate process; yield the port that the process listens on."""
    command = python("-m", "bench._wan", *map(str, (target, round_trip_ms, mbit)))
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as process:
        try:
            yield int(process.stdout.readline() if process.stdout else b"")
        finally:
            process.kill()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay_s: float, rate: float) -> None:
    loop = asyncio.get_running_loop()
    in_flight: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def receive() -> None:
        free_at, data = 0.0, b"-"
        while data:
            data = await reader.read(_CHUNK)
            free_at = max(free_at, loop.time()) + len(data) / rate
            in_flight.put_nowait((free_at + delay_s, data))
            if free_at - loop.time() > 0.002:
                await asyncio.sleep(free_at - loop.time())

    async def send() -> None:
        while True:
            send_at, data = await in_flight.get()
            if send_at - loop.time() > 0.0005:
                await asyncio.sleep(send_at - loop.time())
            if not data:
                break
            writer.write(data)
            await writer.drain()
        writer.write_eof()

    try:
        await asyncio.gather(receive(), send())
    except OSError:
        writer.close()


async def _main(target: int, round_trip_ms: float, mbit: float) -> None:
    delay_s, rate = round_trip_ms / 2000, mbit * 1e6 / 8

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", target)
        for end in (writer, far_writer):
            end.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.gather(_pump(reader, far_writer, delay_s, rate), _pump(far_reader, writer, delay_s, rate))
        for end in (writer, far_writer):
            end.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])))
