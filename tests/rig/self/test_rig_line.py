"""The faults of `Line`, on any machine."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from llmb_tui.cluster.slurm.profile import SlurmProfile
from tests.kit.waiting import until
from tests.rig.line import Line


class Echo:
    """A server that echoes its input."""

    def __init__(self) -> None:
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.server.getsockname()[1]
        self.endings: list[str] = []
        """Ends of the connections so far: `end` or `reset`."""
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.server.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                while data := connection.recv(65536):
                    connection.sendall(data)
                self.endings.append("end")
            except OSError:
                self.endings.append("reset")


@pytest.fixture
def echo() -> Iterator[Echo]:
    server = Echo()
    yield server
    server.server.close()


@pytest.fixture
def line(echo: Echo) -> Iterator[Line]:
    with Line(echo.port) as new_line:
        yield new_line


def dial(line: Line) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", line.port), timeout=30)
    connection.settimeout(30)
    return connection


def receive(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count and (chunk := connection.recv(count - len(data))):
        data += chunk
    return data


def test_bytes_pass_both_ways_and_are_counted(line: Line, echo: Echo) -> None:
    data = bytes(range(256)) * 4000
    with dial(line) as connection:
        threading.Thread(target=connection.sendall, args=(data,), daemon=True).start()
        assert receive(connection, len(data)) == data
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""
    assert (line.bytes_up, line.bytes_down, line.connections) == (len(data), len(data), 1)
    until(lambda: echo.endings == ["end"], "the server has seen the end")


def test_a_delay_is_added_to_the_round_trip(line: Line) -> None:
    line.delay_s = 0.4
    with dial(line) as connection:
        began = time.monotonic()
        connection.sendall(b"x")
        assert receive(connection, 1) == b"x"
        assert time.monotonic() - began >= 0.4


def test_a_hanging_line_passes_nothing_and_then_everything(line: Line) -> None:
    with dial(line) as connection:
        connection.sendall(b"before")
        assert receive(connection, 6) == b"before"
        line.hang()
        connection.sendall(b"during")
        connection.settimeout(0.3)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        connection.settimeout(30)
        line.resume()
        assert receive(connection, 6) == b"during"


def test_a_cut_resets_both_sides_at_once(line: Line, echo: Echo) -> None:
    with dial(line) as connection:
        connection.sendall(b"x")
        assert receive(connection, 1) == b"x"
        assert line.cut() == 1
        with pytest.raises(ConnectionResetError):
            connection.recv(1)
    until(lambda: echo.endings == ["reset"], "the server has seen the reset")
    assert line.cuts == 1


def test_a_cut_after_some_bytes_lets_exactly_those_through(line: Line) -> None:
    line.cut_after(bytes_up=10)
    with dial(line) as connection:
        connection.sendall(b"0123456789abcdef")
        with pytest.raises(ConnectionResetError):
            receive(connection, 100)
    assert (line.bytes_up, line.cuts) == (10, 1)
    with dial(line) as connection:
        connection.sendall(b"it was once only")
        assert receive(connection, 16) == b"it was once only"


def test_a_refusing_line_can_accept_again_at_the_same_port(line: Line) -> None:
    port = line.port
    line.refuse()
    with pytest.raises(ConnectionRefusedError):
        dial(line)
    line.accept()
    with dial(line) as connection:
        connection.sendall(b"x")
        assert receive(connection, 1) == b"x"
    assert line.port == port


def test_a_hanging_line_can_be_closed(echo: Echo) -> None:
    line = Line(echo.port)
    with dial(line) as connection:
        connection.sendall(b"x")
        line.hang()
        line.close()
        with pytest.raises(ConnectionResetError):
            receive(connection, 100)


def test_a_profile_over_the_line_has_the_same_host_keys(line: Line, tmp_path: Path) -> None:
    known_hosts = tmp_path / "known_hosts"
    known_hosts.write_text(f"[127.0.0.1]:{line.target_port} ssh-ed25519 AAAA\n[127.0.0.1]:1 ssh-ed25519 BBBB\n")
    profile = SlurmProfile("node", "node", "a", "p", "/i", known_hosts=str(known_hosts))
    changed = line.profile(profile)
    assert changed.port == line.port
    assert Path(changed.known_hosts or "").read_text() == f"[127.0.0.1]:{line.port} ssh-ed25519 AAAA\n"
