"""HTTPS server on loopback that passes each request to a function and sends its answer."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

HOST = "127.0.0.1"
LOOK_S = 0.2
"""Interval in which the listener notices a stop, seconds."""
IDLE_S = 60.0
"""Longest silence of a connection, seconds."""
STOP_S = 2.0


@dataclass(frozen=True)
class Request:
    """One request; header names are in lower case."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def bearer(self) -> str:
        """Token of the request."""
        kind, _, token = self.headers.get("authorization", "").partition(" ")
        return token if kind == "Bearer" else ""


@dataclass(frozen=True)
class Response:
    """One answer: a complete body, or pieces that follow over time."""

    status: int
    body: bytes | Iterator[bytes]
    kind: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


Responder = Callable[[Request], Response]


def json_response(status: int, document: object) -> Response:
    """JSON answer."""
    return Response(status, json.dumps(document).encode())


class Handler(BaseHTTPRequestHandler):
    """One connection. Tests derive connection faults from it."""

    server: Listener
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "llmb-tui-simulated", ""
    timeout = IDLE_S
    disable_nagle_algorithm = True

    def handle(self) -> None:
        """Answer until the client disconnects, in whatever way."""
        with suppress(OSError):
            super().handle()

    def exchange(self) -> None:
        """Read one request, and answer it."""
        self.send(self.server.respond(self.read()))

    do_GET = do_POST = do_DELETE = exchange  # noqa: N815 - names that the base class requires

    def read(self) -> Request:
        """The next request."""
        address = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(headers.get("content-length", 0)))
        return Request(self.command, unquote(address.path), dict(parse_qsl(address.query)), headers, body)

    def send(self, response: Response) -> None:
        """Send an answer, with its length or in chunks."""
        self.send_response(response.status)
        self.send_header("Content-Type", response.kind)
        for name, value in response.headers.items():
            self.send_header(name, value)
        if isinstance(response.body, bytes):
            self.send_header("Content-Length", str(len(response.body)))
            self.end_headers()
            self.wfile.write(response.body)
            return
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in response.body:
            if piece:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_: Any) -> None:
        """Log nothing, because the log does not belong on the screen."""


class Listener(ThreadingHTTPServer):
    """Listens on a free loopback port from `start` to `stop`."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, context: ssl.SSLContext, respond: Responder, handler: type[Handler]) -> None:
        super().__init__((HOST, 0), handler)
        self.port: int = self.server_address[1]
        self.respond = respond
        self._context = context
        self._connections: set[socket.socket] = set()
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self.serve_forever, args=(LOOK_S,), name="demo-runai", daemon=True)

    def start(self) -> None:
        """Start accepting connections."""
        self._thread.start()

    def stop(self) -> None:
        """End all connections and threads."""
        ending = threading.Thread(target=self.shutdown)
        ending.start()
        with suppress(OSError):
            socket.create_connection((HOST, self.port)).close()  # wakes the listener at once
        ending.join()
        self.server_close()
        self._thread.join()
        self.drop_connections()
        with self._changed:
            self._changed.wait_for(lambda: not self._connections, STOP_S)

    def drop_connections(self) -> None:
        """Cut every connection."""
        with self._changed:
            for connection in self._connections:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def get_request(self) -> tuple[socket.socket, Any]:
        """The next connection; its own thread does the TLS handshake, so that a slow client blocks no other."""
        plain, address = super().get_request()
        connection = self._context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
        with self._changed:
            self._connections.add(connection)
        return connection, address

    def shutdown_request(self, request: Any) -> None:
        """Close a connection whose thread has ended."""
        super().shutdown_request(request)
        with self._changed:
            self._connections.discard(request)
            self._changed.notify_all()
