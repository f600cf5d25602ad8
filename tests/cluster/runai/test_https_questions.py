from __future__ import annotations

import base64
import contextlib
import shutil
import socket
import socketserver
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmb_tui.cluster.failures import AnswerTooLongError, DeadlineError, DisconnectedError, UnreachableError
from llmb_tui.cluster.runai import https
from llmb_tui.cluster.runai.https import HttpsServer, Response, WrongServerError, bundle_of, trusting
from llmb_tui.errors import LlmbError
from tests.cluster.runai.https_site import Request, Say, Site, trusted
from tests.conftest import NOT_RUN


def ask(
    site: Site, *, url: str = "", within_s: float = 20.0, most: int = 1 << 20, body: bytes | None = None
) -> Response:
    server = HttpsServer(url or site.url, trusted(str(site.ca_file)))
    method = "GET" if body is None else "POST"
    return server.ask(method, "/x", {}, body, ends=time.monotonic() + within_s, most=most)


@pytest.mark.parametrize("say", [Say(body=b"all of it"), Say(chunks=[b"all", b" of", b" it"])])
def test_an_answer_comes_whole(site: Site, say: Say) -> None:
    site.respond = lambda _: say
    assert ask(site)[::2] == (200, b"all of it")


@pytest.mark.parametrize("ends", [False, True], ids=["broken", "ended"])
@pytest.mark.parametrize("say", [Say(body=b"all of it"), Say(chunks=[b"all", b" of", b" it"])])
def test_an_answer_that_is_cut_anywhere_is_none(site: Site, say: Say, ends: bool) -> None:
    length = sum(map(len, say.pieces()))
    places = range(0, length, 4)
    for at in places:
        site.respond = lambda _, at=at: replace(say, cut_after=at, ends=ends)  # type: ignore[misc]
        with pytest.raises(DisconnectedError, match="broke") as caught:
            ask(site)
        assert caught.value.may_have_run
    assert len(site.requests) == len(places)


@pytest.mark.parametrize(
    "say", [Say(headers={"X-Long": "x" * 5000}, slowly=True), Say(body=b"x" * 5000, slowly=True)], ids=["head", "body"]
)
def test_an_answer_that_comes_byte_by_byte_ends_at_the_deadline(site: Site, say: Say) -> None:
    site.respond = lambda _: say
    with pytest.raises(DeadlineError, match="did not answer in time"):
        ask(site, within_s=0.4)


def test_a_silent_server_ends_at_the_deadline(site: Site) -> None:
    def respond(_: Request) -> Say:
        site.stopping.wait(5)
        return Say()

    site.respond = respond
    with pytest.raises(DeadlineError):
        ask(site, within_s=0.3, body=b"{}")


def test_an_answer_without_end_is_not_read(site: Site) -> None:
    site.respond = lambda _: Say(chunks=(b"x" * 65536 for _ in range(1000)))
    with pytest.raises(AnswerTooLongError, match="longer than 100,000 bytes"):
        ask(site, most=100_000)


@pytest.mark.parametrize("raw", [b"5\r\nhello\r\n-1\r\n", b"zz\r\n", b"x" * 2000, b"1\r\nhello"])
def test_chunks_that_are_none(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"malformed|invalid literal"):
        https._Chunks().feed(raw)


@given(st.lists(st.binary(min_size=1, max_size=40)), st.lists(st.integers(1, 30), min_size=1))
def test_chunks_are_the_same_however_they_come(chunks: list[bytes], cuts: list[int]) -> None:
    raw = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\nX: y\r\n\r\n"
    taken, at, body = https._Chunks(), 0, b""
    for step in cuts * len(raw):
        body += taken.feed(raw[at : at + step])
        at += step
    assert body == b"".join(chunks)
    assert taken.ended


def test_a_port_without_a_server_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(UnreachableError, match="cannot be reached") as caught:
        HttpsServer(f"https://127.0.0.1:{port}", trusting()).ask(
            "GET", "/", {}, None, ends=time.monotonic() + 9, most=9
        )
    assert caught.value.why == "Connection refused."


def test_an_unknown_host_name_is_reported(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(WrongServerError) as caught:
        ask(site, url="https://no.such.host/api/v1")
    assert str(caught.value) == (
        "no.such.host cannot be reached.\nIts name is unknown: Name or service not known.\n"
        "Check the URL, DNS, VPN and proxy."
    )


def test_an_answer_that_is_not_tls_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            sock, _ = listening.accept()
            with sock:
                sock.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                sock.recv(1000)

        threading.Thread(target=answer, daemon=True).start()
        url = f"https://127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(UnreachableError, match="cannot be reached"):
            HttpsServer(url, trusting()).ask("GET", "/", {}, None, ends=time.monotonic() + 9, most=9)


@pytest.mark.parametrize("variable", ["REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"])
def test_a_private_authority_of_the_environment_is_trusted(
    site: Site, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    site.respond = lambda _: Say()
    monkeypatch.setenv(variable, str(site.ca_file))
    server = HttpsServer(site.url, trusting(bundle_of()))
    assert server.ask("GET", "/", {}, None, ends=time.monotonic() + 9, most=9).status == 200


def test_an_unknown_certificate_is_not_trusted(site: Site) -> None:
    with pytest.raises(WrongServerError, match="is not trusted") as caught:
        HttpsServer(site.url, trusting()).ask("GET", "/", {}, None, ends=time.monotonic() + 9, most=9)
    assert "`ca_file`" in caught.value.fix
    assert site.requests == []


def test_an_expired_certificate_and_a_wrong_host_name_have_different_fixes(tmp_path: Path) -> None:
    for names, valid, mend in (("127.0.0.1", False, "clock"), ("other.example", True, "host name")):
        site = Site(tmp_path / names, names=[names], valid=valid)
        with contextlib.closing(site), pytest.raises(WrongServerError) as caught:
            ask(site)
        assert mend in caught.value.fix


def test_a_file_of_certificates_that_holds_none(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("not one")
    for name in (str(tmp_path / "ca.pem"), str(tmp_path / "missing.pem"), "~no-such-user/ca.pem", "x" * 5000):
        with pytest.raises(LlmbError, match="cannot be used") as caught:
            trusting(name)
        assert "REQUESTS_CA_BUNDLE" in caught.value.fix


def test_a_directory_of_certificates_is_used_as_in_requests(site: Site, tmp_path: Path) -> None:
    if (openssl := shutil.which("openssl")) is None:
        pytest.skip(f"{NOT_RUN}no openssl is installed, which says by which name a certificate is looked for")
    asked = [openssl, "x509", "-noout", "-hash", "-in", str(site.ca_file)]
    name = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    (tmp_path / "certificates").mkdir()
    shutil.copy(site.ca_file, tmp_path / "certificates" / f"{name}.0")
    site.respond = lambda _: Say(body=b"ours")
    server = HttpsServer(site.url, trusting(str(tmp_path / "certificates")))
    assert server.ask("GET", "/", {}, None, ends=time.monotonic() + 9, most=9).body == b"ours"


class Proxy(socketserver.ThreadingTCPServer):
    """Proxy that connects to any requested host, for clients with its password."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _ProxyHandler)
        self.heads: list[str] = []
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


class _ProxyHandler(socketserver.BaseRequestHandler):
    server: Proxy

    def handle(self) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self.request.recv(1)
        self.server.heads.append(head.decode())
        if base64.b64encode(b"me:p:w") not in head:
            self.request.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            return
        host, _, port = head.split()[1].decode().partition(":")
        with socket.create_connection((host, int(port))) as there:
            self.request.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            back = threading.Thread(target=_pour, args=(there, self.request), daemon=True)
            back.start()
            _pour(self.request, there)
            back.join(5)


def _pour(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    server = Proxy()
    yield server
    server.shutdown()
    server.server_close()


def test_it_goes_through_the_proxy_of_the_environment(
    site: Site, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.respond = lambda _: Say(body=b"hello")
    monkeypatch.setenv("HTTPS_PROXY", f"http://me:p%3Aw@{proxy.address}")
    assert ask(site).body == b"hello"
    assert proxy.heads[0].startswith(f"CONNECT 127.0.0.1:{site.port} ")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    assert ask(site).body == b"hello"
    assert len(proxy.heads) == 1


def test_a_proxy_that_wants_a_login(site: Site, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy.address)
    with pytest.raises(UnreachableError, match="through the proxy of the environment") as caught:
        ask(site)
    assert "407" in caught.value.why
    assert site.requests == []


def test_a_proxy_of_a_kind_that_is_not_spoken(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "socks5://127.0.0.1:1")
    with pytest.raises(UnreachableError, match="proxy") as caught:
        ask(site)
    assert "socks5" in caught.value.why


@pytest.mark.parametrize(
    "password", ["s3cr3tPW/x", "s3cr3tPW#x", "s3cr3tPW?x", "1234/s3cr3tPW", "s3cr3tPW℀x", "[s3cr3tPW"]
)
def test_a_proxys_unquoted_password_is_not_shown(site: Site, password: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"http://alice:{password}@127.0.0.1:1")
    with pytest.raises(UnreachableError, match="proxy of the environment") as caught:
        ask(site)
    assert "%2F" in caught.value.why
    assert "s3cr3tPW" not in str(caught.value)
