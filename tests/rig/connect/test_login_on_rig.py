"""Logins to real SSH servers: keys, passphrases, passwords, codes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from llmb_tui.cluster.failures import AuthenticationError
from llmb_tui.cluster.prompter import NonInteractivePrompter
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.cluster.ssh.connect import connect
from llmb_tui.cluster.ssh.keys import UnlockedKeys
from tests.cluster.login_node import Person
from tests.cluster.ssh_agent import ssh_agent
from tests.kit.waiting import until
from tests.rig.client import PASSPHRASE
from tests.rig.cluster import Rig
from tests.rig.connect.servers import configured, connections, log_of, new_key, with_options, without_keys
from tests.rig.sshd import BANNER


@pytest.fixture(autouse=True)
def _no_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


def log_in(profile: SlurmProfile, person: Person | None = None, unlocked: UnlockedKeys | None = None) -> bool:
    """Log in once; returns whether another login would need no answer from the user."""
    connection = connect(profile, person or NonInteractivePrompter(), unlocked=unlocked)
    try:
        assert connection.run(["id", "-un"]).stdout == "operator\n"
        return connection.asks_nobody
    finally:
        connection.close()


@pytest.mark.parametrize("key", ["id_ed25519", "id_rsa"])
def test_a_login_by_key_needs_no_prompt(login: Rig, key: str) -> None:
    assert log_in(login.profile(identity_file=str(login.client.key(key))))


@pytest.mark.parametrize(
    ("key", "options"),
    [
        ("id_ed25519", ["-Z", "aes256-gcm@openssh.com"]),
        ("id_rsa", ["-Z", "chacha20-poly1305@openssh.com"]),
        ("id_rsa", ["-m", "PKCS8"]),
    ],
)
def test_a_key_in_any_form_of_openssh_logs_in_after_its_passphrase(
    login: Rig, tmp_path: Path, key: str, options: list[str]
) -> None:
    file = Path(shutil.copy(login.client.key(key), tmp_path / "key"))
    change = ["ssh-keygen", "-q", "-p", "-P", "", "-N", PASSPHRASE, *options, "-f", str(file)]
    subprocess.run(change, check=True, stdout=subprocess.DEVNULL)
    person = Person(answers=["wrong", PASSPHRASE])
    assert log_in(login.profile(identity_file=str(file)), person)
    assert [prompt.partition(".")[0] == "Wrong passphrase" for prompt, _ in person.prompts] == [False, True]


def test_the_passphrase_prompt_repeats_until_the_answer_is_correct(login: Rig) -> None:
    unlocked, person = UnlockedKeys(), Person(answers=["wrong", PASSPHRASE])
    assert log_in(login.profile("enc"), person, unlocked)
    assert [echo for _, echo in person.prompts] == [False, False]
    assert all(str(login.client.key("id_enc")) in prompt for prompt, _ in person.prompts)
    assert log_in(login.profile("enc"), unlocked=unlocked)


def test_the_password_prompt_repeats_until_the_answer_is_correct(login: Rig) -> None:
    person = Person(answers=["wrong", login.password])
    assert not log_in(login.profile("password"), person)
    assert person.prompts == [("Password for operator@password: ", False)] * 2


def test_a_code_follows_the_key_and_can_be_corrected(login: Rig) -> None:
    before = log_of(login, "mfa").count("Failed keyboard-interactive")
    person = Person(answers=["000000", login.totp()])
    assert not log_in(login.profile("mfa"), person)
    assert person.prompts == [("(operator@mfa) Verification code: ", False)] * 2
    assert log_of(login, "mfa").count("Failed keyboard-interactive") == before + 1  # sent once


def test_a_key_follows_the_password(login: Rig) -> None:
    """If the key is offered before the password, sshd ignores it; it must be offered again after the password."""
    with with_options(login, "login", "AuthenticationMethods password,publickey"):
        person = Person(answers=[login.password])
        log_in(login.profile("login"), person)
        assert len(person.prompts) == 1


def test_password_and_code_in_rounds(login: Rig) -> None:
    code = login.totp()
    person = Person(answers=["wrong", code, login.password, code])
    assert not log_in(login.profile("pwotp"), person)
    assert [prompt for prompt, _ in person.prompts] == [
        f"(operator@pwotp) {question}: " for question in ("Password", "Verification code") * 2
    ]


def test_a_used_code_is_not_sent_again_automatically(login: Rig) -> None:
    login.servers.write_authenticator("DISALLOW_REUSE")
    try:
        person = Person(answers=[login.totp()])
        connect(login.profile("mfa"), person).close()
        before = log_of(login, "mfa").count("Failed keyboard-interactive")
        with pytest.raises(AuthenticationError, match="was not answered"):
            connect(login.profile("mfa"), person)
        assert log_of(login, "mfa").count("Failed keyboard-interactive") == before
        assert len(person.prompts) == 2
    finally:
        login.servers.write_authenticator()


def test_the_banner_of_the_server_is_given(login: Rig) -> None:
    connection = connect(login.profile(), NonInteractivePrompter())
    connection.close()
    assert connection.banner == BANNER


def test_a_banner_cannot_reach_the_terminals_settings(login: Rig) -> None:
    banner = login.directory / "ssh" / "evil"
    banner.write_bytes(b"\x1b]52;c;ZXZpbA==\x07\x1b[2JWelcome\x9b\n")
    with with_options(login, "login", f"Banner {banner}"):
        connection = connect(login.profile(), NonInteractivePrompter())
        connection.close()
    assert connection.banner == "Welcome\N{REPLACEMENT CHARACTER}\n"


def test_the_agent_of_the_configuration_is_used(login: Rig, tmp_path: Path) -> None:
    with ssh_agent(tmp_path / "agent", login.client.key()) as socket:
        assert log_in(without_keys(login, tmp_path, "login", f"IdentityAgent {socket}"))
        for line in ("IdentityAgent none", f"IdentityAgent {socket}\nIdentitiesOnly yes"):
            profile = without_keys(login, tmp_path, "login", line)
            with pytest.raises(AuthenticationError):
                log_in(profile)


def test_an_agent_that_is_gone_is_no_obstacle(login: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "gone"))
    assert log_in(login.profile())


def test_the_key_named_for_the_host_comes_before_the_agents(login: Rig, tmp_path: Path) -> None:
    others = [new_key(tmp_path / f"key{number}") for number in range(6)]
    with ssh_agent(tmp_path / "agent", *others) as socket:
        profile = configured(login, tmp_path, f"Host tight\nIdentityAgent {socket}\nIdentitiesOnly no", "tight")
        before = log_of(login, "tight").count("Connection from")
        assert log_in(profile)
        assert log_of(login, "tight").count("Connection from") == before + 1


def test_with_too_many_keys_another_connection_tries_the_rest(login: Rig, tmp_path: Path) -> None:
    others = [new_key(tmp_path / f"key{number}") for number in range(5)]
    with ssh_agent(tmp_path / "agent", *others, login.client.key()) as socket:
        assert log_in(without_keys(login, tmp_path, "tight", f"IdentityAgent {socket}"))


def test_the_error_names_the_keys_if_all_are_refused(login: Rig, tmp_path: Path) -> None:
    others = [new_key(tmp_path / f"key{number}") for number in range(3)]
    profile = without_keys(login, tmp_path, "tight", *(f"IdentityFile {key}" for key in others))
    with pytest.raises(AuthenticationError) as caught:
        log_in(profile)
    assert all(str(key) in caught.value.why for key in others)
    assert "Too many authentication failures" in caught.value.why
    assert str(tmp_path / "config") in caught.value.why


def test_after_too_many_keys_the_password_prompt_still_appears(login: Rig, tmp_path: Path) -> None:
    others = [new_key(tmp_path / f"key{number}") for number in range(3)]
    with with_options(login, "login", "MaxAuthTries 2"), ssh_agent(tmp_path / "agent", *others) as socket:
        person = Person(answers=[login.password])
        assert not log_in(without_keys(login, tmp_path, "login", f"IdentityAgent {socket}"), person)
        assert len(person.prompts) == 1


def test_the_end_of_all_tries_is_reported_and_a_new_question_follows(login: Rig) -> None:
    with with_options(login, "login", "MaxAuthTries 2"):
        person = Person(answers=["one", "two", login.password])
        with pytest.raises(AuthenticationError, match="no more tries"):
            connect(login.profile("password"), person)
        assert len(person.prompts) == 2
        log_in(login.profile("password"), person)
        assert len(person.prompts) == 3


class SlowUser(Person):
    """A user who answers only after the server has hung up, which is as soon as the question is open."""

    def __init__(self, rig: Rig, endpoint: str, answer: str) -> None:
        super().__init__(answers=[answer])
        self._rig, self._endpoint = rig, endpoint

    def answer(self, prompt: str, echo: bool) -> str | None:
        self._rig.servers.end_logins(self._endpoint)
        until(lambda: not connections(self._rig, self._endpoint), "the server has hung up")
        return super().answer(prompt, echo)


@pytest.mark.parametrize(("alias", "endpoint"), [("password", "login"), ("pwotp", "pwotp")])
def test_a_login_that_takes_too_long_is_reported(login: Rig, alias: str, endpoint: str) -> None:
    with with_options(login, endpoint, "LoginGraceTime 600"):  # a short one could end before the question
        with pytest.raises(AuthenticationError, match="while the question was open"):
            connect(login.profile(alias), SlowUser(login, endpoint, login.password))
        assert "Accepted" not in log_of(login, endpoint).rpartition("Server listening")[2]


@pytest.fixture
def authority(login: Rig, tmp_path: Path) -> Path:
    """A certificate authority; its public key is at a path that every server reads."""
    key = new_key(tmp_path / "authority")
    (login.directory / "ssh" / "authority.pub").write_text((tmp_path / "authority.pub").read_text())
    return key


def sign(authority: Path, key: Path, certificate: Path, *options: str) -> Path:
    """Create a certificate for the operator at that path."""
    public = Path(f"{key}.pub")
    command = ["ssh-keygen", "-q", "-s", str(authority), "-I", "test", "-n", "operator", *options, str(public)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return Path(f"{key}-cert.pub").replace(certificate)


def test_a_certificate_lets_its_key_in(login: Rig, tmp_path: Path, authority: Path) -> None:
    key = new_key(tmp_path / "key", PASSPHRASE)
    with with_options(login, "login", f"TrustedUserCAKeys {login.directory}/ssh/authority.pub"):
        profile = login.profile(identity_file=str(key))
        with pytest.raises(AuthenticationError):
            log_in(profile)
        sign(authority, key, Path(f"{key}-cert.pub"))
        person = Person(answers=[PASSPHRASE])
        log_in(profile, person)
        assert len(person.prompts) == 1


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("-V", "20200101:20200102"), "which expired on "),
        (("-V", "20900101:20910101"), "which is not valid before "),
        (("-h",), "which is not for a user"),
    ],
)
def test_a_certificate_that_is_not_valid_is_refused_with_the_reason(
    login: Rig, tmp_path: Path, authority: Path, options: tuple[str, ...], reason: str
) -> None:
    key = new_key(tmp_path / "key")
    sign(authority, key, Path(f"{key}-cert.pub"), *options)
    errors = []
    for more in ("PermitTTY yes", "AuthenticationMethods publickey"):  # with and without a question for the password
        lines = (f"TrustedUserCAKeys {login.directory}/ssh/authority.pub", more)
        with with_options(login, "login", *lines), ssh_agent(tmp_path / "agent", key) as socket:
            for profile in (
                login.profile(identity_file=str(key)),
                without_keys(login, tmp_path, "login", f"IdentityAgent {socket}"),
            ):
                with pytest.raises(AuthenticationError) as caught:
                    log_in(profile)
                errors.append(caught.value)
    for error in errors:
        assert reason in error.why
        assert error.fix.startswith("Renew the certificate") is ("expired" in reason)


def test_a_certificate_in_a_separate_file_is_used_with_the_agents_key(
    login: Rig, tmp_path: Path, authority: Path
) -> None:
    key = new_key(tmp_path / "key")
    sign(authority, key, tmp_path / "certificate")
    lines = [f"IdentityAgent {tmp_path}/agent", f"CertificateFile {tmp_path}/certificate"]
    with (
        with_options(login, "login", f"TrustedUserCAKeys {login.directory}/ssh/authority.pub"),
        ssh_agent(tmp_path / "agent", key),
    ):
        profile = without_keys(login, tmp_path, "login", lines[0])
        with pytest.raises(AuthenticationError):
            log_in(profile)
        assert log_in(without_keys(login, tmp_path, "login", *lines))


@pytest.mark.parametrize("kind", ["rsa", "ecdsa", "ed25519"])
def test_login_works_with_a_certificate_in_the_agent_with_or_without_its_key(
    login: Rig, tmp_path: Path, authority: Path, kind: str
) -> None:
    key = new_key(tmp_path / "key", kind=kind)
    sign(authority, key, Path(f"{key}-cert.pub"))
    with (
        with_options(login, "login", f"TrustedUserCAKeys {login.directory}/ssh/authority.pub"),
        ssh_agent(tmp_path / "agent", key) as socket,  # ssh-add also loads the certificate next to the key
    ):
        profile = without_keys(login, tmp_path, "login", f"IdentityAgent {socket}")
        assert log_in(profile)
        Path(f"{key}-cert.pub").unlink()
        environment = os.environ | {"SSH_AUTH_SOCK": str(socket)}
        subprocess.run(["ssh-add", "-q", "-d", f"{key}.pub"], check=True, stdin=subprocess.DEVNULL, env=environment)
        assert log_in(profile)


_AT_A_TERMINAL = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"


@pytest.mark.parametrize("alias", ["password", "mfa", "pwotp", "enc"])
def test_nothing_is_written_to_the_terminal_and_nothing_read(login: Rig, alias: str) -> None:
    profile = replace(login.profile(alias))
    script = (
        "import os, sys; os.close(os.open('/dev/tty', os.O_RDWR))\n"
        "from llmb_tui.cluster.ssh.connect import connect\n"
        "from llmb_tui.cluster.failures import AuthenticationError\n"
        "from llmb_tui.cluster.slurm.profile import SlurmProfile\n"
        "from llmb_tui.cluster.prompter import NonInteractivePrompter\n"
        f"try: connect({profile!r}, NonInteractivePrompter())\n"
        "except AuthenticationError: sys.exit(7)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", _AT_A_TERMINAL, sys.executable, "-c", script],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
        env=os.environ | {"DISPLAY": ""},
    )
    assert (done.returncode, done.stdout, done.stderr) == (7, b"", b"")
