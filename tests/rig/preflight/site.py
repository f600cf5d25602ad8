"""A web server that represents registry, git host and model hub, and helpers for the preflight."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from llmb_tui.preflight.needs import Sources
from llmb_tui.preflight.report import Check, Preflight

_REPOSITORY = {"/info/refs": f"{'5' * 40}\trefs/heads/main\n", "/HEAD": "ref: refs/heads/main\n"}
"""Files that git reads from a repository on a plain web server."""


@contextmanager
def web_server(status: int) -> Iterator[str]:
    """A server that answers git like a repository, and every other request with one status; yields its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = _REPOSITORY.get(self.path.partition("?")[0], "")
            self.send_response(200 if body else status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *args: object) -> None:
            """Write no log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def sources(address: str) -> Sources:
    """Sources with all three services at one address."""
    return Sources(registry=address, git=address, hub=address)


def by_id(report: Preflight) -> dict[str, Check]:
    """Checks of a report by id."""
    return {check.id: check for check in report.checks}
