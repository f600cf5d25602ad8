"""The SSH server of the demo cluster, with a real client."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

import paramiko
import pytest

from llmb_tui.demo.cluster import DemoCluster
from tests.demo.demo_client import Client
from tests.kit.demo import drop_connections, refuse
from tests.kit.waiting import until


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def program_of(pid: int) -> str:
    return subprocess.check_output(["ps", "-o", "comm=", "-p", str(pid)], text=True).strip()


def test_a_command_has_its_output_errors_and_exit_status(client: Client) -> None:
    answer = client.run("echo out; echo err >&2; exit 7")
    assert (answer.code, answer.out, answer.err) == (7, "out\n", "err\n")


def test_a_command_that_a_signal_ends_has_no_exit_status(client: Client) -> None:
    assert client.run("kill -9 $$").code == -1


def test_the_environment_is_clean_and_the_home_is_the_clusters(
    cluster: DemoCluster, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_LAPTOP", "1")
    home = str(cluster.root / "home")
    lines = client.run("pwd; echo ~; env; command -v squeue").out.splitlines()
    assert lines[:2] == [home, home]
    assert lines[-1] == str(cluster.root / "bin" / "squeue")
    assert not any("SECRET_OF_THE_LAPTOP" in line for line in lines)


def test_several_threads_run_commands_on_one_connection(client: Client) -> None:
    answers: list[str] = []

    def run_many(name: str) -> None:
        answers.extend(client.run(f"echo {name}{number}").out for number in range(40))

    threads = [threading.Thread(target=run_many, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == sorted(f"{name}{number}\n" for name in "abc" for number in range(40))


def test_large_output_arrives_whole(client: Client) -> None:
    code = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 32768)"
    channel = client.start(f"{sys.executable} -c '{code}'")
    got = channel.makefile("rb").read()
    assert hashlib.sha256(got).digest() == hashlib.sha256(bytes(range(256)) * 32768).digest()


def test_large_input_goes_through_and_ends(client: Client) -> None:
    data = os.urandom(3_000_000)
    channel = client.start("cat")

    def write() -> None:
        channel.sendall(data)
        channel.shutdown_write()

    writer = threading.Thread(target=write)
    writer.start()
    assert channel.makefile("rb").read() == data
    writer.join()


def test_unread_input_does_not_block(client: Client) -> None:
    channel = client.start("exec <&-; echo done")
    with suppress(OSError):  # the command may end, and its channel may close, before all bytes are sent
        channel.sendall(b"x" * 500_000)
    assert channel.makefile("rb").read() == b"done\n"


def test_the_exit_status_comes_before_the_end_of_a_background_process(client: Client) -> None:
    channel = client.start("sleep 60 & echo $!")
    assert channel.recv_exit_status() == 0
    pid = int(channel.recv(100))
    assert not channel.eof_received
    os.kill(pid, 9)
    assert channel.recv(100) == b""


def test_a_connection_allows_at_most_ten_channels_at_once(client: Client) -> None:
    channels = [client.start("echo ready; cat") for _ in range(10)]
    assert [channel.recv(100) for channel in channels] == [b"ready\n"] * 10
    with pytest.raises(paramiko.ChannelException) as refused:
        client.transport.open_session(timeout=10)
    assert refused.value.code == 2
    channels[0].shutdown_write()
    assert channels[0].recv(100) == b""
    until(lambda: channels[0].closed, "the channel to be closed")
    assert client.run("echo again").out == "again\n"


def test_closing_the_channel_ends_the_command(client: Client) -> None:
    channel = client.start("echo $$; sleep 60")
    pid = int(channel.recv(100))
    channel.close()
    until(lambda: gone(pid), "the command to end")


@pytest.mark.parametrize(
    "detached",
    [
        "nohup sleep 60 </dev/null >/dev/null 2>&1 & echo $!",
        f'{sys.executable} -c \'import subprocess; print(subprocess.Popen(["sleep", "60"], start_new_session=True,'
        " stdout=subprocess.DEVNULL).pid)'",
    ],
)
def test_detached_processes_live_on(client: Client, detached: str) -> None:
    channel = client.start(f"{detached}; echo $$; sleep 60")
    lines = channel.makefile("r")
    pids = [int(lines.readline()) for _ in range(2)]
    until(lambda: program_of(pids[0]) == "sleep", "nohup to have become its program")
    channel.close()
    until(lambda: gone(pids[1]), "the command to end")
    assert not gone(pids[0])
    os.kill(pids[0], 9)


@pytest.mark.parametrize("change", ["user", "key", "password"])
def test_other_users_and_keys_are_refused(cluster: DemoCluster, change: str) -> None:
    profile = cluster.profile
    assert profile.identity_file
    with paramiko.Transport((profile.host, profile.port or 0)) as transport:
        transport.start_client(timeout=10)
        key = paramiko.ECDSAKey.from_private_key_file(profile.identity_file)
        user = profile.user or ""
        attempts = {
            "user": lambda: transport.auth_publickey("somebody-else", key),
            "key": lambda: transport.auth_publickey(user, paramiko.RSAKey.generate(2048)),
            "password": lambda: transport.auth_password(user, ""),
        }
        with pytest.raises(paramiko.AuthenticationException):
            attempts[change]()


@pytest.mark.parametrize("kind", ["shell", "pty", "sftp"])
def test_commands_only(client: Client, kind: str) -> None:
    channel = client.transport.open_session(timeout=10)
    requests: dict[str, Callable[[], None]] = {
        "shell": channel.invoke_shell,
        "pty": channel.get_pty,
        "sftp": lambda: channel.invoke_subsystem("sftp"),
    }
    with pytest.raises(paramiko.SSHException):
        requests[kind]()


def test_the_banner_states_that_it_is_simulated(client: Client) -> None:
    banner = (client.transport.get_banner() or b"").decode()
    assert "simulated" in banner
    assert "600 times faster" in banner


def test_a_keepalive_request_is_answered(client: Client) -> None:
    assert client.transport.global_request("keepalive@openssh.com", wait=True) is None
    assert client.transport.is_active()


def test_dropped_connections_are_cut_and_their_commands_end(cluster: DemoCluster, client: Client) -> None:
    pid = int(client.start("echo $$; sleep 3600").recv(100))
    drop_connections(cluster)
    until(lambda: not client.transport.is_active(), "the client to notice")
    until(lambda: gone(pid), "the command to end")
    again = Client(cluster.profile)
    assert again.run("echo back").out == "back\n"
    again.ssh.close()


def test_new_connections_can_be_refused_for_a_while(cluster: DemoCluster, client: Client) -> None:
    address = (cluster.profile.host, cluster.profile.port or 0)
    refuse(cluster, True)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, timeout=10)
    assert client.run("echo still here").out == "still here\n"
    refuse(cluster, False)
    again = Client(cluster.profile)
    assert again.run("echo back").out == "back\n"
    again.ssh.close()


def test_stopping_leaves_no_thread_and_no_command(cluster: DemoCluster, client: Client) -> None:
    before = set(threading.enumerate()) - {client.transport}
    pids = [int(client.start("echo $$; sleep 3600").recv(100)) for _ in range(3)]
    stopping = threading.Thread(target=cluster.stop, daemon=True)
    stopping.start()
    until(lambda: not stopping.is_alive(), "the cluster to stop without waiting for a command")
    until(lambda: all(gone(pid) for pid in pids), "the commands to end")
    until(lambda: not client.transport.is_alive(), "the client to notice")
    started_by_the_server = {thread for thread in set(threading.enumerate()) - before if thread.name.startswith("demo")}
    assert not started_by_the_server
    cluster.start()
