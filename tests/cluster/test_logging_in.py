from __future__ import annotations

import base64
import hashlib
import hmac
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmb_tui.cluster.connect import connect
from llmb_tui.cluster.failures import AuthenticationFailed, HostKeyChanged, HostKeyUnknown
from llmb_tui.cluster.host_keys import HostKey, KnownHosts
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.prompter import Unattended
from tests.cluster.login_node import PASSWORD, LoginNode, Person, make_key, wait_until

PASSPHRASE = "open sesame"


def log_in(node: LoginNode, person: Person | None = None, profile: ClusterProfile | None = None) -> None:
    connection = connect(profile or node.profile(), person or Unattended())
    assert connection.run(["echo", "in"]).stdout == "in\n"
    connection.close()


def sent(node: LoginNode, method: str) -> list[str]:
    return [what for tried, what in node.offered if tried == method]


def test_the_profiles_key_asks_nobody(node: LoginNode) -> None:
    person = Person()
    log_in(node, person)
    assert person.prompts == []


def test_an_encrypted_key_asks_for_its_passphrase(node: LoginNode, tmp_path: Path) -> None:
    node.user_key = make_key(tmp_path / "locked", passphrase=PASSPHRASE)
    person = Person(answers=["wrong", PASSPHRASE])

    log_in(node, person, replace(node.profile(), identity_file=str(tmp_path / "locked")))

    assert len(person.prompts) == 2
    assert all("Passphrase" in prompt and str(tmp_path / "locked") in prompt for prompt, _ in person.prompts)
    assert not any(echo for _, echo in person.prompts)
    assert len(sent(node, "publickey")) == 1


def test_a_default_key_is_found(node: LoginNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "user"
    (home / ".ssh").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    node.user_key = make_key(home / ".ssh" / "id_ecdsa", "ecdsa")
    log_in(node, profile=replace(node.profile(), identity_file=None))


def test_the_agents_keys_are_offered_and_spare_the_passphrase(
    node: LoginNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with subprocess.Popen(["ssh-agent", "-D", "-a", str(tmp_path / "agent")], stdout=subprocess.DEVNULL) as agent:
        try:
            wait_until((tmp_path / "agent").exists)
            monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
            node.user_key = make_key(tmp_path / "held")
            subprocess.run(["ssh-add", "-q", str(tmp_path / "held")], check=True)
            subprocess.run(["ssh-keygen", "-q", "-p", "-N", PASSPHRASE, "-f", str(tmp_path / "held")], check=True)

            log_in(node, profile=replace(node.profile(), identity_file=None))
            log_in(node, profile=replace(node.profile(), identity_file=str(tmp_path / "held")))
        finally:
            agent.terminate()
    assert len(sent(node, "publickey")) == 2


def test_a_password_is_asked_for_when_no_key_will_do(node: LoginNode) -> None:
    node.factors = ("password",)
    person = Person(answers=["wrong", PASSWORD])
    log_in(node, person)
    assert person.prompts == [("Password for operator@127.0.0.1: ", False)] * 2
    assert sent(node, "publickey") == []


def test_a_code_after_the_key(node: LoginNode) -> None:
    node.factors = ("publickey", "keyboard-interactive")
    node.rounds = (("Verification code: ",),)
    node.codes = ["123456"]
    person = Person(answers=["123456"])
    log_in(node, person)
    assert person.prompts == [("Verification code: ", False)]


def test_a_password_then_a_code_in_rounds(node: LoginNode) -> None:
    node.factors = ("keyboard-interactive",)
    node.rounds = (("Password: ",), ("Verification code: ",), ())
    node.codes = ["123456"]
    person = Person(answers=[PASSWORD, "123456"])
    log_in(node, person)
    assert [prompt for prompt, _ in person.prompts] == ["Password: ", "Verification code: "]


def test_a_refused_code_is_asked_for_again_and_never_sent_twice(node: LoginNode) -> None:
    node.factors = ("publickey", "keyboard-interactive")
    node.rounds = (("Verification code: ",),)
    node.codes = ["222222"]
    person = Person(answers=["111111", "222222"])

    log_in(node, person)

    assert sent(node, "keyboard-interactive") == ["111111", "222222"]


def test_who_gives_no_answer_sends_none(node: LoginNode) -> None:
    node.factors = ("keyboard-interactive,password",)
    with pytest.raises(AuthenticationFailed, match="No answer was given to: Password:"):
        log_in(node, Person())
    assert node.offered == []


def test_three_wrong_passwords_are_enough(node: LoginNode) -> None:
    node.factors = ("keyboard-interactive,password",)
    person = Person(answers=["a", "b", "c", "d"])
    with pytest.raises(AuthenticationFailed):
        log_in(node, person)
    assert sent(node, "keyboard-interactive") == ["a", "b", "c"]
    assert sent(node, "password") == []


def test_a_refusal_says_what_was_tried_and_what_is_accepted(node: LoginNode, tmp_path: Path) -> None:
    make_key(tmp_path / "other")
    with pytest.raises(AuthenticationFailed) as caught:
        log_in(node, profile=replace(node.profile(), identity_file=str(tmp_path / "other")))
    assert str(tmp_path / "other") in caught.value.why
    assert "publickey" in caught.value.why
    assert "operator" in caught.value.what


@pytest.mark.parametrize(("content", "reason"), [(None, "No such file"), (b"no key", "not a private key")])
def test_an_identity_file_that_is_no_key_is_named(
    node: LoginNode, tmp_path: Path, content: bytes | None, reason: str
) -> None:
    path = tmp_path / "broken"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(AuthenticationFailed) as caught:
        log_in(node, profile=replace(node.profile(), identity_file=str(path)))
    assert reason in caught.value.why


def test_prompts_are_clean(node: LoginNode) -> None:
    node.factors = ("keyboard-interactive",)
    node.rounds = (("\x1b[2JPassword\x07: ",),)
    person = Person(answers=[PASSWORD])
    log_in(node, person)
    assert person.prompts == [("Password\ufffd: ", False)]


def test_nothing_reaches_the_terminal_and_nothing_is_read_from_it(node: LoginNode) -> None:
    node.factors = ("keyboard-interactive",)
    node.rounds = (("Verification code: ",),)
    script = (
        "import sys\n"
        "from llmb_tui.cluster.connect import connect\n"
        "from llmb_tui.cluster.failures import AuthenticationFailed\n"
        "from llmb_tui.cluster.profile import ClusterProfile\n"
        "from llmb_tui.cluster.prompter import Unattended\n"
        f"profile = {node.profile()!r}\n"
        "try: connect(profile, Unattended())\n"
        "except AuthenticationFailed: sys.exit(7)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False, input=b"1\n", timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (7, b"", b"")
    assert node.offered == []


def test_an_unknown_host_key_is_shown_accepted_and_remembered(node: LoginNode, tmp_path: Path) -> None:
    node.known_hosts.unlink()
    profile = replace(node.profile(), known_hosts=str(tmp_path / "new" / "known_hosts"))
    person = Person(accepts=True)

    log_in(node, person, profile)
    log_in(node, Person(accepts=False), profile)

    digest = subprocess.run(
        ["ssh-keygen", "-l", "-f", str(tmp_path / "host_key.pub")], capture_output=True, check=True, text=True
    ).stdout.split()[1]
    assert person.host_keys == [(f"[127.0.0.1]:{node.port}", "ssh-ed25519", digest)]
    assert stat.S_IMODE((tmp_path / "new" / "known_hosts").stat().st_mode) == 0o600


def test_an_unknown_host_key_that_nobody_accepts_ends_it(node: LoginNode) -> None:
    node.known_hosts.write_text("")
    with pytest.raises(HostKeyUnknown, match="SHA256:"):
        log_in(node)
    assert node.offered == []
    assert node.known_hosts.read_text() == ""


def test_a_changed_host_key_asks_nobody_and_sends_nothing(node: LoginNode, tmp_path: Path) -> None:
    old = node.host_keys[0]
    node.host_keys = [make_key(tmp_path / "new_host_key")]
    person = Person(accepts=True)

    with pytest.raises(HostKeyChanged) as caught:
        log_in(node, person)

    for key in (old, node.host_keys[0]):
        assert HostKey(key.get_name(), key.asbytes()).fingerprint in caught.value.why
    assert person.host_keys == []
    assert node.offered == []


def test_a_known_key_is_asked_for_when_the_server_has_several(node: LoginNode, tmp_path: Path) -> None:
    node.host_keys = [make_key(tmp_path / "ecdsa_host_key", "ecdsa")]
    node.trust()
    node.host_keys.append(make_key(tmp_path / "another_host_key"))
    log_in(node)


ONE = HostKey("ssh-ed25519", b"one")
TWO = HostKey("ssh-ed25519", b"two")


def line(names: str, key: HostKey = ONE) -> str:
    return f"{names} {key.type} {base64.b64encode(key.blob).decode()} comment\n"


def hashed(name: str) -> str:
    salt = b"0123456789abcdefghij"
    digest = hmac.new(salt, name.encode(), hashlib.sha1).digest()
    return f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"


@pytest.mark.parametrize(
    ("names", "host", "port"),
    [
        ("eos", "eos", 22),
        ("EOS", "eos", 22),
        ("eos", "EOS", 22),
        ("a,eos,10.0.0.1", "10.0.0.1", 22),
        ("[eos]:2222", "eos", 2222),
        ("eos", "eos", 2222),
        ("*.example.com", "login.example.com", 22),
        ("login?.x", "login1.x", 22),
        (hashed("eos"), "eos", 22),
        (hashed("[eos]:2222"), "eos", 2222),
    ],
)
def test_known_hosts_are_found_in_every_form(tmp_path: Path, names: str, host: str, port: int) -> None:
    file = tmp_path / "known_hosts"
    file.write_text("# comment\n\n" + line(names))
    KnownHosts([file]).check(host, port, ONE, Unattended())


@pytest.mark.parametrize(
    "content",
    [
        "",
        line("other"),
        line("*,!eos"),
        line("eos.example.com"),
        line(hashed("other")),
        "@cert-authority " + line("eos"),
        "eos\n",
        "eos ssh-ed25519 ???\n",
        line("|1|bad"),
        line("|1|????|????"),
    ],
)
def test_anything_else_is_an_unknown_host(tmp_path: Path, content: str) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(content)
    with pytest.raises(HostKeyUnknown):
        KnownHosts([file]).check("eos", 22, ONE, Unattended())


@pytest.mark.parametrize(
    "content",
    [
        line("eos", TWO),
        line("eos", HostKey("ssh-rsa", b"one")),
        line(hashed("eos"), TWO),
        "@revoked " + line("*"),
        line("eos") + "@revoked " + line("eos"),
    ],
)
def test_another_key_or_a_revoked_one_is_never_asked_about(tmp_path: Path, content: str) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(content)
    person = Person(accepts=True)
    with pytest.raises(HostKeyChanged):
        KnownHosts([file]).check("eos", 22, ONE, person)
    assert person.host_keys == []


def test_a_host_with_two_known_keys_may_show_either(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(line("eos") + line("eos", TWO))
    for key in (ONE, TWO):
        KnownHosts([file]).check("eos", 22, key, Unattended())


def test_an_accepted_key_starts_a_line_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(line("other").rstrip("\n"))
    KnownHosts([file]).check("eos", 2222, ONE, Person(accepts=True))
    KnownHosts([file]).check("eos", 2222, ONE, Unattended())
    assert len(file.read_text().splitlines()) == 2


def test_all_files_are_read_and_the_first_is_written(tmp_path: Path) -> None:
    own, system = tmp_path / "own", tmp_path / "system"
    system.write_text(line("eos"))
    hosts = KnownHosts([own, system])
    hosts.check("eos", 22, ONE, Unattended())
    hosts.check("other", 22, ONE, Person(accepts=True))
    assert system.read_text() == line("eos")
    assert own.read_text().startswith("other ssh-ed25519 ")


@given(st.text())
def test_no_content_of_the_file_breaks_the_reader(tmp_path_factory: pytest.TempPathFactory, content: str) -> None:
    file = tmp_path_factory.mktemp("hosts") / "known_hosts"
    file.write_bytes(content.encode(errors="surrogatepass"))
    with pytest.raises((HostKeyUnknown, HostKeyChanged)):
        KnownHosts([file]).check("eos", 22, ONE, Unattended())
