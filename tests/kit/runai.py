"""A simulated Run:ai site for tests, with an adjustable clock and with connection faults that the demo lacks.

    with runai_site(tmp_path, Fault("POST", "/workloads/distributed", lost=True)) as site:
        ...

Tests may append to `site.faults` at any time; `site.requests` lists the requests so far.
"""

from __future__ import annotations

import io
import os
import re
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from llmb_tui.demo import faults as knobs
from llmb_tui.demo.runai.https import Handler, Request, Response, json_response
from llmb_tui.demo.runai.site import TOKEN_S, DemoRunai
from llmb_tui.demo.site import SPEED

HELD_S = 60.0


@dataclass
class Fault:
    """A fault for the next `times` requests with this method whose path matches the pattern."""

    method: str = ""
    """Method of the requests; empty for any method."""
    path: str = ""
    times: float = 1
    status: int = 0
    """Status of an error in the contract's format; the request has no effect."""
    headers: dict[str, str] = field(default_factory=dict)
    """Additional header fields of the response: `{"Retry-After": "2"}`."""
    refused: bool = False
    """The server cuts the connection before it processes the request."""
    gateway: int = 0
    """Status of a gateway that did not wait for the server; the request takes effect."""
    lost: bool = False
    """The request takes effect, and the server cuts the connection before the response."""
    cut_after: int | None = None
    """The request takes effect, and the server cuts the line after so many bytes of the response, head included."""
    body: bytes | None = None
    """Body of the response; the request takes effect."""
    revoked: bool = False
    """All earlier tokens become invalid when the request arrives."""
    until: threading.Event | None = None
    """The request takes effect, and the response waits for this event."""
    met: threading.Event = field(default_factory=threading.Event)
    """Set when a request has triggered the fault."""

    def takes(self, request: Request) -> bool:
        """Return whether the fault applies to a request and is not used up, and count the request if so."""
        if self.times < 1 or self.method not in ("", request.method) or not re.search(self.path, request.path):
            return False
        self.times -= 1
        self.met.set()
        return True


class Clock:
    """The real time plus the seconds that tests have added."""

    def __init__(self) -> None:
        self.added = 0.0

    def __call__(self) -> float:
        return time.time() + self.added


class FaultySite(DemoRunai):
    """A site with faults and an adjustable clock."""

    def __init__(self, root: Path, faults: list[Fault], **options: Any) -> None:
        self.clock = Clock()

        class Connection(_Faulty):
            site = self

        super().__init__(root, clock=self.clock, handler=Connection, **options)
        self.faults = faults
        self.requests: list[Request] = []
        """All requests in order."""
        self._guard = threading.Lock()

    def fault_of(self, request: Request) -> Fault | None:
        """Record a request, and return the first fault that applies to it."""
        with self._guard:
            self.requests.append(request)
            return next((fault for fault in self.faults if fault.takes(request)), None)

    def skip(self, seconds: float) -> None:
        """Advance the simulated clock for every workload."""
        self.clock.added += seconds / self.speed

    def knob(self, name: str, text: str | None = "") -> None:
        """Switch a fault of the table in `demo/faults.py` on, for workloads that are submitted afterwards."""
        path = knobs.folder(self.root) / name
        path.parent.mkdir(exist_ok=True)
        if text is None:
            path.unlink(missing_ok=True)
        else:
            path.write_text(text)

    def preempt(self, identity: str) -> None:
        """Take away a workload's nodes, as a workload of higher priority would."""
        with self.workloads.change(identity) as workload:
            workload.evictions.append(workload.now(self.clock()))
            self.workloads.requeue(workload)

    def request_count(self, method: str, path: str) -> int:
        """Number of requests with a method whose path matches the pattern."""
        return sum(request.method == method and bool(re.search(path, request.path)) for request in self.requests)


@contextmanager
def runai_site(root: Path, *faults: Fault, speed: float = SPEED, token_s: float = TOKEN_S) -> Iterator[FaultySite]:
    """Start a site with its files below `root`."""
    site = FaultySite(root, list(faults), speed=speed, token_s=token_s)
    with site:
        yield site


class _Faulty(Handler):
    """A connection with faults."""

    site: ClassVar[FaultySite]

    def exchange(self) -> None:
        request = self.read()
        fault = self.site.fault_of(request)
        if fault is None:
            self.send(self.server.respond(request))
            return
        if fault.revoked:
            self.site.tokens.revoke()
        if fault.refused:
            self.wfile = _Cut(self.connection, 0)
        if fault.lost or fault.cut_after is not None:
            self.wfile = _Cut(self.connection, fault.cut_after or 0)
        if fault.status:
            shape = {"kind": "Status", "status": "Failure"} if "/namespaces/" in request.path else {}
            response = json_response(fault.status, {**shape, "code": fault.status, "message": "simulated fault"})
        elif fault.refused:
            response = json_response(503, {})
        else:
            response = self.server.respond(request)
        if fault.gateway:
            response = Response(fault.gateway, b"<html>gateway</html>", "text/html")
        if fault.until:
            fault.until.wait(HELD_S)
        if fault.body is not None:
            response = replace(response, body=fault.body)
        self.send(replace(response, headers={**response.headers, **fault.headers}))

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = exchange  # noqa: N815


class _Cut(io.BufferedIOBase):
    """Sends so many bytes to the client, and resets the connection at the next byte."""

    def __init__(self, connection: socket.socket, bytes_left: int) -> None:
        self._connection, self._bytes_left = connection, bytes_left

    def write(self, data: Any) -> int:
        self._connection.sendall(data[: self._bytes_left])
        self._bytes_left -= len(data)
        if self._bytes_left < 0:
            self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            os.close(self._connection.detach())
            raise ConnectionAbortedError
        return len(data)
