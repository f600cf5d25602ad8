"""A server with few sessions: commands and streams share them."""

from __future__ import annotations

import threading

import pytest

from llmb_tui.cluster.failures import DeadlineError, DisconnectedError, StreamPreemptedError
from llmb_tui.cluster.link import Stream
from llmb_tui.cluster.prompter import NonInteractivePrompter
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.cluster.ssh import channel_slots
from llmb_tui.cluster.ssh.connect import connect
from llmb_tui.cluster.ssh.connection import Connection
from tests.cluster.login_node import LoginNode
from tests.kit.waiting import until


@pytest.fixture
def connection(node: LoginNode) -> Connection:
    node.max_sessions = 1
    return connect(node.profile(), NonInteractivePrompter())


def start_stream(connection: Connection) -> Stream:
    """A stream that runs until its stdin ends."""
    stream = connection.stream(["sh", "-c", "echo up; cat; exit"])
    assert stream.read(10) == b"up\n"
    return stream


def test_a_command_preempts_a_stream_which_may_start_again(connection: Connection) -> None:
    stream = start_stream(connection)
    assert connection.run(["echo", "here"], deadline_s=30).stdout == "here\n"
    with pytest.raises(StreamPreemptedError) as caught:
        stream.read(10)
    assert isinstance(caught.value, DisconnectedError)
    assert connection.alive
    start_stream(connection).close()
    connection.close()


def test_received_bytes_of_a_stream_are_returned_before_its_error(connection: Connection) -> None:
    stream = connection.stream(["sh", "-c", "echo one; cat; exit"])
    until(lambda: connection.run(["true"], deadline_s=30))
    assert stream.read(10) == b"one\n"
    with pytest.raises(StreamPreemptedError):
        stream.read(10)
    connection.close()


def test_a_stream_has_its_turn_first(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_slots, "TURN_S", 3600.0)
    stream = start_stream(connection)
    with pytest.raises(DeadlineError):
        connection.run(["true"], deadline_s=1)
    assert stream.read(0.1) is None
    connection.close()


def test_a_second_stream_preempts_the_first(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_slots, "TURN_S", 0.1)
    first = start_stream(connection)
    second = start_stream(connection)
    with pytest.raises(StreamPreemptedError):
        first.read(10)
    assert second.read(0.1) is None
    connection.close()


def test_the_oldest_stream_is_preempted(node: LoginNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_slots, "TURN_S", 0.1)
    node.max_sessions = 3
    connection = connect(node.profile(), NonInteractivePrompter())
    streams = [start_stream(connection) for _ in range(3)]
    connection.run(["true"], deadline_s=30)
    with pytest.raises(StreamPreemptedError):
        streams[0].read(10)
    assert [stream.read(0.1) for stream in streams[1:]] == [None, None]
    connection.close()


def test_a_refused_session_is_not_requested_all_the_time(node: LoginNode, connection: Connection) -> None:
    first = threading.Thread(target=connection.run_script, args=("while [ ! -e go ]; do sleep 0.05; done",))
    first.start()
    until(lambda: node.sessions_at_once == 1)
    with pytest.raises(DeadlineError):
        connection.run(["true"], deadline_s=2)
    (node.home / "go").touch()
    first.join(20)
    assert node.refusals == 1
    connection.close()


def test_the_number_of_sessions_after_a_refusal_is_forgotten_in_time(
    node: LoginNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before that, streams take turns; afterwards no stream has to give way."""
    node.max_sessions = 1
    connection = connect(node.profile(), NonInteractivePrompter())
    stream = start_stream(connection)
    connection.run(["true"], deadline_s=30)
    stream.close()
    node.max_sessions = 10
    monkeypatch.setattr(channel_slots, "TURN_S", 3600.0)
    monkeypatch.setattr(channel_slots, "BELIEVED_S", 0.0)
    streams = [start_stream(connection), start_stream(connection)]
    assert [stream.read(0.1) for stream in streams] == [None, None]
    connection.close()


def test_commands_that_hang_there_do_not_keep_the_others_out(node: LoginNode) -> None:
    """A command past its deadline occupies its session for as long as it hangs; a new connection has new sessions."""
    node.max_sessions = 1
    session = SlurmCluster(node.profile())
    with pytest.raises(DeadlineError):
        session.run_script("exec sleep 60", deadline_s=0.5)
    assert session.run(["echo", "here"], deadline_s=30).stdout == "here\n"
    assert len(node.transports) == 2
    session.close()
