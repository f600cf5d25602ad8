from __future__ import annotations

import os
import pwd
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from llmb_tui.cluster.failures import SshConfigError
from llmb_tui.cluster.login_profile import NO_SSH_CONFIG
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.cluster.ssh import openssh
from llmb_tui.cluster.ssh.openssh import METHODS, HostSettings, jump_route, resolve, settings_of
from tests.kit.unknown_user import use_unknown_user_id
from tests.kit.waiting import until

PROFILE = SlurmProfile(name="eos", host="eos", account="", partition="", install_dir="/x")


def write(tmp_path: Path, text: str) -> str:
    (tmp_path / "config").write_text(text)
    return str(tmp_path / "config")


def ssh_config(tmp_path: Path, text: str, host: str = "eos") -> HostSettings:
    return resolve(host, write(tmp_path, text))


def way(tmp_path: Path, text: str, host: str = "eos") -> list[str]:
    profile = replace(PROFILE, host=host, ssh_config=write(tmp_path, text))
    return [f"{hop.user}@{hop.host}:{hop.port}" for hop in jump_route(profile)]


def test_an_alias_is_resolved_by_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "more").write_text("Host eos\n  Port 2222\n")
    settings = ssh_config(
        tmp_path,
        f"Include {tmp_path}/more\n"
        "Host eos\n  HostName login.%h.example.com\n"
        'Match host login.eos.example.com exec "true"\n  User alice\n',
    )
    assert (settings.name, settings.host, settings.port, settings.user) == (
        "eos",
        "login.eos.example.com",
        2222,
        "alice",
    )
    assert str(tmp_path / "config") in settings.source


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("eos", ("eos", 22, "me")),
        ("alice@eos", ("eos", 22, "alice")),
        ("alice@corp@eos:2222", ("eos", 2222, "alice@corp")),
        ("ssh://alice@eos:2222", ("eos", 2222, "alice")),
        ("ssh://al%40corp@eos/", ("eos", 22, "al@corp")),
        ("[2001:db8::1]:2222", ("2001:db8::1", 2222, "me")),
        ("2001:db8::1", ("2001:db8::1", 22, "me")),
    ],
)
@pytest.mark.parametrize("with_ssh", [False, True])
def test_a_host_is_typed_in_the_usual_ways(
    tmp_path: Path, typed: str, expected: tuple[str, int, str], with_ssh: bool
) -> None:
    settings = resolve(typed, write(tmp_path, "") if with_ssh else NO_SSH_CONFIG)
    user = pwd.getpwuid(os.getuid()).pw_name if expected[2] == "me" else expected[2]
    assert (settings.host, settings.port, settings.user) == (expected[0], expected[1], user)


@pytest.mark.parametrize("with_ssh", [False, True])
def test_an_unknown_local_user_must_be_set_in_the_profile(
    tmp_path: Path, with_ssh: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_unknown_user_id(monkeypatch)
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    config = write(tmp_path, "IdentityFile %d/key-of-%r\n") if with_ssh else NO_SSH_CONFIG
    settings = resolve("alice@eos", config)
    assert settings.user == "alice"
    assert [str(path) for path in settings.identity_files] == ["//key-of-alice"] * with_ssh
    with pytest.raises(SshConfigError, match=r"The user name for the login is unknown\.") as refused:
        resolve("eos", NO_SSH_CONFIG)
    assert "`user`" in refused.value.fix


def test_values_of_the_profile_win_and_match_lines_see_them(tmp_path: Path) -> None:
    config = write(
        tmp_path,
        "Match user bob\n  HostName for-bob\n"
        f"Host *\n  User alice\n  Port 2222\n  IdentityFile {tmp_path}/a\n  UserKnownHostsFile {tmp_path}/hosts\n",
    )
    own = replace(PROFILE, ssh_config=config, user="bob", port=22, identity_file="~/b", known_hosts="/h")
    settings = settings_of(own)
    assert (settings.host, settings.user, settings.port) == ("for-bob", "bob", 22)
    assert (settings.identity_files, settings.default_keys, settings.known_hosts) == (("~/b",), (), (Path("/h"),))


def test_keys_named_for_the_host_replace_the_default_ones(tmp_path: Path) -> None:
    settings = ssh_config(tmp_path, 'IdentityFile ~/.ssh/id_rsa\nIdentityFile "/tmp/a key/%r"\nUser alice\n')
    assert settings.identity_files == (str(Path("~/.ssh/id_rsa").expanduser()), "/tmp/a key/alice")
    assert settings.default_keys == ()

    settings = ssh_config(tmp_path, "")
    assert settings.identity_files == ()
    assert str(Path("~/.ssh/id_ed25519").expanduser()) in settings.default_keys

    settings = ssh_config(tmp_path, "IdentityFile none\n")
    assert (settings.identity_files, settings.default_keys) == ((), ())


def test_the_agent_is_read_from_the_ssh_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/usual")
    monkeypatch.setenv("OTHER", "/run/other")
    assert ssh_config(tmp_path, "").agent == "/run/usual"
    assert ssh_config(tmp_path, "IdentityAgent SSH_AUTH_SOCK\n").agent == "/run/usual"
    assert ssh_config(tmp_path, "IdentityAgent none\n").agent is None
    assert ssh_config(tmp_path, "IdentityAgent $OTHER\n").agent == "/run/other"
    assert ssh_config(tmp_path, "IdentityAgent ~/%n.sock\n").agent == str(Path("~/eos.sock").expanduser())
    in_a_folder_with_a_blank = 'IdentityAgent "~/Group Containers/x.com.1password/t/agent.sock"\n'
    expected = str(Path("~/Group Containers/x.com.1password/t/agent.sock").expanduser())
    assert ssh_config(tmp_path, in_a_folder_with_a_blank).agent == expected
    monkeypatch.delenv("SSH_AUTH_SOCK")
    assert ssh_config(tmp_path, "").agent is None


@pytest.mark.parametrize("user", ["allowed[os@10.2.3.4]", "alice@CORP", "CORP\\alice"])
def test_a_user_name_of_the_configuration_is_used_as_it_is(tmp_path: Path, user: str) -> None:
    assert ssh_config(tmp_path, f"User {user}\n").user == user


def test_known_hosts_files_of_the_user_come_before_the_systems(tmp_path: Path) -> None:
    settings = ssh_config(
        tmp_path,
        'UserKnownHostsFile ~/one "/tmp/my hosts/two"\nGlobalKnownHostsFile /etc/three\n'
        "HostKeyAlias cluster\nHashKnownHosts yes\nStrictHostKeyChecking yes\n",
    )
    assert settings.known_hosts == (Path("~/one").expanduser(), Path("/tmp/my hosts/two"), Path("/etc/three"))
    assert (settings.host_key_alias, settings.hash_known_hosts) == ("cluster", True)
    assert settings.trusts_known_keys_only

    settings = ssh_config(tmp_path, "UserKnownHostsFile none\nGlobalKnownHostsFile /etc/three\n")
    assert settings.known_hosts == (Path(os.devnull), Path("/etc/three"))


@pytest.mark.parametrize("value", ["ask", "no", "accept-new", "off"])
def test_no_configuration_makes_an_unknown_key_accepted_without_a_question(tmp_path: Path, value: str) -> None:
    assert not ssh_config(tmp_path, f"StrictHostKeyChecking {value}\n").trusts_known_keys_only


@pytest.mark.parametrize(
    ("config", "methods"),
    [
        ("", METHODS),
        ("PreferredAuthentications gssapi-with-mic,password,publickey\n", ("password", "publickey")),
        ("PubkeyAuthentication no\n", ("keyboard-interactive", "password")),
        ("PasswordAuthentication no\nKbdInteractiveAuthentication no\n", ("publickey",)),
    ],
)
def test_only_methods_that_the_configuration_allows_are_used(
    tmp_path: Path, config: str, methods: tuple[str, ...]
) -> None:
    assert ssh_config(tmp_path, config).methods == methods


def test_the_other_supported_options(tmp_path: Path) -> None:
    settings = ssh_config(tmp_path, "IdentitiesOnly yes\nConnectTimeout 40\nCertificateFile /c/%h\nForwardAgent yes\n")
    assert (settings.identities_only, settings.connect_deadline_s) == (True, 40.0)
    assert settings.certificate_files == ("/c/eos",)


def test_a_proxy_command_is_given_its_names(tmp_path: Path) -> None:
    config = "Host eos\n  HostName login.x\n  User alice\n  Port 2222\n  ProxyCommand nc -x '%n' %h %p # %r 100%%\n"
    assert ssh_config(tmp_path, config).proxy_command == "nc -x 'eos' login.x 2222 # alice 100%"
    assert ssh_config(tmp_path, "ProxyCommand none\n").proxy_command is None


def test_a_name_that_the_proxy_command_is_not_given_may_be_any() -> None:
    settings = openssh.parse_answer("eos", "hostname eos\nuser CORP\\me\nport 22\nproxycommand nc %h %p %%r\n", "")
    assert (settings.user, settings.proxy_command) == ("CORP\\me", "nc eos 22 %r")
    with pytest.raises(SshConfigError):
        openssh.parse_answer("eos", "hostname eos\nuser CORP\\me\nport 22\nproxycommand nc -l %r %h %p\n", "")


@pytest.mark.parametrize("host", ["a;reboot", "$(reboot)", "-oProxyCommand=x", "a b"])
def test_a_host_name_with_shell_characters_is_refused(tmp_path: Path, host: str) -> None:
    with pytest.raises(SshConfigError):
        ssh_config(tmp_path, "ProxyCommand nc %h %p\n", host)
    with pytest.raises(SshConfigError):  # also if an older ssh accepted the name
        openssh.parse_answer(host, f"hostname {host}\nuser me\nport 22\nproxycommand nc %h %p\n", "")


def test_each_jump_host_uses_its_own_settings(tmp_path: Path) -> None:
    config = (
        "Host eos\n  ProxyJump bob@gate:2022,inner\n"
        "Host gate\n  HostName gate.example.com\n  ProxyJump outer\n"
        "Host inner\n  User carol\n  ProxyJump elsewhere\n"
        "Host *\n  User alice\n"
    )
    assert way(tmp_path, config) == [
        "alice@outer:22",
        "bob@gate.example.com:2022",
        "carol@inner:22",  # its own ProxyJump has no effect: the list defines the path to it
        "alice@eos:22",
    ]


def test_a_hop_as_an_address_and_with_tokens(tmp_path: Path) -> None:
    config = "Host eos\n  User alice\n  ProxyJump ssh://bob@outer:2022,bob@[2001:db8::1]:2022,%r@gate-%n\n"
    assert way(tmp_path, config)[:3] == ["bob@outer:2022", "bob@2001:db8::1:2022", "alice@gate-eos:22"]


@pytest.mark.parametrize(
    "config",
    [
        "ProxyJump gate\n",
        "Host eos\n  ProxyJump a\nHost a\n  ProxyJump b\nHost b\n  ProxyJump a\n",
        "Host eos\n  ProxyJump a,b,a\n",
        "ProxyJump x%h\n",
    ],
)
def test_a_way_in_a_circle_is_refused(tmp_path: Path, config: str) -> None:
    with pytest.raises(SshConfigError, match="circle"):
        way(tmp_path, config)


def test_a_broken_configuration_is_quoted(tmp_path: Path) -> None:
    with pytest.raises(SshConfigError) as caught:
        ssh_config(tmp_path, "Hots eos\n")
    assert "line 1" in caught.value.why
    assert "hots" in caught.value.why.lower()


def test_the_named_command_shows_the_refusal_of_ssh(tmp_path: Path) -> None:
    config = tmp_path / "a config"
    config.write_text("Host eos\n")
    with pytest.raises(SshConfigError, match="70000") as caught:
        resolve("eos", str(config), "alice", 70000)
    named = caught.value.fix.split("`")[1]
    shown = subprocess.run(["sh", "-c", named], capture_output=True, text=True, check=False)
    assert shown.stderr.strip() == caught.value.why


@pytest.mark.parametrize("config", ["a config", NO_SSH_CONFIG])
def test_the_command_that_shows_details_connects_as_the_program_does(tmp_path: Path, config: str) -> None:
    if config != NO_SSH_CONFIG:
        config = str(tmp_path / config)
        Path(config).write_text("Host eos\nHostName login.example.com\nPort 2222\nUser alice\nIdentityFile ~/other\n")
    (tmp_path / "my key").touch()
    profile = replace(PROFILE, ssh_config=config, user="bob", identity_file=str(tmp_path / "my key"))
    settings = settings_of(profile)
    resolves = settings.debug_command.replace("ssh -v", "ssh -G")
    answer = subprocess.run(["sh", "-c", resolves], check=True, capture_output=True, text=True).stdout.splitlines()
    values = {"hostname": settings.host, "port": settings.port, "user": settings.user}
    assert {f"{key} {value}" for key, value in values.items()} <= set(answer)
    assert next(line for line in answer if line.startswith("identityfile")) == f"identityfile {tmp_path}/my key"


def test_a_jump_host_is_shown_with_the_same_configuration(tmp_path: Path) -> None:
    config = write(tmp_path, "Host eos\n  ProxyJump gate\nHost gate\n  User alice\n")
    gate = jump_route(replace(PROFILE, ssh_config=config, identity_file="/key"))[0]
    assert gate.debug_command == f"ssh -v -F {config} alice@gate"


def test_the_home_of_a_user_that_there_is_not_stays_as_it_is(tmp_path: Path) -> None:
    settings = ssh_config(tmp_path, "IdentityFile ~no-such-user/key\nGlobalKnownHostsFile ~no-such-user/hosts\n")
    assert settings.identity_files == ("~no-such-user/key",)
    assert settings.known_hosts[-1] == Path("~no-such-user/hosts")
    with pytest.raises(SshConfigError, match="~no-such-user/config"):
        resolve("eos", "~no-such-user/config")


def test_a_configuration_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openssh, "RESOLVE_DEADLINE_S", 0.5)
    started = tmp_path / "started"
    with pytest.raises(SshConfigError, match="Match exec"):
        ssh_config(tmp_path, f'Match exec "echo $$ > {started}; sleep 60"\n  User alice\n')
    pid = int(started.read_text())
    until(lambda: not _runs(pid), "the configuration's program has ended")


def _runs(pid: int) -> bool:
    result = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return result.stdout.strip()[:1] not in ("", "Z")


def test_without_ssh_there_are_plain_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    settings = settings_of(replace(PROFILE, host="alice@eos"))
    assert (settings.host, settings.user, settings.port, settings.proxy_jump) == ("eos", "alice", 22, ())
    assert settings.known_hosts[0] == Path("~/.ssh/known_hosts").expanduser()
    with pytest.raises(SshConfigError, match="other"):
        settings_of(replace(PROFILE, ssh_config="/other"))


def test_with_none_for_a_configuration_ssh_is_not_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text(f"#!/bin/sh\n: > {tmp_path}/ran\n")
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    jump_route(replace(PROFILE, ssh_config=NO_SSH_CONFIG))
    assert not (tmp_path / "ran").exists()
    jump_route(PROFILE)
    assert (tmp_path / "ran").exists()


_AT_A_TERMINAL = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"


def test_programs_of_the_configuration_cannot_reach_the_terminal(tmp_path: Path) -> None:
    config = write(
        tmp_path, 'Match exec "echo shown; echo shown > /dev/tty; cat < /dev/tty; echo shown >&2"\n  User eve\n'
    )
    script = (
        "import os; os.close(os.open('/dev/tty', os.O_RDWR))\n"  # the terminal exists
        "from llmb_tui.cluster.ssh.openssh import resolve\n"
        f"assert resolve('eos', {config!r}).host == 'eos'\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", _AT_A_TERMINAL, sys.executable, "-c", script],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (result.returncode, result.stdout) == (0, b"")
