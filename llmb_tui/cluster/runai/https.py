"""`HttpsServer`: requests to one server over HTTPS, each with one deadline for everything.

It uses Python's `http.client` (reasons: docs/decisions/0003-no-http-library.md), and adds: one deadline for connection,
proxy, handshake and a slow answer; proxies of the environment; a body that is read piece by piece and checked to be
complete. Redirections are not followed. Only the lookup of the host name has no deadline but the system's.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import io
import os
import socket
import ssl
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import unquote, urlsplit

from llmb_tui.cluster.failures import AnswerTooLongError, DeadlineError, DisconnectedError, UnreachableError
from llmb_tui.cluster.tcp import connect_tcp
from llmb_tui.errors import LlmbError
from llmb_tui.language.redact import remember_secret, server_words
from llmb_tui.language.text import clean_line, plural, short_line
from llmb_tui.store.paths import expand_user

_PIECE = 1 << 16
_LONGEST_HEAD = 1 << 10
_CONNECT_S = 10.0
_BUNDLE = "REQUESTS_CA_BUNDLE"
_CHECK = "Check the URL, the VPN and the proxy."


class Response(NamedTuple):
    """Complete answer of a server."""

    status: int
    headers: Mapping[str, str]
    body: bytes


CertificateFault = Literal["dates", "name", "authority"]
_CERTIFICATE_FAULTS: Mapping[int, CertificateFault] = {9: "dates", 10: "dates", 62: "name", 64: "name"}
"""Faults of a certificate by OpenSSL's error number: not valid yet, expired, another host name, another address."""
_CERTIFICATE_FIXES: Mapping[CertificateFault, str] = {
    "dates": (
        "Correct this machine's clock if it is wrong; else the server's administrators must renew the certificate."
    ),
    "name": "In the URL, use the host name of the certificate.",
    "authority": "Set `ca_file` in the profile, or SSL_CERT_FILE, to the file of your site's certificates.",
}


class WrongServerError(UnreachableError):
    """The server's name is unknown, or its certificate is not trusted: an immediate retry would not help."""


class UntrustedError(WrongServerError):
    """The server's certificate is not trusted."""

    def __init__(self, name: str, error: ssl.SSLCertVerificationError) -> None:
        why = f"{clean_line(error.verify_message).rstrip('.')}."
        self.fault = _CERTIFICATE_FAULTS.get(error.verify_code, "authority")
        super().__init__(f"The certificate of {name} is not trusted.", why, _CERTIFICATE_FIXES[self.fault])


def tls_context(cafile: Path | None = None, cadata: str | None = None) -> ssl.SSLContext:
    """Make Python's default context, without the differences between versions of Python."""
    context = ssl.create_default_context(cafile=cafile, cadata=cadata)
    # Some Pythons, such as Debian 12's, mistake a broken connection for an ended one.
    context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF
    # From 3.13 on Python refuses certificates of sites' own authorities in which an extension such as the key usage is
    # missing; older ones, curl and kubectl accept them.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def trusting(*files: str | None) -> ssl.SSLContext:
    """Make a context that trusts the certificates of the system or SSL_CERT_FILE, and those of the files, in PEM."""
    context = tls_context()
    for name in filter(None, files):
        try:
            path = expand_user(name)
            file, folder = (None, path) if path.is_dir() else (path, None)  # requests accepts both
            context.load_verify_locations(file, folder)
        except (OSError, ssl.SSLError) as error:
            why = error.strerror or "it contains no certificate in PEM"
            fix = f"Set {_BUNDLE} or the profile's `ca_file` to a file with certificates in PEM, or remove it."
            raise LlmbError(f"The certificates in {clean_line(name)} cannot be used.", f"{why}.", fix) from error
    return context


class HttpsServer:
    """Sends requests to one server, from any thread.

    Each request has its own connection: if the connection fails, the request was certainly not sent.
    """

    def __init__(self, url: str, context: ssl.SSLContext, *, proxy: str | None = None, server_name: str = "") -> None:
        """`proxy`: proxy of a kubeconfig, instead of the environment's.

        `server_name`: name in the certificate, if it is not the host.
        """
        parts = urlsplit(url)
        self.host, self._port = parts.hostname or "", parts.port or 443
        self.name = clean_line(parts.netloc.rpartition("@")[2])
        self._context = context
        self._server_name = server_name or self.host
        environment_proxy = None if urllib.request.proxy_bypass(self.host) else urllib.request.getproxies().get("https")
        self._proxy = proxy or environment_proxy
        self._proxy_source, self._proxy_fix = (
            ("kubeconfig", "Set its `proxy-url` to http://HOST:PORT, or remove it.")
            if proxy
            else ("environment", "Set HTTPS_PROXY to http://HOST:PORT, or add the host to NO_PROXY.")
        )

    def reach(self, ends: float) -> None:
        """Connect without a request. Raises UnreachableError."""
        self._connect(ends).close()

    def ask(  # noqa: PLR0913 - the parameters are independent
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None, *, ends: float, most: int
    ) -> Response:
        """Send a request, and return its answer before the monotonic time `ends`.

        Raises UnreachableError if nothing was sent, DisconnectedError, DeadlineError and AnswerTooLongError.
        """
        received = bytearray()
        with contextlib.closing(self.open(method, path, headers, body, ends=ends)) as reply:
            while (piece := reply.read(ends - time.monotonic())) != b"":
                if piece is None or time.monotonic() > ends:
                    raise self._too_late()
                received += piece
                if len(received) > most:
                    what = f"The answer of {self.name} is longer than {plural(most, 'byte')}."
                    why = "No expected answer is that long: another server may answer in its place."
                    raise AnswerTooLongError(what, why, "Check the URL and the proxy.")
            return Response(reply.status, reply.headers, bytes(received))

    def open(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None, *, ends: float
    ) -> Reply:
        """Send a request, and return the answer, whose body is read later; close it after use.

        Raises the errors of `ask`.
        """
        connection = self._connect(ends)
        connection.ends = ends
        try:
            connection.sock.settimeout(max(0.001, ends - time.monotonic()))
            connection.request(method, path, body=body, headers=dict(headers))
            return Reply(self, connection, connection.getresponse())
        except TimeoutError as error:
            connection.close()
            raise self._too_late() from error
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise self.cut(error) from error
        except BaseException:
            connection.close()
            raise

    def cut(self, error: Exception) -> DisconnectedError:
        """Make the error for a connection that broke after the request was sent."""
        why = f"{_words(error) or type(error).__name__}."
        return DisconnectedError(f"The connection to {self.name} broke.", why, "The program tries again.")

    def _too_late(self) -> DeadlineError:
        why = "The server, or a proxy or gateway before it, is slow or hangs."
        return DeadlineError(f"{self.name} did not answer in time.", why, "Try again later.")

    def _connect(self, ends: float) -> _Connection:
        connection = None
        try:
            connection = self._connection(min(ends, time.monotonic() + _CONNECT_S))
            connection.connect()
        except (OSError, ValueError, http.client.HTTPException) as error:
            if connection is not None:
                connection.close()
            raise self._unreachable(error) from error
        return connection

    def _connection(self, ends: float) -> _Connection:
        if self._proxy is None:
            return _Connection(self.host, self._port, self._context, self._server_name, ends)
        try:
            proxy = urlsplit(self._proxy if "://" in self._proxy else f"http://{self._proxy}")
            host, port = proxy.hostname, proxy.port or 80
        except ValueError:  # the error quotes the address, which may contain a password
            host = None
        if not host or "@" in f"{proxy.path}{proxy.query}{proxy.fragment}":
            raise self._no_proxy("The proxy's address is invalid. Write / ? # and @ in a password as %2F %3F %23 %40.")
        if proxy.scheme != "http":
            raise self._no_proxy(f"This program does not support {clean_line(proxy.scheme)} proxies, only http.")
        connection = _Connection(host, port, self._context, self._server_name, ends)
        remember_secret(unquote(proxy.password or ""))
        login = f"{unquote(proxy.username or '')}:{unquote(proxy.password or '')}".encode()
        words = f"Basic {base64.b64encode(login).decode()}"
        connection.set_tunnel(self.host, self._port, {"Proxy-Authorization": words} if proxy.username else {})
        return connection

    def _no_proxy(self, why: str) -> UnreachableError:
        what = f"{self.name} cannot be reached through the proxy of the {self._proxy_source}."
        return UnreachableError(what, why, self._proxy_fix)

    def _unreachable(self, error: Exception) -> LlmbError:
        through = f" through the proxy of the {self._proxy_source}" if self._proxy else ""
        what = f"{self.name} cannot be reached{through}."
        words = getattr(error, "strerror", None) or _words(error) or type(error).__name__
        if isinstance(error, ssl.SSLCertVerificationError):
            return UntrustedError(self.name, error)
        if isinstance(error, TimeoutError):
            return UnreachableError(what, "There was no answer; a firewall may block the connection.", _CHECK)
        if isinstance(error, socket.gaierror):
            return WrongServerError(what, f"Its name is unknown: {words}.", "Check the URL, DNS, VPN and proxy.")
        if isinstance(error, ssl.SSLError):
            return UnreachableError(
                what, f"The TLS handshake failed: {words}.", "Check the port of the URL, and the proxy."
            )
        return UnreachableError(what, f"{words}.", _CHECK)


class Reply:
    """An answer whose body is read piece by piece. Close it after use."""

    def __init__(self, server: HttpsServer, connection: _Connection, response: http.client.HTTPResponse) -> None:
        self.connection = connection
        self.status = response.status
        self.headers: Mapping[str, str] = {name.lower(): value for name, value in response.getheaders()}
        self._server = server
        self._response = response
        self._chunks = _Chunks() if response.chunked else None
        self._remaining = response.length if self._chunks is None else None
        """Remaining bytes of the body; None: the body ends with the connection."""
        self._ended = self._remaining == 0

    def read(self, timeout_s: float) -> bytes | None:
        """The next bytes; None if none came within `timeout_s`; b"" at the end of a complete body.

        Raises DisconnectedError if the body was cut.
        """
        ends = self.connection.ends = time.monotonic() + max(0.001, timeout_s)
        while not self._ended:
            try:
                data = self._response.fp.read1(_PIECE)
                piece = self._body_part(data)
            except TimeoutError:
                return None
            except (OSError, ValueError) as error:
                raise self._server.cut(error) from error
            if piece:
                return piece
            if time.monotonic() >= ends:
                return None
        return b""

    def close(self) -> None:
        """Close the connection."""
        self._response.close()
        self.connection.close()

    def _body_part(self, data: bytes) -> bytes:
        if not data and (self._chunks is not None or self._remaining is not None):
            raise ValueError("the answer was cut")
        if self._chunks is not None:
            piece = self._chunks.feed(data)
            self._ended = self._chunks.ended
            return piece
        self._ended = not data
        if self._remaining is not None:
            data = data[: self._remaining]
            self._remaining -= len(data)
            self._ended = self._remaining == 0
        return data


class _Chunks:
    """Parses the chunks of a body. Unlike in `http.client`, a timeout in the middle of a chunk loses no bytes."""

    def __init__(self) -> None:
        self.ended = False
        self._rest = b""
        self._remaining = 0
        """Remaining bytes of the chunk and the line end after it."""
        self._is_last = False

    def feed(self, data: bytes) -> bytes:
        """Parse bytes, and return the body in them. Raises ValueError if they are not chunks."""
        self._rest += data
        body = []
        while self._rest and not self.ended:
            if self._remaining:
                piece = self._rest[: self._remaining]
                body.append(piece[: max(0, self._remaining - 2)])
                if not b"\r\n"[-min(2, self._remaining) :].startswith(piece[len(body[-1]) :]):
                    raise ValueError("the answer is malformed")
                self._rest, self._remaining = self._rest[len(piece) :], self._remaining - len(piece)
                continue
            line, newline, rest = self._rest.partition(b"\r\n")
            if not newline:
                if len(line) > _LONGEST_HEAD:
                    raise ValueError("the answer is malformed")
                break
            self._rest = rest
            if self._is_last:
                self.ended = not line
                continue
            size = int(line.partition(b";")[0].strip() or b"-", 16)
            if size < 0:
                raise ValueError("the answer is malformed")
            self._remaining, self._is_last = size + 2 if size else 0, size == 0
        return b"".join(body)


class _Receiver(io.RawIOBase):
    """Reads the bytes of a connection before its deadline, which a received byte does not extend."""

    def __init__(self, connection: _Connection, sock: socket.socket, held: io.BufferedReader) -> None:
        self._connection = connection
        self._sock = sock
        self._held = held
        """Keeps the socket open as long as this object, even if another object closes it."""
        self.ended = False
        """Whether a read reached the end of the connection."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        remaining_s = self._connection.ends - time.monotonic()
        if remaining_s <= 0:
            raise TimeoutError
        self._sock.settimeout(remaining_s)
        count = self._sock.recv_into(buffer)
        self.ended = not count
        return count

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._held.close()


class _Connection(http.client.HTTPConnection):
    """One connection, perhaps through a proxy. All reads have the deadline `ends`, which may be changed."""

    default_port = 443

    def __init__(self, host: str, port: int, context: ssl.SSLContext, server_name: str, ends: float) -> None:
        super().__init__(host, port, timeout=max(0.001, ends - time.monotonic()))
        self._create_connection = lambda place, within_s, _: connect_tcp(place[0], place[1], within_s)
        self.ends = ends
        self._context = context
        self._server_name = server_name
        self._receiver: _Receiver

    def response_class(  # type: ignore[override]
        self, sock: socket.socket, method: str | None = None, **_: object
    ) -> http.client.HTTPResponse:
        """Make the response object, as `http.client` does, with a deadline for its reads."""
        response = http.client.HTTPResponse(sock, method=method)
        self._receiver = _Receiver(self, sock, response.fp)
        response.fp = io.BufferedReader(self._receiver)
        return response

    def getresponse(self) -> http.client.HTTPResponse:
        """Read the head of the answer. `http.client` would accept a head that ends in its middle."""
        response = super().getresponse()
        if self._receiver.ended:
            response.close()
            raise http.client.HTTPException("the answer was cut")
        return response

    def connect(self) -> None:
        """Connect, through a proxy if there is one, and make the TLS handshake."""
        super().connect()
        self.sock.settimeout(max(0.001, self.ends - time.monotonic()))
        self.sock = self._context.wrap_socket(self.sock, server_hostname=self._server_name, suppress_ragged_eofs=False)


def _words(error: Exception) -> str:
    """Message of an error, which may quote the server."""
    return short_line(server_words(str(error)))


def bundle_of() -> str | None:
    """File or directory of certificates that `requests`, and so NVIDIA's own tools, would trust."""
    return os.environ.get(_BUNDLE)
