"""Routes to real SSH servers: jump hosts, proxy commands, host keys on the route, busy servers."""

from __future__ import annotations

import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from llmb_tui.cluster.failures import AuthenticationError, HostKeyChangedError, HostKeyUnknownError, UnreachableError
from llmb_tui.cluster.prompter import NonInteractivePrompter
from llmb_tui.cluster.ssh.connect import connect
from tests.cluster.login_node import Person
from tests.kit.waiting import until
from tests.rig.cluster import Rig
from tests.rig.connect.servers import configured, connections, log_of, with_options
from tests.rig.sshd import BEHIND


@pytest.fixture(autouse=True)
def _no_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


def test_a_jump_host_forwards_and_is_closed_at_the_end(login: Rig) -> None:
    connection = connect(login.profile("behind"), NonInteractivePrompter())
    assert connection.run(["id", "-un"]).stdout == "operator\n"
    assert connection.asks_nobody
    assert connections(login, "bastion")

    connection.close()

    until(lambda: not connections(login, "behind") and not connections(login, "bastion"))


def test_a_jump_host_is_left_when_the_login_node_is_gone(login: Rig) -> None:
    connection = connect(login.profile("behind"), NonInteractivePrompter())
    login.servers.end_sessions("behind")
    until(lambda: not connection.alive and not connections(login, "bastion"))


def test_each_of_several_jump_hosts_prompts_separately(login: Rig, tmp_path: Path) -> None:
    profile = configured(login, tmp_path, "Host behind\nProxyJump password,mfa", "behind")
    person = Person(answers=[login.password, login.totp()])
    connection = connect(profile, person)
    assert [prompt for prompt, _ in person.prompts] == [
        "Password for operator@password: ",
        "(operator@mfa) Verification code: ",
    ]
    assert not connection.asks_nobody
    assert connection.run(["id", "-un"]).stdout == "operator\n"
    connection.close()


def test_an_error_names_the_hop(login: Rig, tmp_path: Path) -> None:
    with pytest.raises(AuthenticationError, match=r"password.*on the way to behind"):
        connect(configured(login, tmp_path, "Host behind\nProxyJump password", "behind"), NonInteractivePrompter())
    with pytest.raises(UnreachableError, match=r"gate \(127.0.0.1\), port 1, on the way to behind"):
        connect(
            configured(login, tmp_path, "Host gate\nPort 1\nHost behind\nProxyJump gate", "behind"),
            NonInteractivePrompter(),
        )
    with pytest.raises(UnreachableError, match="bastion") as caught:
        connect(configured(login, tmp_path, "Host behind\nPort 1", "behind"), NonInteractivePrompter())
    assert "could not connect to it" in caught.value.why
    with (
        with_options(login, "bastion", "AllowTcpForwarding no"),
        pytest.raises(UnreachableError, match="does not forward"),
    ):
        connect(login.profile("behind"), NonInteractivePrompter())


def test_a_proxy_command_is_the_line(login: Rig, tmp_path: Path) -> None:
    config = f"Host far\nHostName {BEHIND}\nPort {login.port('behind')}\nIdentityFile {login.client.key()}\n"
    config += f"ProxyCommand ssh -F {login.client.config} -W [%h]:%p bastion"
    connection = connect(configured(login, tmp_path, config, "far"), NonInteractivePrompter())
    assert connection.run(["id", "-un"]).stdout == "operator\n"
    command = f"-W [{BEHIND}]:{login.port('behind')}"
    assert _runs(command)

    connection.close()

    until(lambda: not _runs(command))


def test_a_proxy_command_that_would_stay_is_ended(login: Rig, tmp_path: Path) -> None:
    relay = tmp_path / "relay.py"
    relay.write_text(
        "import os, signal, socket, sys, threading\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "line = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n"
        "def up():\n"
        "    while data := os.read(0, 65536): line.sendall(data)\n"
        "    signal.pause()\n"
        "def down():\n"
        "    while data := line.recv(65536): os.write(1, data)\n"
        "threading.Thread(target=down, daemon=True).start()\n"
        "up()\n"
    )
    command = f"Host login\nProxyCommand {sys.executable} {relay} %h %p"
    connection = connect(configured(login, tmp_path, command, "login"), NonInteractivePrompter())
    assert connection.run(["id", "-un"]).stdout == "operator\n"
    assert _runs(str(relay))
    connection.close()
    until(lambda: not _runs(str(relay)))


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("sh -c 'echo one >&2; printf \"no \\033[31mroute\\n\" >&2; exit 1'", "no route"),
        ("sh -c 'echo first >&2; read answer </dev/tty'", "tty"),
    ],
)
def test_a_proxy_command_that_fails_is_quoted(login: Rig, tmp_path: Path, command: str, words: str) -> None:
    with pytest.raises(UnreachableError) as caught:
        connect(configured(login, tmp_path, f"Host login\nProxyCommand {command}", "login"), NonInteractivePrompter())
    assert words in caught.value.why
    assert "\033" not in caught.value.why


def _runs(words: str) -> bool:
    processes = subprocess.run(["ps", "-ewwo", "stat=,args="], capture_output=True, text=True, check=True).stdout
    return any(words in line and not line.startswith("Z") for line in processes.splitlines())


def known_hosts_without(rig: Rig, tmp_path: Path, *endpoints: str) -> Path:
    """The rig's known_hosts file without the entries of some endpoints."""
    file = tmp_path / "known_hosts"
    ports = [f":{rig.port(name)} " for name in endpoints]
    lines = rig.client.known_hosts.read_text().splitlines(keepends=True)
    file.write_text("".join(line for line in lines if not any(port in line for port in ports)))
    return file


@pytest.mark.parametrize("unknown", ["behind", "bastion"])
def test_an_unknown_key_on_the_route_is_stored_only_after_confirmation(
    login: Rig, tmp_path: Path, unknown: str
) -> None:
    file = known_hosts_without(login, tmp_path, unknown)
    before = file.read_text()
    profile = configured(login, tmp_path, f"Host *\nUserKnownHostsFile {file}\nHashKnownHosts yes", "behind")
    refuses, accepts = Person(accepts=False), Person(accepts=True)

    with pytest.raises(HostKeyUnknownError):
        connect(profile, refuses)
    assert file.read_text() == before

    connect(profile, accepts).close()
    connect(profile, NonInteractivePrompter()).close()
    host = BEHIND if unknown == "behind" else "127.0.0.1"
    assert [key[0] for key in (*refuses.host_keys, *accepts.host_keys)] == [f"[{host}]:{login.port(unknown)}"] * 2
    added = file.read_text().removeprefix(before)
    assert added.startswith("|1|")


@pytest.mark.parametrize("changed", ["behind", "bastion"])
def test_a_changed_key_on_the_way_stops_it_with_both_fingerprints(login: Rig, changed: str) -> None:
    old = login.directory / "ssh" / "host_ed25519.pub"
    with login.servers.changed_host_key(changed) as new:
        person = Person(accepts=True)
        with pytest.raises(HostKeyChangedError) as caught:
            connect(login.profile("behind"), person)
    for file in (old, new):
        digest = subprocess.run(["ssh-keygen", "-lf", str(file)], capture_output=True, check=True, text=True).stdout
        assert digest.split()[1] in caught.value.why
    assert person.host_keys == []
    assert str(login.client.known_hosts) in caught.value.fix


def test_known_hosts_is_searched_for_the_host_key_alias(login: Rig, tmp_path: Path) -> None:
    key = (login.directory / "ssh" / "host_ed25519.pub").read_text().split()
    (tmp_path / "known_hosts").write_text(f"cluster {key[0]} {key[1]}\n")
    config = f"Host login\nHostKeyAlias cluster\nUserKnownHostsFile {tmp_path}/none {tmp_path}/known_hosts\n"
    config += "StrictHostKeyChecking yes"
    connect(configured(login, tmp_path, config, "login"), NonInteractivePrompter()).close()
    profile = configured(login, tmp_path, config.replace("cluster", "other"), "login")
    with pytest.raises(HostKeyUnknownError, match="StrictHostKeyChecking"):
        connect(profile, Person(accepts=True))


def test_a_busy_server_is_waited_for(login: Rig) -> None:
    """`tight` accepts only two connections that have not logged in yet."""
    port = login.port("tight")
    with ExitStack() as others, ThreadPoolExecutor(1) as pool:
        for _ in range(2):
            others.enter_context(socket.create_connection(("127.0.0.1", port))).recv(1)
        refusals = log_of(login, "tight").count("drop connection")
        connecting = pool.submit(connect, login.profile("tight"), NonInteractivePrompter())
        until(lambda: log_of(login, "tight").count("drop connection") > refusals)
        others.close()
        connecting.result().close()
