"""`Line`: a TCP proxy to a port of this machine that can delay, hang, cut and refuse. Needs no privileges."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
import struct
import sys
import tempfile
import threading
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from llmb_tui.cluster.slurm.profile import SlurmProfile

Result = TypeVar("Result")
CHUNK, CHUNKS_KEPT = 65536, 16
"""Bytes of one read, and the number of reads that are buffered before the sender has to wait."""


class Line:
    """The proxy. Its methods may be called from any thread; their effect is complete when they return."""

    def __init__(self, target_port: int, *, delay_s: float = 0.0) -> None:
        self.target_port = target_port
        self.delay_s = delay_s
        """Added round-trip time in seconds: half in each direction."""
        self.bytes_up = self.bytes_down = 0
        """Bytes passed so far, to the server and from it."""
        self.connections = 0
        """Number of connections so far."""
        self.cuts = 0
        """Number of cuts, by `cut` or `cut_after`, of a line with at least one connection."""
        self.port = 0
        # This socket never listens. It reserves the port while the server is closed; only Linux allows both to bind it.
        self._keeper = socket.socket()
        if sys.platform == "linux":
            self._keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._keeper.bind(("127.0.0.1", 0))
            self.port = self._keeper.getsockname()[1]
        self._limits: dict[bool, int] = {}
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.AbstractServer | None = None
        self._directory: Path | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="rig line", daemon=True)
        self._thread.start()
        self._flowing = self._call(asyncio.Event)
        self._call(self._flowing.set)
        self.accept()

    def __enter__(self) -> Line:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the proxy and every connection."""
        self.refuse()
        self.cut()
        self._run(self._end_tasks())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._keeper.close()
        if self._directory:
            shutil.rmtree(self._directory)

    def hang(self) -> None:
        """Pass no more data, without closing anything. New connections are accepted, and hang as well."""
        self._call(self._flowing.clear)

    def resume(self) -> None:
        """Pass the data that was held back."""
        self._call(self._flowing.set)

    def cut(self) -> int:
        """Reset every connection (RST); returns their number."""

        async def cut() -> int:
            count = self._cut()
            await asyncio.sleep(0)  # the sockets are closed in the next round of the event loop
            return count

        return self._run(cut())

    def cut_after(self, *, bytes_up: int | None = None, bytes_down: int | None = None) -> None:
        """Cut all connections once, as soon as that many more bytes have passed; no further byte passes."""

        def limit() -> None:
            self._limits = {up: count for up, count in ((True, bytes_up), (False, bytes_down)) if count is not None}

        self._call(limit)

    def refuse(self) -> None:
        """Refuse new connections. Existing connections stay open."""
        self._call(self._stop_listening)

    def accept(self) -> None:
        """Accept new connections again, at the same port."""
        self._run(self._listen())

    def profile(self, profile: SlurmProfile) -> SlurmProfile:
        """The profile of the same cluster over this line. The profile must name its known_hosts file."""
        if profile.known_hosts is None:
            raise ValueError("the profile names no known_hosts")
        if self._directory is None:
            self._directory = Path(tempfile.mkdtemp(prefix="llmb-line-"))
        text = Path(profile.known_hosts).read_text()
        entries = [line for line in text.splitlines() if line.startswith(f"[127.0.0.1]:{self.target_port} ")]
        lines = [line.replace(f":{self.target_port} ", f":{self.port} ", 1) for line in entries]
        known_hosts = self._directory / "known_hosts"
        known_hosts.write_text("".join(f"{line}\n" for line in lines))
        return replace(profile, port=self.port, known_hosts=str(known_hosts))

    def _call(self, function: Callable[[], Result]) -> Result:
        async def call() -> Result:
            return function()

        return self._run(call())

    def _run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(timeout=60)

    async def _listen(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, backlog=100)
            self.port = self._server.sockets[0].getsockname()[1]

    def _stop_listening(self) -> None:
        if self._server:
            self._server.close()
            self._server = None

    async def _end_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _cut(self) -> int:
        count = len(self._writers) // 2
        self.cuts += bool(count)
        for writer in self._writers:
            raw = writer.get_extra_info("socket")
            if raw.fileno() >= 0:
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        self._writers.clear()
        return count

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._writers.add(writer)
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target_port)
        except OSError:
            self._writers.discard(writer)
            writer.close()
            return
        self.connections += 1
        self._writers.add(far_writer)
        try:
            await asyncio.gather(self._pump(reader, far_writer, up=True), self._pump(far_reader, writer, up=False))
        except asyncio.CancelledError:
            pass  # cancelled by `close`; asyncio's server would log a task that ends as cancelled
        finally:
            for end in (writer, far_writer):
                self._writers.discard(end)
                end.close()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, up: bool) -> None:
        """Pass data from `reader`, in order and with the delay, until it ends."""
        queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(CHUNKS_KEPT)
        reading = asyncio.create_task(self._read(reader, queue))
        try:
            while True:
                due, data = await queue.get()
                await asyncio.sleep(max(0.0, due - self._loop.time()))
                await self._flowing.wait()
                if not data:
                    break
                self._pass_on(writer, data, up=up)
                await writer.drain()
            writer.write_eof()
        except OSError:
            pass  # one side has closed; the other pump ends the same way
        finally:
            reading.cancel()

    async def _read(self, reader: asyncio.StreamReader, queue: asyncio.Queue[tuple[float, bytes]]) -> None:
        data = b"-"
        while data:
            data = b""
            with contextlib.suppress(OSError):
                data = await reader.read(CHUNK)
            await queue.put((self._loop.time() + self.delay_s / 2, data))

    def _pass_on(self, writer: asyncio.StreamWriter, data: bytes, *, up: bool) -> None:
        limit = self._limits.get(up)
        passed = data if limit is None else data[:limit]
        writer.write(passed)
        if up:
            self.bytes_up += len(passed)
        else:
            self.bytes_down += len(passed)
        if limit is not None:
            self._limits[up] = limit - len(passed)
            if self._limits[up] == 0:
                self._limits = {}
                self._cut()
