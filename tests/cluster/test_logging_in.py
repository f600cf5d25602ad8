from __future__ import annotations

import contextlib
import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import paramiko
import pytest
from paramiko.auth_handler import AuthHandler

from llmb_tui.cluster.failures import AuthenticationError, HostKeyChangedError, HostKeyUnknownError, UnreachableError
from llmb_tui.cluster.prompter import NonInteractivePrompter
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.cluster.ssh.connect import connect
from llmb_tui.cluster.ssh.host_keys import ServerKey
from llmb_tui.cluster.ssh.keys import UnlockedKeys
from llmb_tui.cluster.ssh.questions import has_hung_up
from llmb_tui.errors import LlmbError
from tests.cluster.login_node import PASSWORD, LoginNode, Person, make_key
from tests.cluster.ssh_agent import silent_agent, ssh_agent

PASSPHRASE = "open sesame"


def log_in(node: LoginNode, person: Person | None = None, profile: SlurmProfile | None = None) -> None:
    connection = connect(profile or node.profile(), person or NonInteractivePrompter())
    assert connection.run(["echo", "in"]).stdout == "in\n"
    connection.close()


def sent(node: LoginNode, method: str) -> list[str]:
    return [what for tried, what in node.offered if tried == method]


def test_the_profiles_key_needs_no_prompt(node: LoginNode) -> None:
    person = Person()
    log_in(node, person)
    assert person.prompts == []


def test_the_authentication_service_is_requested_once(node: LoginNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request takes a round trip."""
    requests: list[str] = []
    answer = vars(AuthHandler)["_parse_service_request"]

    def counted(handler: AuthHandler, message: paramiko.Message) -> None:
        requests.append("ssh-userauth")
        answer(handler, message)

    monkeypatch.setattr(AuthHandler, "_parse_service_request", counted)
    log_in(node)
    assert requests == ["ssh-userauth"]


def test_a_key_is_offered_before_the_methods_are_queried(node: LoginNode, tmp_path: Path) -> None:
    """The request for the methods takes a round trip."""
    log_in(node)
    assert (node.methods_asked, len(node.offered)) == (0, 1)

    node.user_key = make_key(tmp_path / "locked", passphrase=PASSPHRASE)
    profile = replace(node.profile(), identity_file=str(tmp_path / "locked"))
    log_in(node, Person(answers=[PASSPHRASE]), profile)
    assert node.methods_asked == 0

    # The user is not asked to unlock a key, only to identify it, before the server is known to accept keys.
    make_key(tmp_path / "closed", "ecdsa")
    command = ["ssh-keygen", "-q", "-p", "-m", "PEM", "-P", "", "-N", PASSPHRASE, "-f", str(tmp_path / "closed")]
    subprocess.run(command, check=True)
    (tmp_path / "closed.pub").unlink()
    profile = replace(profile, identity_file=str(tmp_path / "closed"))
    node.factors = ("password",)
    person = Person(answers=[PASSWORD])
    log_in(node, person, profile)
    assert node.methods_asked == 1
    assert [prompt for prompt, _ in person.prompts] == ["Password for operator@127.0.0.1: "]


def test_a_server_that_accepts_no_keys_is_offered_at_most_one_key(
    node: LoginNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    for kind in ("ed25519", "ecdsa"):
        make_key(tmp_path / ".ssh" / f"id_{kind}", kind)
    node.factors = ("password",)
    log_in(node, Person(answers=[PASSWORD]), replace(node.profile(), identity_file=None))
    assert [method for method, _ in node.offered] == ["publickey", "password"]
    assert node.methods_asked == 0

    with pytest.raises(AuthenticationError, match=r"id_ed25519 \(the server did not ask for a key\)") as refused:
        log_in(node, Person(answers=["wrong"] * 3), replace(node.profile(), identity_file=None))
    assert f"`ssh -v -F none -p {node.port} operator@127.0.0.1`" in refused.value.fix


def test_the_methods_are_requested_if_no_key_can_be_offered(node: LoginNode, monkeypatch: pytest.MonkeyPatch) -> None:
    def finalize(_handler: AuthHandler, _type: str) -> str:
        raise paramiko.AuthenticationException("Unable to agree on a pubkey algorithm.")

    monkeypatch.setattr(AuthHandler, "_finalize_pubkey_algorithm", finalize)
    node.factors = ("publickey,password",)
    log_in(node, Person(answers=[PASSWORD]))
    assert [method for method, _ in node.offered] == ["password"]


def test_an_encrypted_key_prompts_for_its_passphrase(node: LoginNode, tmp_path: Path) -> None:
    node.user_key = make_key(tmp_path / "locked", passphrase=PASSPHRASE)
    person = Person(answers=["wrong", PASSPHRASE])

    log_in(node, person, replace(node.profile(), identity_file=str(tmp_path / "locked")))

    assert len(person.prompts) == 2
    assert all("Passphrase" in prompt and str(tmp_path / "locked") in prompt for prompt, _ in person.prompts)
    assert not any(echo for _, echo in person.prompts)
    assert len(set(sent(node, "publickey"))) == 1


def test_a_key_that_the_server_refuses_is_not_unlocked(node: LoginNode, tmp_path: Path) -> None:
    make_key(tmp_path / "locked", passphrase=PASSPHRASE)
    person = Person(answers=[PASSPHRASE])
    with pytest.raises(AuthenticationError, match="locked"):
        log_in(node, person, replace(node.profile(), identity_file=str(tmp_path / "locked")))
    assert person.prompts == []
    assert len(sent(node, "publickey")) == 1


def test_an_unlocked_key_does_not_prompt_again(node: LoginNode, tmp_path: Path) -> None:
    node.user_key = make_key(tmp_path / "locked", passphrase=PASSPHRASE)
    profile = replace(node.profile(), identity_file=str(tmp_path / "locked"))
    unlocked, person = UnlockedKeys(), Person(answers=[PASSPHRASE])

    first = connect(profile, person, unlocked=unlocked)
    again = connect(profile, person, unlocked=unlocked)
    first.close()
    again.close()
    assert len(person.prompts) == 1
    assert first.asks_nobody
    assert again.asks_nobody

    subprocess.run(
        ["ssh-keygen", "-q", "-p", "-P", PASSPHRASE, "-N", "another", "-f", str(tmp_path / "locked")], check=True
    )
    with pytest.raises(AuthenticationError):  # a changed file is not the unlocked key
        connect(profile, person, unlocked=unlocked)
    assert len(person.prompts) == 2


def test_a_default_key_is_found(node: LoginNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "user"
    (home / ".ssh").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    node.user_key = make_key(home / ".ssh" / "id_ecdsa", "ecdsa")
    log_in(node, profile=replace(node.profile(), identity_file=None))


def test_the_agents_keys_are_offered_and_spare_the_passphrase(
    node: LoginNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.user_key = make_key(tmp_path / "held")
    with ssh_agent(tmp_path / "agent", tmp_path / "held") as socket:
        monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
        subprocess.run(["ssh-keygen", "-q", "-p", "-N", PASSPHRASE, "-f", str(tmp_path / "held")], check=True)

        log_in(node, profile=replace(node.profile(), identity_file=None))
        log_in(node, profile=replace(node.profile(), identity_file=str(tmp_path / "held")))
        log_in(node, profile=replace(node.profile(), identity_file=str(tmp_path / "held.pub")))
    assert set(sent(node, "publickey")) == {node.user_key.get_base64()}


def test_an_agents_key_is_used_whatever_its_comment_holds(
    node: LoginNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_key(tmp_path / "latin 1")
    node.user_key = make_key(tmp_path / "held")
    command = ["ssh-keygen", "-q", "-c", "-C", os.fsdecode(b"K\xe4the"), "-f", str(tmp_path / "latin 1")]
    subprocess.run(command, check=True)
    with ssh_agent(tmp_path / "agent", tmp_path / "latin 1", tmp_path / "held") as socket:
        monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
        profile = replace(node.profile(), identity_file=None)
        log_in(node, profile=profile)

        node.user_key = make_key(tmp_path / "another")
        with pytest.raises(AuthenticationError, match="the agent's key K\N{REPLACEMENT CHARACTER}the"):
            log_in(node, profile=profile)


def test_an_agent_that_does_not_sign_leaves_the_others_their_turn(
    node: LoginNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent waits for a touch that never comes; the server is not to blame."""
    for module in ("keys.AGENT_DEADLINE_S", "authentication.KEY_DEADLINE_S"):
        monkeypatch.setattr(f"llmb_tui.cluster.ssh.{module}", 0.3)
    node.factors = ("publickey,password", "password")  # a key that the client only asks about counts as accepted here
    person = Person(answers=[PASSWORD, None])
    profile = replace(node.profile(), identity_file=None)
    with silent_agent(tmp_path / "agent", node.user_key) as socket:
        monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
        log_in(node, person, profile)
        with pytest.raises(AuthenticationError) as caught:
            log_in(node, person, profile)
    assert person.prompts == [("Password for operator@127.0.0.1: ", False)] * 2
    assert "the agent's key token 1 (the agent gave no signature in time)" in caught.value.why


def test_a_password_is_requested_when_no_key_is_accepted(node: LoginNode) -> None:
    node.factors = ("password",)
    person = Person(answers=["wrong", PASSWORD])
    log_in(node, person)
    assert person.prompts == [("Password for operator@127.0.0.1: ", False)] * 2


def test_a_code_after_the_key(node: LoginNode) -> None:
    node.factors = ("publickey", "keyboard-interactive")
    node.rounds = (("Verification code: ",),)
    node.codes = ["123456"]
    person = Person(answers=["123456"])
    log_in(node, person)
    assert person.prompts == [("(operator@127.0.0.1) Verification code: ", False)]


@pytest.mark.parametrize("kind", ["ed25519", "locked"])
@pytest.mark.parametrize("first", ["password", "keyboard-interactive"])
def test_a_key_after_a_typed_answer(node: LoginNode, tmp_path: Path, first: str, kind: str) -> None:
    """A key that is offered before the server names its methods is ignored, and remains available."""
    node.factors = (first, "publickey")
    phrase = [PASSPHRASE] if kind == "locked" else []
    node.user_key = make_key(tmp_path / kind, passphrase="".join(phrase))
    person = Person(answers=[PASSWORD, *phrase])
    log_in(node, person, replace(node.profile(), identity_file=str(tmp_path / kind)))
    assert len(person.prompts) == 1 + len(phrase)


def test_a_password_then_a_code_in_rounds(node: LoginNode) -> None:
    node.factors = ("keyboard-interactive",)
    node.rounds = (("Password: ",), ("Verification code: ",), ())
    node.codes = ["123456"]
    person = Person(answers=[PASSWORD, "123456"])
    log_in(node, person)
    assert [prompt for prompt, _ in person.prompts] == [
        f"(operator@127.0.0.1) {question}" for question in ("Password: ", "Verification code: ")
    ]


def test_a_bastion_that_waits_for_enter_gets_it_and_then_the_password(node: LoginNode) -> None:
    node.factors = ("keyboard-interactive",)
    node.instructions = "Open https://bastion.example/otp/AB12 and validate."
    node.rounds = (("Press Enter when done: ",), ("Password: ",))
    person = Person(answers=["", PASSWORD])
    log_in(node, person)
    assert [echo for _, echo in person.prompts] == [True, False]
    assert sent(node, "keyboard-interactive") == ["", PASSWORD]


def test_a_refused_code_is_requested_again_and_never_sent_twice(node: LoginNode) -> None:
    node.factors = ("publickey", "keyboard-interactive")
    node.rounds = (("Verification code: ",),)
    node.codes = ["222222"]
    person = Person(answers=["111111", "222222"])

    log_in(node, person)

    assert sent(node, "keyboard-interactive") == ["111111", "222222"]


def test_a_declined_question_sends_no_answer(node: LoginNode) -> None:
    node.factors = ("keyboard-interactive,password",)
    with pytest.raises(AuthenticationError, match=r"The question `\(operator@127.0.0.1\) Password:` was not answered"):
        log_in(node, Person())
    assert [method for method, _ in node.offered] == ["publickey"]


def test_a_closed_connection_is_detected_without_waiting() -> None:
    ours, theirs = socket.socketpair()
    ours.settimeout(3600)  # a read from an open line would wait this long
    assert not has_hung_up(ours)
    theirs.send(b"x")
    assert not has_hung_up(ours)
    ours.recv(1)
    theirs.close()
    assert has_hung_up(ours)
    ours.close()
    assert has_hung_up(ours)


def test_three_wrong_passwords_are_enough(node: LoginNode) -> None:
    node.factors = ("keyboard-interactive,password",)
    person = Person(answers=["a", "b", "c", "d"])
    with pytest.raises(AuthenticationError):
        log_in(node, person)
    assert sent(node, "keyboard-interactive") == ["a", "b", "c"]
    assert sent(node, "password") == []


def test_a_refusal_lists_attempts_and_accepted_methods(node: LoginNode, tmp_path: Path) -> None:
    make_key(tmp_path / "other")
    with pytest.raises(AuthenticationError) as caught:
        log_in(node, profile=replace(node.profile(), identity_file=str(tmp_path / "other")))
    assert str(tmp_path / "other") in caught.value.why
    assert "publickey" in caught.value.why
    assert "operator" in caught.value.what


@pytest.mark.parametrize(
    ("content", "reason"), [(None, "No such file"), (b"no key", "unknown format of a private key")]
)
def test_an_identity_file_that_is_not_a_key_is_named(
    node: LoginNode, tmp_path: Path, content: bytes | None, reason: str
) -> None:
    path = tmp_path / "broken"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(AuthenticationError) as caught:
        log_in(node, profile=replace(node.profile(), identity_file=str(path)))
    assert reason in caught.value.why


def test_a_key_of_an_unknown_user_is_skipped(node: LoginNode) -> None:
    profile = replace(node.profile(), identity_file="~no-such-user/key")
    with pytest.raises(AuthenticationError, match=r"key ~no-such-user/key \(No such file"):
        log_in(node, profile=profile)
    node.factors = ("password",)
    log_in(node, Person(answers=[PASSWORD]), profile)


def test_host_keys_of_a_user_that_there_is_not_are_none_and_none_is_added(
    node: LoginNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    profile = replace(node.profile(), known_hosts="~no-such-user/known_hosts")
    with pytest.raises(HostKeyUnknownError, match="~no-such-user"):
        log_in(node, profile=profile)
    with pytest.raises(LlmbError, match="The directory ~no-such-user"):
        log_in(node, Person(accepts=True), profile)
    assert list((tmp_path / "here").iterdir()) == []


def test_a_key_on_a_security_key_needs_no_passphrase(node: LoginNode, tmp_path: Path) -> None:
    (tmp_path / "token.pub").write_text("sk-ssh-ed25519@openssh.com AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29t\n")
    (tmp_path / "token").write_text("what only OpenSSH can read")
    person = Person()
    with pytest.raises(AuthenticationError, match="ssh-add"):
        log_in(node, person, replace(node.profile(), identity_file=str(tmp_path / "token")))
    assert person.prompts == []


def test_prompts_are_clean(node: LoginNode) -> None:
    node.factors = ("keyboard-interactive",)
    node.rounds = (("\x1b[2JPassword\x07: ",),)
    person = Person(answers=[PASSWORD])
    log_in(node, person)
    assert person.prompts == [("(operator@127.0.0.1) Password\ufffd: ", False)]


def test_a_prompt_in_another_encoding_is_shown(node: LoginNode) -> None:
    node.factors = ("keyboard-interactive",)
    node.rounds = (("Kennwort für eos: ".encode("latin-1"),),)
    node.codes = ["123456"]
    person = Person(answers=["123456"])
    log_in(node, person)
    assert person.prompts == [("(operator@127.0.0.1) Kennwort f\ufffdr eos: ", False)]


def test_a_message_between_prompts_is_shown_with_the_next_prompt(node: LoginNode) -> None:
    node.factors = ("keyboard-interactive",)
    node.rounds = ((), ("Password: ",))
    node.instructions = "Maintenance on Monday.\n"
    person = Person(answers=[PASSWORD])
    log_in(node, person)
    assert person.prompts == [
        ("Maintenance on Monday.\nMaintenance on Monday.\n(operator@127.0.0.1) Password: ", False)
    ]


def test_a_prompt_of_any_length_fits_a_screen(node: LoginNode) -> None:
    node.factors = ("keyboard-interactive",)
    node.rounds = (("Password: ",),)
    node.instructions = "x" * 100_000
    person = Person(answers=[PASSWORD])
    log_in(node, person)
    assert len(person.prompts[0][0]) < 5_000
    assert person.prompts[0][0].endswith("(operator@127.0.0.1) Password: ")


def test_a_banner_is_harmless_whatever_it_holds(node: LoginNode) -> None:
    node.banner = "\x1b]52;c;ZXZpbA==\x07\x1b[2JWelcome\x08\r\n" + "x" * 100_000
    connection = connect(node.profile(), NonInteractivePrompter())
    assert connection.banner.startswith("Welcome\N{REPLACEMENT CHARACTER}\nxxx")
    assert len(connection.banner) < 20_000
    connection.close()


@pytest.fixture
def busy() -> Iterator[_Busy]:
    server = _Busy()
    yield server
    server.close()


class _Busy:
    """A server that closes the first `refuses` connections without a banner, and forwards all later ones."""

    def __init__(self) -> None:
        self.refuses = 0
        self.refused = 0
        self.passes_to = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                if self.refused < self.refuses:
                    self.refused += 1
                    connection.close()
                else:
                    there = socket.create_connection(("127.0.0.1", self.passes_to))
                    for pair in ((connection, there), (there, connection)):
                        threading.Thread(target=_pass_on, args=pair, daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


def test_a_busy_server_is_tried_again(node: LoginNode, busy: _Busy) -> None:
    busy.refuses, busy.passes_to = 2, node.port
    known = node.known_hosts.read_text().replace(str(node.port), str(busy.port))
    node.known_hosts.write_text(known)
    log_in(node, profile=replace(node.profile(), port=busy.port))
    assert busy.refused == 2


def test_a_server_that_stays_busy_is_given_up(node: LoginNode, busy: _Busy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llmb_tui.cluster.ssh.connect.REFUSED_S", 1.0)
    busy.refuses = 1000
    with pytest.raises(UnreachableError, match="MaxStartups"):
        log_in(node, profile=replace(node.profile(), port=busy.port))
    assert busy.refused > 1


def test_nothing_reaches_the_terminal_and_nothing_is_read_from_it(node: LoginNode) -> None:
    node.factors = ("keyboard-interactive",)
    node.rounds = (("Verification code: ",),)
    script = (
        "import sys\n"
        "from llmb_tui.cluster.ssh.connect import connect\n"
        "from llmb_tui.cluster.failures import AuthenticationError\n"
        "from llmb_tui.cluster.slurm.profile import SlurmProfile\n"
        "from llmb_tui.cluster.prompter import NonInteractivePrompter\n"
        f"profile = {node.profile()!r}\n"
        "try: connect(profile, NonInteractivePrompter())\n"
        "except AuthenticationError: sys.exit(7)\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False, input=b"1\n", timeout=60)
    assert (result.returncode, result.stdout, result.stderr) == (7, b"", b"")
    assert sent(node, "keyboard-interactive") == []


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


def test_an_unknown_host_key_that_is_not_accepted_ends_the_login(node: LoginNode) -> None:
    node.known_hosts.write_text("")
    with pytest.raises(HostKeyUnknownError, match="SHA256:"):
        log_in(node)
    assert node.offered == []
    assert node.known_hosts.read_text() == ""


def test_a_changed_host_key_neither_prompts_nor_sends_credentials(node: LoginNode, tmp_path: Path) -> None:
    old = node.host_keys[0]
    node.host_keys = [make_key(tmp_path / "new_host_key")]
    person = Person(accepts=True)

    with pytest.raises(HostKeyChangedError) as caught:
        log_in(node, person)

    for key in (old, node.host_keys[0]):
        assert ServerKey(key.get_name(), key.asbytes()).fingerprint in caught.value.why
    assert person.host_keys == []
    assert node.offered == []


def test_a_known_host_key_type_is_requested_when_the_server_has_several(node: LoginNode, tmp_path: Path) -> None:
    node.host_keys = [make_key(tmp_path / "ecdsa_host_key", "ecdsa")]
    node.trust()
    node.host_keys.append(make_key(tmp_path / "another_host_key"))
    log_in(node)
