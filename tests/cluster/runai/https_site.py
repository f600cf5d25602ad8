"""An HTTPS server for tests; each test sets its answers, and the byte after which a connection breaks."""

from __future__ import annotations

import base64
import contextlib
import datetime
import ipaddress
import json
import socket
import socketserver
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from llmb_tui.cluster.runai.https import trusting

trusted = lru_cache(trusting)
"""The certificates of the system and of these files, read once."""
SECRET = "canary-9f2c-of-the-secret"


@dataclass
class Request:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Say:
    """One answer."""

    status: int = 200
    body: object = b""
    headers: dict[str, str] = field(default_factory=dict)
    cut_after: int | None = None
    """Bytes of the whole answer, its head included, after which the connection breaks."""
    ends: bool = False
    """The connection is closed there in the regular way, as a proxy does."""
    chunks: Iterable[bytes] | None = None
    """The body in chunks, instead of `body`."""
    until_closed: bool = False
    """The answer has no length of `body`: it ends when the connection does."""
    slowly: bool = False
    """Send one byte at a time, until the client stops reading."""

    def head(self, length: int | None) -> bytes:
        lines = [f"HTTP/1.1 {self.status} Of The Test", *(f"{name}: {value}" for name, value in self.headers.items())]
        if not self.until_closed:
            lines.append("Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}")
        return "\r\n".join([*lines, "Connection: close", "", ""]).encode()

    def pieces(self) -> Iterator[bytes]:
        if self.chunks is not None:
            yield self.head(None)
            for chunk in self.chunks:
                yield b"%x\r\n%b\r\n" % (len(chunk), chunk) if chunk else b""
            yield b"0\r\n\r\n"
            return
        body = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        yield self.head(len(body)) + body


Respond = Callable[[Request], Say]


class Site:
    """Server on loopback that records its requests."""

    def __init__(self, folder: Path, *, names: Iterable[str] = ("127.0.0.1",), valid: bool = True) -> None:
        self.ca_file = folder / "ca.pem"
        context = _certificate(folder, list(names), valid=valid)
        self.requests: list[Request] = []
        self.respond: Respond = lambda _: Say(404, {"code": 404, "message": "Not of this test"})
        self.stopping = threading.Event()
        site = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with contextlib.suppress(OSError), context.wrap_socket(self.request, server_side=True) as sock:
                    site._serve(sock)

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self.port: int = self._server.server_address[1]
        self.url = f"https://127.0.0.1:{self.port}/api/v1"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()

    def requests_to(self, path: str, method: str = "") -> list[Request]:
        return [each for each in self.requests if each.path.endswith(path) and each.method.startswith(method)]

    def _serve(self, sock: ssl.SSLSocket) -> None:
        file = sock.makefile("rb")
        method, target, _ = file.readline().decode().split(" ")
        headers = {}
        while line := file.readline().strip():
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        body = file.read(int(headers.get("content-length", 0)))
        parts = urlsplit(target)
        request = Request(method, unquote(parts.path), dict(parse_qsl(parts.query)), headers, body)
        self.requests.append(request)
        self._send(sock, self.respond(request))

    def _send(self, sock: ssl.SSLSocket, say: Say) -> None:
        sent = 0
        for piece in say.pieces():
            part = piece if say.cut_after is None else piece[: max(0, say.cut_after - sent)]
            if say.slowly:
                for byte in part:
                    sock.sendall(bytes([byte]))
                    if self.stopping.wait(0.02):
                        return
            else:
                sock.sendall(part)
            sent += len(part)
            if len(part) < len(piece):
                if say.ends:
                    sock.unwrap()
                sock.shutdown(socket.SHUT_RDWR)
                return
        sock.unwrap()


def jwt(lifetime_s: float = 3600.0, number: int = 0) -> str:
    """Token in the form of Run:ai's tokens; its signature is not checked here."""
    now = int(time.time())
    claims = {"iat": now, "exp": now + lifetime_s, "jti": number}
    parts = [json.dumps(part).encode() for part in ({"alg": "none"}, claims)]
    return ".".join([*(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts), "x"])


class ControlPlane:
    """Run:ai's answers, which a test may replace; the right secret gets a token."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.granted: list[str] = []
        self.lifetime_s = 3600.0
        self.answers: dict[tuple[str, str], Respond] = {}
        self.grant: Respond = self._grant
        site.respond = self._respond

    def on(self, method: str, path: str, *says: Say | Respond) -> None:
        """Answers to the requests, one after the other; the last one is repeated."""
        left = list(says)

        def respond(request: Request) -> Say:
            say = left.pop(0) if len(left) > 1 else left[0]
            return say if isinstance(say, Say) else say(request)

        self.answers[method, f"/api/v1{path}"] = respond

    def _respond(self, request: Request) -> Say:
        if request.path == "/api/v1/token":
            return self.grant(request)
        if request.headers.get("authorization") != f"Bearer {self.granted[-1]}":
            return Say(401, {"code": 401, "message": "token expired"})
        respond = self.answers.get((request.method, request.path))
        return respond(request) if respond else Say(404, {"code": 404, "message": "not found"})

    def _grant(self, request: Request) -> Say:
        if request.json.get("appSecret") != SECRET:
            return Say(401, {"code": 401, "message": "invalid client credentials"})
        self.granted.append(jwt(self.lifetime_s, len(self.granted)))
        return Say(200, {"accessToken": self.granted[-1]})


def _certificate(folder: Path, names: list[str], *, valid: bool) -> ssl.SSLContext:
    """TLS settings of the server; the certificate of their authority is written to `ca.pem`."""
    folder.mkdir(parents=True, exist_ok=True)
    now = datetime.datetime.now(datetime.UTC)
    day = datetime.timedelta(days=1)
    end = now + day if valid else now - day
    authority, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority of the test")])
    owner = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "site of the test")])

    def builder(
        subject: x509.Name, public: ec.EllipticCurvePublicKey, until: datetime.datetime
    ) -> x509.CertificateBuilder:
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(public)
        return builder.serial_number(x509.random_serial_number()).not_valid_before(now - 3 * day).not_valid_after(until)

    def written(name: str) -> x509.GeneralName:
        try:
            return x509.IPAddress(ipaddress.ip_address(name))
        except ValueError:
            return x509.DNSName(name)

    known = x509.SubjectKeyIdentifier.from_public_key(authority.public_key())
    root = builder(issuer, authority.public_key(), now + day)
    root = root.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    root = root.add_extension(known, critical=False)
    leaf = builder(owner, key.public_key(), end)
    leaf = leaf.add_extension(x509.SubjectAlternativeName([written(name) for name in names]), critical=False)
    leaf = leaf.add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(known), critical=False)
    pem = serialization.Encoding.PEM
    (folder / "ca.pem").write_bytes(root.sign(authority, hashes.SHA256()).public_bytes(pem))
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "server.pem").write_bytes(leaf.sign(authority, hashes.SHA256()).public_bytes(pem) + private)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    return context
