from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from llmb_tui.cluster.failures import DeadlineError, DisconnectedError, UnreachableError
from llmb_tui.cluster.prompter import NonInteractivePrompter
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.cluster.ssh.connect import connect
from llmb_tui.cluster.ssh.connection import Connection
from llmb_tui.errors import LlmbError
from tests.cluster.login_node import LoginNode
from tests.kit.waiting import until

STAYING_RELAY = """
import os, socket, sys, threading, time
held = open(sys.argv[3], "w")
line = socket.create_connection((sys.argv[1], int(sys.argv[2])))
def down():
    while data := line.recv(65536): os.write(1, data)
threading.Thread(target=down, daemon=True).start()
try:
    while data := os.read(0, 65536): line.sendall(data)
finally:
    time.sleep(600)
"""
PROGRAM = """
import sys
from llmb_tui.cluster.prompter import NonInteractivePrompter
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.cluster.ssh.connect import connect
profile = SlurmProfile(name="", host="eos", account="", partition="", install_dir="/x", ssh_config=sys.argv[1])
connection = connect(profile, NonInteractivePrompter())
print(connection.run(["echo", "came through"]).stdout)
if sys.argv[2] == "closes":
    connection.close()
"""


@pytest.fixture
def connection(node: LoginNode) -> Iterator[Connection]:
    connection = connect(node.profile(), NonInteractivePrompter())
    yield connection
    connection.close()


def test_output_that_was_cut_off_is_never_taken_for_all_of_it(node: LoginNode, connection: Connection) -> None:
    node.tells_exit_code_early = True
    with pytest.raises(DeadlineError):
        connection.run_script("echo part; sleep 60", deadline_s=0.3)
    assert connection.run(["echo", "all"]).stdout == "all\n"


def test_a_link_that_hangs_raises_in_time(node: LoginNode, connection: Connection) -> None:
    node.answering.clear()
    with pytest.raises(DeadlineError):
        connection.run(["true"], deadline_s=0.3)


def test_a_connection_that_breaks_under_a_command_leaves_its_outcome_unknown(
    node: LoginNode, connection: Connection
) -> None:
    failures: list[Exception] = []

    def run() -> None:
        try:
            connection.run_script("touch started; sleep 60")
        except LlmbError as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    until((node.home / "started").exists)
    node.cut()
    thread.join(10)

    assert [type(failure) for failure in failures] == [DisconnectedError]
    assert isinstance(failures[0], DisconnectedError)
    assert failures[0].may_have_run
    assert not connection.alive


def test_a_command_on_a_broken_connection_was_certainly_not_run(node: LoginNode, connection: Connection) -> None:
    node.cut()
    with pytest.raises(DisconnectedError) as caught:
        connection.run(["true"])
    assert not caught.value.may_have_run


def test_a_server_that_runs_no_commands_is_a_trouble(node: LoginNode, connection: Connection) -> None:
    node.refuse_exec = True
    with pytest.raises(LlmbError, match="refused to run"):
        connection.run(["true"])


def test_many_threads_share_the_connection_within_its_budget(node: LoginNode, connection: Connection) -> None:
    answers: list[str] = []
    threads = [
        threading.Thread(target=lambda i=i: answers.append(connection.run_script(f"sleep 0.05; echo {i}").stdout))
        for i in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(answers, key=int) == [f"{i}\n" for i in range(20)]
    assert node.sessions_at_once <= 8


def test_a_server_with_fewer_sessions_makes_commands_wait_for_their_turn(node: LoginNode) -> None:
    node.max_sessions = 1
    connection = connect(node.profile(), NonInteractivePrompter())
    answers: list[str] = []
    threads = [
        threading.Thread(target=lambda: answers.append(connection.run_script("sleep 0.2; echo ok").stdout))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    connection.close()
    assert answers == ["ok\n"] * 3
    assert node.sessions_at_once == 1


def test_channels_are_given_back_whatever_happens(connection: Connection) -> None:
    for _ in range(9):
        with pytest.raises(DeadlineError):
            connection.run(["sleep", "60"], deadline_s=0.05)
        connection.stream(["sleep", "0.1"]).close()
    assert connection.run(["echo", "ok"]).stdout == "ok\n"


def test_a_stream_reports_a_broken_link_after_its_last_bytes(node: LoginNode, connection: Connection) -> None:
    stream = connection.stream(["sh", "-c", "echo one; sleep 60"])
    assert stream.read(10) == b"one\n"
    node.cut()
    with pytest.raises(DisconnectedError):
        stream.read(10)


def test_closing_a_stream_ends_a_command_that_watches_its_stdin(node: LoginNode, connection: Connection) -> None:
    stream = connection.stream(["sh", "-c", "echo up; cat; touch ended"])
    assert stream.read(10) == b"up\n"
    stream.close()
    until((node.home / "ended").exists)


@pytest.mark.parametrize(
    ("failure", "why"),
    [
        (socket.gaierror(-2, "Name or service not known"), "The host name is unknown"),
        (TimeoutError("timed out"), "did not answer within"),
        (OSError(113, "No route to host"), "No route to host"),
    ],
)
def test_a_host_that_cannot_be_reached(
    node: LoginNode, monkeypatch: pytest.MonkeyPatch, failure: OSError, why: str
) -> None:
    def fail(*_: object, **__: object) -> socket.socket:
        raise failure

    monkeypatch.setattr("llmb_tui.cluster.ssh.sockets.connect_tcp", fail)
    with pytest.raises(UnreachableError) as caught:
        connect(node.profile(), NonInteractivePrompter())
    assert why in caught.value.why
    assert caught.value.fix


def test_an_upload_that_is_cut_leaves_the_old_file(node: LoginNode, connection: Connection) -> None:
    path = node.home / "file"
    path.write_bytes(b"old")
    cut: list[DisconnectedError] = []

    def upload() -> None:
        try:
            connection.write_file(str(path), b"n" * 300_000_000)
        except DisconnectedError as disconnected:
            cut.append(disconnected)

    thread = threading.Thread(target=upload)
    thread.start()
    until(lambda: any(p.name.endswith(".part") and p.stat().st_size for p in node.home.iterdir()))
    node.cut()
    thread.join(20)
    assert len(cut) == 1
    until(lambda: list(node.home.iterdir()) == [path])
    assert path.read_bytes() == b"old"


def test_the_banner_is_clean(node: LoginNode) -> None:
    node.banner = "Welcome\r\n\x1b[31mto \x1b]0;title\x07eos\n"
    connection = connect(node.profile(), NonInteractivePrompter())
    assert connection.banner == "Welcome\nto eos\n"
    connection.close()


def test_a_fast_cipher_and_key_exchange_are_agreed_on(node: LoginNode, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "paramiko"):
        connect(node.profile(), NonInteractivePrompter()).close()
    assert "Cipher: aes128-gcm@openssh.com" in caplog.text
    assert "Kex: curve25519-sha256@libssh.org" in caplog.text


def test_nothing_is_printed_when_a_server_talks_nonsense(node: LoginNode, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def nonsense() -> None:
            client, _ = server.accept()
            with client:
                client.recv(1000)
                client.sendall(b"HTTP/1.1 400 Bad Request\r\n\x1b[31m\r\n")

        threading.Thread(target=nonsense, daemon=True).start()
        with pytest.raises(UnreachableError, match="SSH handshake"):
            connect(replace(node.profile(), port=server.getsockname()[1]), NonInteractivePrompter())
    assert capfd.readouterr() == ("", "")


def test_a_port_that_nothing_listens_on(node: LoginNode) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(UnreachableError, match="port") as caught:
        connect(replace(node.profile(), port=port), NonInteractivePrompter())
    assert "refused the connection" in caught.value.why
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("end", ["closes", "returns"])
def test_a_proxy_command_that_would_stay_ends_with_the_program(node: LoginNode, tmp_path: Path, end: str) -> None:
    (tmp_path / "relay.py").write_text(STAYING_RELAY)
    os.mkfifo(tmp_path / "held")
    (tmp_path / "config").write_text(
        f"Host eos\nHostName 127.0.0.1\nPort {node.port}\nUser operator\nIdentityFile {node.key_file}\n"
        f"UserKnownHostsFile {node.known_hosts}\nGlobalKnownHostsFile none\n"
        f"ProxyCommand {sys.executable} {tmp_path}/relay.py %h %p {tmp_path}/held\n"
    )
    with os.fdopen(os.open(tmp_path / "held", os.O_RDONLY | os.O_NONBLOCK), "rb") as held:
        program = [sys.executable, "-c", PROGRAM, str(tmp_path / "config"), end]
        assert "came through" in subprocess.run(program, capture_output=True, text=True, check=True).stdout
        until(lambda: held.read() == b"", "the command to end")


def configured(node: LoginNode, tmp_path: Path, *lines: str) -> SlurmProfile:
    """A profile that reaches the node through the user's configuration with these lines."""
    config = [
        "Host eos",
        f"HostName 127.0.0.1\nPort {node.port}\nUser operator\nIdentityFile {node.key_file}",
        f"UserKnownHostsFile {node.known_hosts}\nGlobalKnownHostsFile none",
    ]
    (tmp_path / "config").write_text("\n".join([*config, *lines, ""]))
    return replace(
        node.profile(),
        host="eos",
        port=None,
        user=None,
        identity_file=None,
        known_hosts=None,
        ssh_config=str(tmp_path / "config"),
    )


TALKING_RELAY = """
import os, socket, sys, threading
print("Starting session with SessionId: a-0123", file=sys.stderr, flush=True)
line = socket.create_connection((sys.argv[1], int(sys.argv[2])))
def down():
    while data := line.recv(65536):
        os.write(1, data)
threading.Thread(target=down, daemon=True).start()
while data := os.read(0, 65536):
    line.sendall(data)
"""


def test_a_proxy_command_may_print_words_of_its_own(
    node: LoginNode, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "relay.py").write_text(TALKING_RELAY)
    profile = configured(node, tmp_path, f"ProxyCommand {sys.executable} {tmp_path}/relay.py %h %p")
    connection = connect(profile, NonInteractivePrompter())
    assert connection.run(["echo", "here"]).stdout == "here\n"
    connection.close()
    assert capfd.readouterr() == ("", "")


def test_a_remote_command_of_the_configuration_is_not_run(node: LoginNode, tmp_path: Path) -> None:
    profile = configured(node, tmp_path, "RemoteCommand sudo -iu bench", "RequestTTY force")
    connection = connect(profile, NonInteractivePrompter())
    assert connection.run(["echo", "here"]).stdout == "here\n"
    connection.close()
    assert not any(b"sudo" in command for command in node.commands)


def test_a_server_with_one_cipher_that_is_not_the_preferred_one(node: LoginNode) -> None:
    node.ciphers = ("aes256-gcm@openssh.com",)
    connection = connect(node.profile(), NonInteractivePrompter())
    assert connection.run(["echo", "here"]).stdout == "here\n"
    connection.close()
