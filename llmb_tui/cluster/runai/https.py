"""`HttpsServer`: one server that is asked over HTTPS. Every question ends at a time that was set for all of it.

Python's own `http.client`; CONTRIBUTING.md says why. What it lacks is here: one deadline for connecting, for a proxy,
for the handshake and for an answer however slowly it comes; proxies of the environment; a body that is read piece by
piece and known to be whole. Redirections are not followed. Only a name is looked up for as long as the system lets it.
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
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from llmb_tui.cluster.failures import AnswerTooLong, DeadlinePassed, Disconnected, Unreachable
from llmb_tui.cluster.tcp import connect_tcp
from llmb_tui.errors import Trouble
from llmb_tui.language.text import clean_line, plural
from llmb_tui.store.paths import expanded

_PIECE = 1 << 16
_LONGEST_HEAD = 1 << 10
_CONNECT_S = 10.0
_BUNDLE = "REQUESTS_CA_BUNDLE"
_LOOK = "Check the URL, the VPN and the proxy."


class WholeReply(NamedTuple):
    """What a server answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class WrongServer(Unreachable):
    """Its name is not known, or its certificate not trusted: trying again at once is of no use."""


def tls_context(cafile: Path | None = None, cadata: str | None = None) -> ssl.SSLContext:
    """Make Python's default context, less what differs between Pythons."""
    context = ssl.create_default_context(cafile=cafile, cadata=cadata)
    # Some, Debian 12's among them, take a connection that breaks for one that was ended.
    context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF
    # From 3.13 on Python refuses certificates of sites' own authorities in which an extension such as the key usage is
    # missing; older ones, curl and kubectl accept them.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def trusting(*files: str | None) -> ssl.SSLContext:
    """Trusts the system's certificates, or those that SSL_CERT_FILE names, and those of the files, in PEM."""
    context = tls_context()
    for name in filter(None, files):
        try:
            path = expanded(name)
            file, folder = (None, path) if path.is_dir() else (path, None)  # requests takes both
            context.load_verify_locations(file, folder)
        except (OSError, ssl.SSLError) as error:
            why = error.strerror or "it holds no certificate in PEM"
            fix = f"Name a file with certificates in PEM in {_BUNDLE} or the profile's `ca_file`, or leave it out."
            raise Trouble(f"The certificates in {clean_line(name)} cannot be used.", f"{why}.", fix) from error
    return context


class HttpsServer:
    """Asks one server, from any thread.

    Each question has a connection of its own: where none comes about, it is certain that nothing was asked.
    """

    def __init__(self, url: str, context: ssl.SSLContext, *, proxy: str | None = None, server_name: str = "") -> None:
        """`proxy`: a kubeconfig's, instead of the environment's.

        `server_name`: whom the certificate names, where not the host.
        """
        parts = urlsplit(url)
        self.host, self._port = parts.hostname or "", parts.port or 443
        self.name = clean_line(parts.netloc.rpartition("@")[2])
        self._context = context
        self._server_name = server_name or self.host
        by_environment = None if urllib.request.proxy_bypass(self.host) else urllib.request.getproxies().get("https")
        self._proxy = proxy or by_environment
        self._proxy_of, self._mend_proxy = (
            ("kubeconfig", "Set its `proxy-url` to http://HOST:PORT, or leave it out.")
            if proxy
            else ("environment", "Set HTTPS_PROXY to http://HOST:PORT, or name the host in NO_PROXY.")
        )

    def reach(self, ends: float) -> None:
        """Connect, and ask nothing. Raises Unreachable."""
        self._connect(ends).close()

    def ask(  # noqa: PLR0913 - each is a thing of its own
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None, *, ends: float, most: int
    ) -> WholeReply:
        """What the server answers before `ends`, by the monotonic clock.

        Raises Unreachable, which nothing was sent to; Disconnected; DeadlinePassed; AnswerTooLong.
        """
        body_said = bytearray()
        with contextlib.closing(self.open(method, path, headers, body, ends=ends)) as reply:
            while (piece := reply.read(ends - time.monotonic())) != b"":
                if piece is None or time.monotonic() > ends:
                    raise self._too_late()
                body_said += piece
                if len(body_said) > most:
                    what = f"{self.name} answers with more than {plural(most, 'byte')}."
                    raise AnswerTooLong(what, "Nothing that is asked here has such an answer.", "Look at its pages.")
            return WholeReply(reply.status, reply.headers, bytes(body_said))

    def open(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None, *, ends: float
    ) -> Reply:
        """The answer as far as its body, which is read piece by piece; to be closed. Raises as `ask` does."""
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

    def cut(self, error: Exception) -> Disconnected:
        """The connection broke after something was sent."""
        why = f"{clean_line(str(error)) or type(error).__name__}."
        return Disconnected(f"The connection to {self.name} broke.", why, "It is tried again.")

    def _too_late(self) -> DeadlinePassed:
        why = "It, or something between here and there, is slow or hangs."
        return DeadlinePassed(f"{self.name} did not answer in time.", why, "Try again.")

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
        except ValueError:  # its words quote the address, and that may hold a password
            host = None
        if not host or "@" in f"{proxy.path}{proxy.query}{proxy.fragment}":
            raise self._no_proxy(
                "Its address cannot be read. A / ? # or @ of a password is written as %2F %3F %23 %40."
            )
        if proxy.scheme != "http":
            raise self._no_proxy(
                f"It is a proxy of the kind {clean_line(proxy.scheme)}, which this program cannot use."
            )
        connection = _Connection(host, port, self._context, self._server_name, ends)
        login = f"{unquote(proxy.username or '')}:{unquote(proxy.password or '')}".encode()
        words = f"Basic {base64.b64encode(login).decode()}"
        connection.set_tunnel(self.host, self._port, {"Proxy-Authorization": words} if proxy.username else {})
        return connection

    def _no_proxy(self, why: str) -> Unreachable:
        what = f"{self.name} cannot be reached through the proxy of the {self._proxy_of}."
        return Unreachable(what, why, self._mend_proxy)

    def _unreachable(self, error: Exception) -> Trouble:
        through = f" through the proxy of the {self._proxy_of}" if self._proxy else ""
        what = f"{self.name} cannot be reached{through}."
        words = clean_line(getattr(error, "strerror", None) or str(error)) or type(error).__name__
        if isinstance(error, ssl.SSLCertVerificationError):
            return _untrusted(self.name, error)
        if isinstance(error, TimeoutError):
            return Unreachable(what, "Nothing answers there, or a firewall drops what is sent.", _LOOK)
        if isinstance(error, socket.gaierror):
            return WrongServer(what, f"Its name is not known here: {words}.", "Check the URL, DNS, VPN and proxy.")
        if isinstance(error, ssl.SSLError):
            return Unreachable(what, f"No TLS came about: {words}.", "Check the port of the URL, and the proxy.")
        return Unreachable(what, f"{words}.", _LOOK)


class Reply:
    """An answer whose body comes piece by piece. To be closed."""

    def __init__(self, server: HttpsServer, connection: _Connection, response: http.client.HTTPResponse) -> None:
        self.connection = connection
        self.status = response.status
        self.headers: Mapping[str, str] = {name.lower(): value for name, value in response.getheaders()}
        self._server = server
        self._response = response
        self._chunks = _Chunks() if response.chunked else None
        self._left = response.length if self._chunks is None else None
        """Bytes of the body to come; None: as many as there are."""
        self._ended = self._left == 0

    def read(self, timeout_s: float) -> bytes | None:
        """The next bytes; None when none came within `timeout_s`; b"" at the end of a whole body.

        Raises Disconnected where the body was cut.
        """
        ends = self.connection.ends = time.monotonic() + max(0.001, timeout_s)
        while not self._ended:
            try:
                data = self._response.fp.read1(_PIECE)
                piece = self._of_body(data)
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
        """End the connection."""
        self._response.close()
        self.connection.close()

    def _of_body(self, data: bytes) -> bytes:
        if not data and (self._chunks is not None or self._left is not None):
            raise ValueError("the answer was cut")
        if self._chunks is not None:
            piece = self._chunks.feed(data)
            self._ended = self._chunks.ended
            return piece
        self._ended = not data
        if self._left is not None:
            data = data[: self._left]
            self._left -= len(data)
            self._ended = self._left == 0
        return data


class _Chunks:
    """Takes the chunks of a body apart. A time-out in the middle of one loses nothing, as it does in `http.client`."""

    def __init__(self) -> None:
        self.ended = False
        self._rest = b""
        self._left = 0
        """Bytes of the chunk and of the line's end after it."""
        self._is_last = False

    def feed(self, data: bytes) -> bytes:
        """What the bytes hold of the body. Raises ValueError where they are no chunks."""
        self._rest += data
        body = []
        while self._rest and not self.ended:
            if self._left:
                piece = self._rest[: self._left]
                body.append(piece[: max(0, self._left - 2)])
                if not b"\r\n"[-min(2, self._left) :].startswith(piece[len(body[-1]) :]):
                    raise ValueError("the answer is malformed")
                self._rest, self._left = self._rest[len(piece) :], self._left - len(piece)
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
            self._left, self._is_last = size + 2 if size else 0, size == 0
        return b"".join(body)


class _Receiver(io.RawIOBase):
    """The bytes of a connection that come before its end; no byte makes the time to read it begin anew."""

    def __init__(self, connection: _Connection, sock: socket.socket, held: io.BufferedReader) -> None:
        self._connection = connection
        self._sock = sock
        self._held = held
        """Keeps the socket open, whoever closes it, for as long as this is open."""
        self.ended = False
        """Somebody read on where nothing more came."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        left = self._connection.ends - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._sock.settimeout(left)
        count = self._sock.recv_into(buffer)
        self.ended = not count
        return count

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._held.close()


class _Connection(http.client.HTTPConnection):
    """One connection, perhaps through a proxy. What it reads is read before `ends`, which may be moved."""

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
        """What `http.client` makes of an answer."""
        response = http.client.HTTPResponse(sock, method=method)
        self._receiver = _Receiver(self, sock, response.fp)
        response.fp = io.BufferedReader(self._receiver)
        return response

    def getresponse(self) -> http.client.HTTPResponse:
        """The answer as far as its body. `http.client` takes a head that ends in its middle for a whole one."""
        response = super().getresponse()
        if self._receiver.ended:
            response.close()
            raise http.client.HTTPException("the answer was cut")
        return response

    def connect(self) -> None:
        """Connect, through the proxy where there is one, and shake hands."""
        super().connect()
        self.sock.settimeout(max(0.001, self.ends - time.monotonic()))
        self.sock = self._context.wrap_socket(self.sock, server_hostname=self._server_name, suppress_ragged_eofs=False)


_NOT_VALID_YET, _EXPIRED, _OTHER_NAME, _OTHER_ADDRESS = 9, 10, 62, 64


def _untrusted(name: str, error: ssl.SSLCertVerificationError) -> WrongServer:
    """By OpenSSL's number for what is wrong."""
    fix = "Name the file of your site's certificates in the profile (`ca_file`) or in SSL_CERT_FILE."
    if error.verify_code in (_NOT_VALID_YET, _EXPIRED):
        fix = "Set this machine's clock right if it is wrong; else its administrators have to renew the certificate."
    elif error.verify_code in (_OTHER_NAME, _OTHER_ADDRESS):
        fix = "Use the host name that the certificate names in the URL."
    why = f"{clean_line(error.verify_message).rstrip('.')}."
    return WrongServer(f"The certificate of {name} is not trusted.", why, fix)


def bundle_of() -> str | None:
    """The file or directory of certificates that `requests`, and so NVIDIA's own tools, would trust."""
    return os.environ.get(_BUNDLE)
