from __future__ import annotations

import base64
import hashlib
import hmac
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmb_tui.cluster.failures import HostKeyChangedError, HostKeyUnknownError
from llmb_tui.cluster.prompter import NonInteractivePrompter
from llmb_tui.cluster.ssh.host_keys import AcceptedKeys, KnownHosts, ServerKey
from tests.cluster.login_node import Person

ONE = ServerKey("ssh-ed25519", b"one")
TWO = ServerKey("ssh-ed25519", b"two")


def line(names: str, key: ServerKey = ONE) -> str:
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
    KnownHosts([file]).check(host, port, ONE, NonInteractivePrompter())


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
    with pytest.raises(HostKeyUnknownError):
        KnownHosts([file]).check("eos", 22, ONE, NonInteractivePrompter())


@pytest.mark.parametrize(
    ("content", "port"),
    [
        (line("eos", TWO), 22),
        (line("eos", ServerKey("ssh-rsa", b"one")), 22),
        (line(hashed("eos"), TWO), 22),
        ("@revoked " + line("*"), 22),
        (line("eos") + "@revoked " + line("eos"), 22),
        (line("eos") + "@revoked " + line("eos"), 2222),
        (line("eos") + line("[eos]:2222", TWO), 2222),
    ],
)
def test_a_changed_or_revoked_key_is_refused_without_a_prompt(tmp_path: Path, content: str, port: int) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(content)
    person = Person(accepts=True)
    with pytest.raises(HostKeyChangedError):
        KnownHosts([file]).check("eos", port, ONE, person)
    assert person.host_keys == []


@pytest.mark.parametrize(("names", "port", "is_said"), [("*", 22, True), ("eos", 2222, True), ("other", 22, False)])
def test_a_host_with_a_trusted_authority_but_no_certificate_gets_a_note(
    tmp_path: Path, names: str, port: int, is_said: bool
) -> None:
    file = tmp_path / "known_hosts"
    file.write_text("@cert-authority " + line(names, TWO))
    problem = f"{file} trusts an authority for this host, but the host showed no certificate."
    person = Person()
    for prompter in (person, None):
        with pytest.raises(HostKeyUnknownError) as caught:
            KnownHosts([file]).check("eos", port, ONE, prompter)
        assert (problem in caught.value.why) is is_said
    assert [problem in note for note in person.notes] == [is_said]


def test_a_host_with_two_known_keys_may_present_either_key(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(line("eos") + line("eos", TWO))
    for key in (ONE, TWO):
        KnownHosts([file]).check("eos", 22, key, NonInteractivePrompter())


def test_an_accepted_key_is_written_on_a_new_line(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(line("other").rstrip("\n"))
    KnownHosts([file]).check("eos", 2222, ONE, Person(accepts=True))
    KnownHosts([file]).check("eos", 2222, ONE, NonInteractivePrompter())
    assert len(file.read_text().splitlines()) == 2


def test_all_files_are_read_and_the_first_is_written(tmp_path: Path) -> None:
    own, system = tmp_path / "own", tmp_path / "system"
    system.write_text(line("eos"))
    hosts = KnownHosts([own, system])
    hosts.check("eos", 22, ONE, NonInteractivePrompter())
    hosts.check("other", 22, ONE, Person(accepts=True))
    assert system.read_text() == line("eos")
    assert own.read_text().startswith("other ssh-ed25519 ")


def test_an_accepted_key_is_hashed_if_configured(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    KnownHosts([file], hashed=True).check("eos", 2222, ONE, Person(accepts=True))
    KnownHosts([file]).check("eos", 2222, ONE, NonInteractivePrompter())
    assert "eos" not in file.read_text()
    result = subprocess.run(["ssh-keygen", "-F", "[eos]:2222", "-f", str(file)], capture_output=True, check=False)
    assert result.returncode == 0


def test_an_unknown_key_cannot_be_accepted_when_only_known_keys_are_allowed(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    with pytest.raises(HostKeyUnknownError, match="StrictHostKeyChecking"):
        KnownHosts([file]).check("eos", 22, ONE, None)
    assert not file.exists()


def test_without_a_file_an_accepted_key_is_kept_for_its_host_only(tmp_path: Path) -> None:
    files, accepted = [Path(os.devnull), tmp_path / "system"], AcceptedKeys()
    KnownHosts(files, accepted=accepted).check("eos", 22, ONE, Person(accepts=True))
    assert not (tmp_path / "system").exists()

    hosts = KnownHosts(files, accepted=accepted)
    hosts.check("EOS", 22, ONE, NonInteractivePrompter())
    hosts.check("eos", 22, ONE, None)
    for name, port, key in (("eos", 22, TWO), ("eos", 2222, ONE), ("other", 22, ONE)):
        with pytest.raises(HostKeyUnknownError):
            hosts.check(name, port, key, NonInteractivePrompter())


@pytest.mark.parametrize("may_ask", [True, False])
def test_without_a_file_the_error_and_the_question_name_the_setting_that_keeps_a_key(may_ask: bool) -> None:
    """`UserKnownHostsFile /dev/null`: an accepted key is kept for one session, and the file takes no line."""
    person = Person()
    with pytest.raises(HostKeyUnknownError) as caught:
        KnownHosts([Path(os.devnull)]).check("eos", 22, ONE, person if may_ask else None)
    assert caught.value.fix.startswith("Name a file as `known_hosts` in the cluster's profile. ")
    assert "add this line to that file:\neos ssh-ed25519 " in caught.value.fix
    note = "The answer is not saved: name a file as `known_hosts` in the cluster's profile."
    assert person.notes == [note] * may_ask


def test_an_accepted_key_that_cannot_be_saved_is_kept_in_memory(tmp_path: Path) -> None:
    file, accepted = tmp_path / "known_hosts", AcceptedKeys()
    file.symlink_to(tmp_path / "no folder" / "known_hosts")
    KnownHosts([file], accepted=accepted).check("eos", 22, ONE, Person(accepts=True))
    KnownHosts([file], accepted=accepted).check("eos", 22, ONE, NonInteractivePrompter())
    with pytest.raises(HostKeyUnknownError):
        KnownHosts([file], accepted=accepted).check("eos", 22, TWO, NonInteractivePrompter())


@pytest.mark.parametrize("content", [line("eos", TWO), "@revoked " + line("eos")])
def test_a_file_has_the_last_word_over_a_key_that_was_accepted(tmp_path: Path, content: str) -> None:
    files, accepted = [Path(os.devnull), tmp_path / "system"], AcceptedKeys()
    KnownHosts(files, accepted=accepted).check("eos", 22, ONE, Person(accepts=True))
    files[1].write_text(content)
    with pytest.raises(HostKeyChangedError):
        KnownHosts(files, accepted=accepted).check("eos", 22, ONE, Person(accepts=True))


def test_a_saved_key_is_unknown_again_after_its_file_is_deleted(tmp_path: Path) -> None:
    file, accepted = tmp_path / "known_hosts", AcceptedKeys()
    KnownHosts([file], accepted=accepted).check("eos", 22, ONE, Person(accepts=True))
    file.unlink()
    with pytest.raises(HostKeyUnknownError):
        KnownHosts([file], accepted=accepted).check("eos", 22, ONE, NonInteractivePrompter())


def test_the_error_for_a_changed_key_names_the_file_with_the_old_key(tmp_path: Path) -> None:
    own, system = tmp_path / "own", tmp_path / "system"
    own.write_text(line("other"))
    system.write_text(line("eos"))
    with pytest.raises(HostKeyChangedError) as caught:
        KnownHosts([own, system]).check("eos", 22, TWO, NonInteractivePrompter())
    assert str(system) in caught.value.why
    assert f"ssh-keygen -f {system} -R eos" in caught.value.fix


@given(st.text())
def test_no_content_of_the_file_breaks_the_reader(tmp_path_factory: pytest.TempPathFactory, content: str) -> None:
    file = tmp_path_factory.mktemp("hosts") / "known_hosts"
    file.write_bytes(content.encode(errors="surrogatepass"))
    with pytest.raises((HostKeyUnknownError, HostKeyChangedError)):
        KnownHosts([file]).check("eos", 22, ONE, NonInteractivePrompter())
