"""Long streams: on a separate connection, or on the first connection together with commands."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from llmb_tui.cluster.failures import DisconnectedError
from llmb_tui.cluster.link import Stream
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.cluster.ssh import connection
from tests.cluster.login_node import LoginNode, Person, make_key
from tests.kit.waiting import until

_LONG = ("sh", "-c", "echo up; cat; exit")


@pytest.fixture
def session(node: LoginNode) -> Iterator[SlurmCluster]:
    session = SlurmCluster(node.profile())
    yield session
    session.close()


def long_stream(session: SlurmCluster) -> Stream:
    stream = session.stream(_LONG, bulk=True)
    assert stream.read(20) == b"up\n"
    return stream


def test_long_streams_share_a_second_connection_when_a_login_needs_no_prompt(
    node: LoginNode, session: SlurmCluster
) -> None:
    session.run(["true"])
    assert (len(node.transports), session.bulk.alive) == (1, False)
    streams = [long_stream(session) for _ in range(3)]
    session.run(["true"])
    assert (len(node.transports), session.bulk.alive) == (2, True)
    session.close()
    for stream in streams:
        with pytest.raises(DisconnectedError):
            stream.read(10)


def test_a_stream_that_is_not_long_stays_on_the_first(node: LoginNode, session: SlurmCluster) -> None:
    with session.stream(_LONG) as stream:
        assert stream.read(20) == b"up\n"
    assert len(node.transports) == 1


def test_a_login_that_prompted_is_not_repeated_for_streams(node: LoginNode) -> None:
    node.factors = ("publickey", "keyboard-interactive")
    node.rounds = (("Verification code: ",),)
    node.codes = ["111111", "222222"]
    person = Person(answers=["111111", "222222"])
    session = SlurmCluster(node.profile())
    session.connect(person)
    with long_stream(session):
        session.run(["true"])
        assert not session.bulk.alive
    assert (len(person.prompts), len(node.transports)) == (1, 1)
    session.close()


def test_if_a_second_login_is_refused_streams_share_the_first_without_an_error(
    node: LoginNode, session: SlurmCluster
) -> None:
    session.run(["true"])
    node.user_key = make_key(node.directory / "another")
    with long_stream(session):
        pass
    tried = len(node.transports)
    with long_stream(session):
        assert not session.bulk.alive
    assert len(node.transports) == tried  # no new attempt for a while


def test_a_second_connection_that_failed_is_tried_again_later(
    node: LoginNode, session: SlurmCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "RETRY_AFTER_S", 0.0)
    session.run(["true"])
    mine, node.user_key = node.user_key, make_key(node.directory / "another")
    long_stream(session).close()
    node.user_key = mine
    long_stream(session).close()
    assert session.bulk.alive


def test_a_broken_second_connection_is_replaced_without_errors_elsewhere(
    node: LoginNode, session: SlurmCluster
) -> None:
    session.run(["true"])
    stream = long_stream(session)
    node.transports[1].close()
    with pytest.raises(DisconnectedError):
        stream.read(10)
    assert session.state == "live"
    until(lambda: not session.bulk.alive)
    long_stream(session)
    assert (len(node.transports), session.bulk.alive) == (3, True)


def test_with_one_session_for_each_connection_a_long_stream_and_commands_run_together(
    node: LoginNode, session: SlurmCluster
) -> None:
    node.max_sessions = 1
    stream = long_stream(session)
    for _ in range(3):
        session.run(["true"])
    assert stream.read(0.1) is None
    assert len(node.transports) == 2


@pytest.mark.parametrize("moment_s", [3600.0, 0.01])
def test_streams_pause_for_a_command_but_only_briefly(
    session: SlurmCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, moment_s: float
) -> None:
    monkeypatch.setattr(connection, "PAUSE_S", moment_s)
    stream = long_stream(session)
    begun, may_end = tmp_path / "begun", tmp_path / "may end"
    command = 'touch "$1"; until [ -e "$2" ]; do sleep 0.02; done'
    running = threading.Thread(target=lambda: session.run(["sh", "-c", command, "sh", str(begun), str(may_end)]))
    running.start()
    until(begun.exists)
    stream.send_keepalive()  # the server answers it with a keepalive
    if moment_s > 1:
        assert stream.read(0.3) is None
        may_end.touch()
    assert stream.read(20) == b"\n"
    may_end.touch()
    running.join(60)
