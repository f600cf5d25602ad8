"""`Web`: a container registry and a model hub on loopback with the real protocols. Plain HTTP, in a thread."""

from __future__ import annotations

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

DIGEST = "sha256:" + "ab" * 32
LAYERS = (4_000_000_000, 16_500_000_000)


class Web:
    """The two servers. The fields set which credentials they require."""

    def __init__(self) -> None:
        self.key: str | None = None
        """Key that the registry requires; None: it serves images without a key."""
        self.images = {"nvidia/nemo:25.02.01"}
        self.closed_images: set[str] = set()
        """Images that are closed even for this key."""
        self.token = "hf_a-token-that-is-valid"
        self.gated: set[str] = set()
        """Repositories that are closed even for the token."""
        self.realm_host = ""
        """Host to which the registry sends clients for a token; empty: the registry itself."""
        self.out_of_order = False
        self.requests: list[str] = []
        """Method and path of each request."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def url(self) -> str:
        """Address of both servers."""
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Web:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer(self, path: str, authorization: str, host: str) -> tuple[int, dict[str, str], str]:
        """Status, header fields and body of the answer."""
        if self.out_of_order:
            return 503, {}, ""
        place = urlsplit(path)
        if place.path == "/proxy_auth":
            return self._grant(authorization, parse_qs(place.query).get("scope", [""])[0])
        if place.path.startswith("/v2/"):
            return self._manifest(place.path, authorization, host)
        if place.path == "/api/whoami-v2":
            return (200, {}, '{"name": "somebody"}') if authorization == f"Bearer {self.token}" else (401, {}, "")
        repository = place.path.strip("/").split("/resolve/")[0]
        if repository in self.gated:
            return 403, {"X-Error-Code": "GatedRepo"}, ""
        return 307, {"Location": "/somewhere-else"}, ""

    def _grant(self, authorization: str, scope: str) -> tuple[int, dict[str, str], str]:
        login = base64.b64encode(f"$oauthtoken:{self.key}".encode()).decode()
        if authorization and authorization != f"Basic {login}":
            return 401, {}, ""
        anybody = "anybody" if not authorization else "key"
        return 200, {}, json.dumps({"token": f"{anybody}-{scope.replace(':', '.').replace('/', '.')}"})

    def _manifest(self, path: str, authorization: str, host: str) -> tuple[int, dict[str, str], str]:
        name, _, reference = path.removeprefix("/v2/").partition("/manifests/")
        if not authorization:
            challenge = f'Bearer realm="http://{self.realm_host or host}/proxy_auth",scope="repository:{name}:pull"'
            return 401, {"WWW-Authenticate": challenge}, ""
        if self.key is not None and authorization.startswith("Bearer anybody"):
            return 401, {}, ""
        if reference == DIGEST:
            layers = [{"size": size, "digest": DIGEST} for size in LAYERS]
            return 200, {}, json.dumps({"config": {"size": 9000}, "layers": layers})
        image = f"{name}:{reference}"
        if image in self.closed_images:
            return 403, {}, ""
        if image not in self.images:
            return 404, {}, ""
        return 200, {}, json.dumps({"manifests": [{"digest": DIGEST, "platform": {"architecture": "amd64"}}]})


def _handler(web: Web) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            """Answer a request."""
            web.requests.append(f"{self.command} {self.path}")
            authorization = self.headers.get("Authorization", "")
            status, fields, body = web.answer(self.path, authorization, self.headers.get("Host", ""))
            self.send_response(status)
            for name, value in {**fields, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body.encode())

        do_HEAD = do_GET  # noqa: N815 - the name that http.server calls

        def log_message(self, *_: Any) -> None:
            """Write no log."""

    return Handler
