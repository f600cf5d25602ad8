"""The rig's SSH servers: each accepts its own way to log in."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import paramiko
import pytest

from tests.kit.waiting import until
from tests.rig.client import PASSPHRASE
from tests.rig.cluster import Rig
from tests.rig.machine import REPOSITORY
from tests.rig.sshd import BANNER, BEHIND

HOLD_A_RIG = """
import sys
from tests.rig.cluster import Rig
rig = Rig(slurm=False).start()
print(rig.port(), rig.machine.daemon("sleeper", ["sleep", "1000"]).pid, flush=True)
sys.stdin.read()
"""


def ssh(rig: Rig, *words: str) -> subprocess.CompletedProcess[str]:
    command = ["ssh", "-F", str(rig.client.config), "-o", "BatchMode=yes", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def connect(rig: Rig, endpoint: str) -> paramiko.Transport:
    transport = paramiko.Transport(("127.0.0.1", rig.port(endpoint)))
    transport.start_client(timeout=30)
    return transport


def key(rig: Rig) -> paramiko.PKey:
    return paramiko.Ed25519Key.from_private_key_file(str(rig.client.key()))


def test_plain_ssh_reaches_the_login_node_and_shows_its_banner(login: Rig) -> None:
    done = ssh(login, "login", "hostname; whoami; pwd; command -v enroot")
    assert done.stdout.split() == ["login01", "operator", "/home/operator", "/usr/local/bin/enroot"]
    assert done.stderr == BANNER


def test_processes_that_lost_their_parent_leave_nothing(login: Rig) -> None:
    """Thousands of zombies would make each `ps` take a tenth of a second of processor time."""
    login.as_root("for one in 1 2 3 4 5 6 7 8; do (true &); done", check=True)
    until(lambda: "Z" not in login.as_root(["ps", "-A", "-o", "stat="]).stdout, "the last zombie is gone")


def test_only_the_bastion_resolves_a_node_behind_it(login: Rig) -> None:
    assert ssh(login, "behind", "hostname").stdout == "login01\n"
    with pytest.raises(OSError, match=r"not known|No address|resolution"):
        socket.getaddrinfo(BEHIND, 22)


def test_the_bastion_gives_no_shell(login: Rig) -> None:
    assert ssh(login, "bastion", "hostname").stdout == ""


def test_a_key_with_a_passphrase_is_accepted(login: Rig) -> None:
    transport = connect(login, "enc")
    encrypted = paramiko.Ed25519Key.from_private_key_file(str(login.client.key("id_enc")), PASSPHRASE)
    assert transport.auth_publickey(login.user, encrypted) == []
    transport.close()


def test_a_password_is_accepted(login: Rig) -> None:
    transport = connect(login, "password")
    assert transport.auth_password(login.user, login.password) == []
    transport.close()


def test_the_second_factor_follows_the_key(login: Rig) -> None:
    transport = connect(login, "mfa")
    assert transport.auth_publickey(login.user, key(login)) == ["keyboard-interactive"]
    prompts_seen: list[str] = []

    def answer(_title: str, _words: str, prompts: list[tuple[str, bool]]) -> list[str]:
        prompts_seen.extend(prompt for prompt, _ in prompts)
        return [login.totp() for _ in prompts]

    assert transport.auth_interactive(login.user, answer) == []
    assert prompts_seen == ["Verification code: "]
    transport.close()


def test_the_server_requests_the_password_and_then_the_code(login: Rig) -> None:
    transport = connect(login, "pwotp")
    rounds: list[list[str]] = []

    def answer(_title: str, _words: str, prompts: list[tuple[str, bool]]) -> list[str]:
        rounds.append([prompt for prompt, _ in prompts])
        return [login.password if "assword" in prompt else login.totp() for prompt, _ in prompts]

    assert transport.auth_interactive(login.user, answer) == []
    assert [prompts for prompts in rounds if prompts] == [["Password: "], ["Verification code: "]]
    transport.close()


def test_a_code_can_be_made_to_count_once(login: Rig) -> None:
    login.servers.write_authenticator("DISALLOW_REUSE")
    code = login.totp()
    try:
        for expected in (True, False):
            transport = connect(login, "mfa")
            transport.auth_publickey(login.user, key(login))
            with contextlib.suppress(paramiko.AuthenticationException):
                transport.auth_interactive(login.user, lambda _t, _w, prompts: [code for _ in prompts])
            assert transport.is_authenticated() is expected
            transport.close()
    finally:
        login.servers.write_authenticator()


def test_the_tight_server_allows_one_session_and_two_waiting_connections(login: Rig) -> None:
    transport = connect(login, "tight")
    assert transport.auth_publickey(login.user, key(login)) == []
    transport.open_session().exec_command("sleep 5")
    with pytest.raises(paramiko.ChannelException):
        transport.open_session()
    transport.close()
    waiting = [socket.create_connection(("127.0.0.1", login.port("tight"))) for _ in range(2)]
    assert all(line.recv(4) == b"SSH-" for line in waiting)
    with socket.create_connection(("127.0.0.1", login.port("tight"))) as third:
        assert _greeting(third) != b"SSH-"
    for line in waiting:
        line.close()


def _greeting(line: socket.socket) -> bytes:
    try:
        return line.recv(4)
    except ConnectionResetError:
        return b""


def test_a_changed_host_key_is_noticed_by_ssh_and_is_only_for_a_while(login: Rig) -> None:
    with login.servers.changed_host_key():
        assert "REMOTE HOST IDENTIFICATION HAS CHANGED" in ssh(login, "login", "true").stderr
    assert ssh(login, "login", "true").returncode == 0


def test_a_restart_ends_connections_and_serves_new_ones(login: Rig) -> None:
    transport = connect(login, "login")
    transport.auth_publickey(login.user, key(login))
    login.servers.restart("login")
    until(lambda: not transport.is_active(), "the connection has ended")
    assert ssh(login, "login", "true").returncode == 0


def test_ending_sessions_leaves_the_server_alone(login: Rig) -> None:
    transport = connect(login, "login")
    transport.auth_publickey(login.user, key(login))
    login.servers.end_sessions("login")
    until(lambda: not transport.is_active(), "the connection has ended")
    assert ssh(login, "login", "true").returncode == 0


def test_processes_of_the_operator_are_listed(login: Rig) -> None:
    login.as_operator("sleep 987 >/dev/null 2>&1 &", check=True)
    until(lambda: "sleep 987" in login.operator_processes(), "the shell's child runs sleep")
    login.as_root(["pkill", "-f", "^sleep 987"], check=True)
    until(lambda: "sleep 987" not in login.operator_processes(), "the process has ended")


def test_a_fresh_home_is_empty_and_lets_the_operator_in(login: Rig) -> None:
    login.as_operator("touch old", check=True)
    with login.fresh_home() as home:
        assert ssh(login, "login", "touch new; ls").stdout == "new\n"
        assert (home / "new").exists()
    assert ssh(login, "login", "ls").stdout == "old\n"


def test_a_rig_ends_with_the_process_that_holds_it(login: Rig) -> None:
    assert login
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD_A_RIG], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY
    )
    assert holder.stdout
    port, sleeper = map(int, holder.stdout.readline().split())
    with socket.create_connection(("127.0.0.1", port)):
        pass
    os.kill(holder.pid, signal.SIGKILL)
    holder.communicate()
    until(lambda: not Path(f"/proc/{sleeper}").exists(), "the rig's processes have ended")
