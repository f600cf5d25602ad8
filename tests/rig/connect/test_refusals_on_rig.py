"""Logins that real servers refuse: the error has the true reason, and a remedy only if it helps."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from llmb_tui.cluster.batch import ask, run_batch
from llmb_tui.cluster.failures import AuthenticationError, HostKeyUnknownError, UnreachableError
from llmb_tui.cluster.prompter import NonInteractivePrompter
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.cluster.ssh.connect import connect
from llmb_tui.errors import LlmbError
from tests.cluster.login_node import Person
from tests.rig.cluster import Rig
from tests.rig.connect.servers import account_rules, configured, operators_password, with_options, without_keys

DOWN = "System is down for maintenance until 18:00"
EXPIRED = "Your account has expired; please contact your system administrator."
UNIX = "account required pam_unix.so"


@pytest.fixture(autouse=True)
def _no_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


def refusal(profile: SlurmProfile, *answers: str) -> LlmbError:
    with pytest.raises((AuthenticationError, UnreachableError)) as caught:
        connect(profile, Person(answers=list(answers)))
    return caught.value


@contextmanager
def maintenance(rig: Rig, endpoint: str) -> Iterator[None]:
    notice = rig.directory / "nologin"
    notice.write_text(f"{DOWN}\n")
    with account_rules(rig, endpoint, f"account required pam_nologin.so file={notice}"):
        yield


@pytest.mark.parametrize("alias", ["login", "password", "mfa", "pwotp"])
def test_a_refusal_during_maintenance_shows_the_sites_sentence(login: Rig, alias: str) -> None:
    answers = {"password": [login.password], "mfa": [login.totp()], "pwotp": [login.password, login.totp()]}
    with maintenance(login, alias if alias in ("mfa", "pwotp") else "login"):
        error = refusal(login.profile(alias), *answers.get(alias, []))
    assert DOWN in error.why
    assert "Check the user name" not in error.fix
    assert "Try again" not in error.fix


def test_a_login_by_key_during_maintenance_is_tried_again_later(login: Rig) -> None:
    """An UnreachableError lets a broken session connect again when the maintenance ends."""
    with maintenance(login, "login"):
        error = refusal(login.profile())
    assert isinstance(error, UnreachableError)
    assert error.why == f'The server\'s message: "{DOWN}".'
    assert f"`ssh -v -F {login.client.config} -p {login.port('login')} operator@login`" in error.fix


def test_an_expired_account_is_named(login: Rig) -> None:
    with account_rules(login, "login", UNIX), operators_password(login, account_ends_on="100"):
        assert EXPIRED in refusal(login.profile()).why
        assert EXPIRED in refusal(login.profile("password"), login.password).why


def test_a_refused_key_leaves_the_servers_greeting_readable(login: Rig, tmp_path: Path) -> None:
    banner = login.directory / "ssh" / "greeting"
    banner.write_text("Keys of 2025 were removed.\r\nSee https://example.org\r\n")
    with with_options(login, "login", f"Banner {banner}", "AuthenticationMethods publickey"):
        error = refusal(without_keys(login, tmp_path, "login"))
    assert 'The server\'s message: "Keys of 2025 were removed.\nSee https://example.org".' in error.why


def first_batch(rig: Rig, profile: SlurmProfile | None = None) -> LlmbError:
    session = SlurmCluster(profile or rig.profile())
    session.connect(NonInteractivePrompter())
    try:
        with pytest.raises(LlmbError) as caught:
            run_batch(session, {"id": "id"}, 20.0)
        with pytest.raises(LlmbError, match=re.escape(caught.value.what)):  # and not an empty answer
            ask(session, "true", failed=LlmbError, deadline_s=20.0)
        return caught.value
    finally:
        session.close()


def test_an_expired_password_is_named_with_the_way_to_change_it(login: Rig) -> None:
    with account_rules(login, "login", UNIX), operators_password(login, changed_on="0"):
        error = first_batch(login)
    assert error.what == "The password of this account has expired."
    assert "Password change required but no TTY available." in error.why
    assert "change the password" in error.fix


@pytest.mark.parametrize("line", ["exec dash", "exec bash --norc", "echo Welcome to the cluster; exec sh"])
def test_a_startup_file_that_replaces_the_shell_is_found(login: Rig, line: str) -> None:
    with login.fresh_home() as home:
        (home / ".bashrc").write_text(f"{line}\n")
        error = first_batch(login)
        assert "replaces the shell" in error.why
        assert "[[ $- == *i* ]] && exec" in error.fix
        (home / ".bashrc").write_text(f"[[ $- == *i* ]] && {{ {line}; }}\n")
        session = SlurmCluster(login.profile())
        assert run_batch(session, {"id": "id -un"}, 20.0)["id"].text == "operator\n"
        assert ask(session, "true", failed=LlmbError, deadline_s=20.0) == []
        session.close()


@pytest.mark.parametrize("command", ["/bin/true", "/usr/bin/printf 'Account disabled.\\n'"])
def test_a_login_node_without_commands_is_not_blamed_on_a_startup_file(login: Rig, command: str) -> None:
    with with_options(login, "login", f"ForceCommand {command}"):
        error = first_batch(login)
    assert "account with a shell" in error.fix
    assert "replaces" not in error.why


@pytest.mark.parametrize(
    ("option", "kind", "offer"),
    [
        ("KexAlgorithms", "key exchange method", "sntrup761x25519-sha512@openssh.com"),
        ("Ciphers", "cipher", "chacha20-poly1305@openssh.com"),
        ("MACs", "MAC", "umac-128-etm@openssh.com"),
    ],
)
def test_algorithms_that_only_the_server_has_are_named(login: Rig, option: str, kind: str, offer: str) -> None:
    with with_options(login, "login", f"{option} {offer}"):
        error = refusal(login.profile())
    assert f"have no {kind} in common. The server offers {offer}; this program has " in error.why
    assert "Ask the cluster's administrators to enable one" in error.fix


def test_both_names_of_the_usual_key_exchange_are_understood(login: Rig) -> None:
    for name in ("curve25519-sha256", "curve25519-sha256@libssh.org"):
        with with_options(login, "login", f"KexAlgorithms {name}"):
            connect(login.profile(), NonInteractivePrompter()).close()


def test_a_server_that_wants_kerberos_is_not_blamed_on_the_key(login: Rig) -> None:
    with with_options(login, "login", "GSSAPIAuthentication yes", "AuthenticationMethods gssapi-with-mic"):
        error = refusal(login.profile())
    assert "The server accepts: gssapi-with-mic. That is Kerberos, which this program does not support." in error.why
    assert "the key" not in error.fix


def test_a_method_that_the_users_configuration_switches_off_is_named(login: Rig, tmp_path: Path) -> None:
    profile = configured(login, tmp_path, "PasswordAuthentication no\nPreferredAuthentications publickey", "login")
    with with_options(login, "login", "AuthenticationMethods password"):
        error = refusal(profile)
    assert "The OpenSSH configuration switches these methods off." in error.why
    assert error.fix == "Allow one of these in the OpenSSH configuration: password."


def test_an_open_connection_of_ssh_is_explained_only_while_it_exists(login: Rig, tmp_path: Path) -> None:
    """The second factor was given to `ssh`; this program has to ask for it again, and nobody can answer."""
    with tempfile.TemporaryDirectory() as directory:  # its path is short enough for a socket
        _check_shared_connection(login, tmp_path, f"{directory}/%C")


def _check_shared_connection(login: Rig, tmp_path: Path, control_path: str) -> None:
    text = f"ControlMaster auto\nControlPath {control_path}\nHost mfa\nIdentityFile {login.client.key()}\n"
    text += f"IdentityFile {tmp_path}/none\nPreferredAuthentications publickey,keyboard-interactive"
    profile = configured(login, tmp_path, text, "mfa")
    without = refusal(profile)
    assert "was not answered" in without.why
    assert "ControlMaster" not in without.why

    askpass = tmp_path / "askpass"
    askpass.write_text(f"#!/bin/sh\necho {login.totp()}\n")
    askpass.chmod(0o700)
    environment = {"PATH": "/usr/bin:/bin", "SSH_ASKPASS": str(askpass), "SSH_ASKPASS_REQUIRE": "force"}
    command = ["ssh", "-F", str(tmp_path / "config"), "-fN", "mfa"]
    subprocess.run(command, check=True, env=environment, stdin=subprocess.DEVNULL, timeout=30)
    try:
        error = refusal(profile)
    finally:
        end = ["ssh", "-F", str(tmp_path / "config"), "-O", "exit", "mfa"]
        subprocess.run(end, check=True, capture_output=True, timeout=30)
    assert "The open connection of `ssh` to this host (ControlMaster) can be used only by `ssh` itself." in error.why


def test_a_script_with_dev_null_as_known_hosts_learns_which_setting_keeps_the_key(login: Rig, tmp_path: Path) -> None:
    text = "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nGlobalKnownHostsFile /dev/null\nLogLevel ERROR"
    profile = configured(login, tmp_path, text, "login")
    with pytest.raises(HostKeyUnknownError) as caught:
        connect(profile, NonInteractivePrompter())
    assert caught.value.fix.startswith("Name a file as `known_hosts` in the cluster's profile. ")

    profile = replace(profile, known_hosts=str(tmp_path / "kept"))
    connect(profile, Person(accepts=True)).close()
    connect(profile, NonInteractivePrompter()).close()
