"""Dead and busy links: `tests.rig.line.Line` between the connection and a login node of the tests."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from llmb_tui.cluster.failures import DisconnectedError
from llmb_tui.cluster.prompter import NonInteractivePrompter
from llmb_tui.cluster.ssh import heartbeat
from llmb_tui.cluster.ssh.connect import connect
from llmb_tui.cluster.ssh.connection import Connection
from tests.cluster.login_node import LoginNode
from tests.cluster.narrow_line import NarrowLine
from tests.kit.waiting import until
from tests.rig.line import Line


@pytest.fixture
def line(node: LoginNode) -> Iterator[Line]:
    with Line(node.port) as line:
        yield line


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A heartbeat whose limit is 1.5 s."""
    monkeypatch.setattr(heartbeat, "ASK_EVERY_S", 0.5)
    monkeypatch.setattr(heartbeat, "PATIENCE_S", 1.0)
    monkeypatch.setattr(heartbeat, "CHECK_EVERY_S", 0.1)


def over(line: Line, node: LoginNode) -> Connection:
    return connect(line.profile(node.profile()), NonInteractivePrompter())


def in_thread(use: Callable[[], object]) -> tuple[threading.Thread, list[Exception]]:
    failures: list[Exception] = []

    def run() -> None:
        try:
            use()
        except Exception as error:  # noqa: BLE001 - the test looks at it
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, failures


@pytest.mark.usefixtures("quick")
def test_all_waiting_callers_of_a_dead_line_get_an_error(node: LoginNode, line: Line) -> None:
    connection = over(line, node)
    stream = connection.stream(["sh", "-c", "echo up; cat"])
    assert stream.read(10) == b"up\n"
    reading, read_failures = in_thread(lambda: stream.read(300))
    running, run_failures = in_thread(lambda: connection.run(["sleep", "300"], deadline_s=300))
    writing, write_failures = in_thread(lambda: connection.write_file(str(node.home / "big"), b"x" * 300_000_000))
    until(lambda: line.bytes_up > 10_000_000)
    line.hang()
    for thread in (reading, running, writing):
        thread.join(30)
    assert [type(failures[0]) for failures in (read_failures, run_failures, write_failures)] == [DisconnectedError] * 3


@pytest.mark.usefixtures("quick")
def test_a_line_that_hangs_for_a_moment_lives_on(node: LoginNode, line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "PATIENCE_S", 30.0)
    connection = over(line, node)
    line.hang()
    until(lambda: connection.pulse.awaited_s > 1)
    assert connection.pulse.silent_s > 1
    line.resume()
    until(lambda: connection.pulse.awaited_s == 0.0)
    assert connection.run(["echo", "well"]).stdout == "well\n"
    connection.close()


@pytest.mark.usefixtures("quick")
def test_a_hanging_command_is_not_a_dead_line(node: LoginNode, line: Line) -> None:
    connection = over(line, node)
    assert connection.run_script("sleep 5; echo late").stdout == "late\n"
    assert connection.alive
    connection.close()


@pytest.mark.usefixtures("quick")
def test_a_line_full_of_output_is_not_silent(node: LoginNode) -> None:
    size = 600_000
    with NarrowLine(node.port, bytes_per_s=100_000) as line:  # answers arrive later than the limit
        connection = over(line, node)
        received = 0
        with connection.stream(["head", "-c", str(size), "/dev/zero"]) as stream:
            while data := stream.read(30):
                received += len(data)
        assert received == size
        assert connection.alive
        connection.close()


def test_the_round_trip_is_measured(node: LoginNode, line: Line) -> None:
    line.delay_s = 0.4
    connection = over(line, node)
    until(lambda: connection.pulse.round_trip_s is not None)
    assert (connection.pulse.round_trip_s or 0) >= 0.4
    connection.close()


@pytest.mark.parametrize("end", ["closed here", "cut", "silent"])
@pytest.mark.usefixtures("quick")
def test_the_route_is_closed_once_whatever_ends_the_connection(node: LoginNode, line: Line, end: str) -> None:
    ended: list[str] = []
    known = threading.active_count()
    connection = over(line, node)
    again = Connection(connection._transport, "node", on_close=lambda: ended.append(end))
    {"closed here": again.close, "cut": line.cut, "silent": line.hang}[end]()
    until(lambda: ended)
    until(lambda: threading.active_count() <= known + 1)  # a thread of the server may still wait for bytes of the line
    assert ended == [end]


class Clock:
    """Clock of the heartbeat."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead_s


def test_a_program_that_was_stopped_does_not_blame_the_line(
    node: LoginNode, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(heartbeat, "time", clock)
    connection = over(line, node)
    line.hang()
    until(lambda: connection.pulse.awaited_s > 0.5)
    clock.ahead_s = 3600.0  # as after ctrl+z and fg: the bytes that arrived meanwhile are unread
    until(lambda: 1.0 < connection.pulse.awaited_s < 5.0 or not connection.alive)
    line.resume()
    assert connection.run(["echo", "well"]).stdout == "well\n"
    connection.close()


def test_closing_wakes_a_thread_that_waits_for_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host is notified, too: a socket that a thread waits for would stay open."""
    monkeypatch.setattr(heartbeat, "LISTENS_S", 3600.0)
    ours, theirs = socket.socketpair()
    with theirs:
        transport = heartbeat.HeardTransport(ours)
        transport.start_client(event=threading.Event())
        assert theirs.recv(8) == b"SSH-2.0-"  # it waits for bytes from here on, and none come
        transport.close()
        until(lambda: not transport.is_alive(), "the transport has ended")


def test_a_dead_line_is_noticed_within_15_seconds() -> None:
    """The sum of its parts: the pause after an answer, the wait for the next answer, and the interval of the checks."""
    assert heartbeat.ASK_EVERY_S + heartbeat.PATIENCE_S + heartbeat.CHECK_EVERY_S < 15
