"""Sessions on real SSH servers: silence, cuts, restarts, and servers with few sessions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from llmb_tui.cluster.failures import DisconnectedError, LoginNeededError
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.cluster.ssh import heartbeat
from tests.cluster.narrow_line import NarrowLine
from tests.kit.waiting import until
from tests.rig.cluster import Rig
from tests.rig.line import Line

Open = Callable[..., SlurmCluster]

# The command ends with its stdin, as the log follower does.
_LONG = ("sh", "-c", "echo up; cat; exit")


@pytest.fixture
def open_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """A function that opens sessions, which end with the test. The user's own agent and keys are not used."""
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    sessions: list[SlurmCluster] = []

    def open_it(profile: SlurmProfile, prompter: Prompter | None = None) -> SlurmCluster:
        sessions.append(SlurmCluster(profile))
        if prompter is not None:
            sessions[-1].connect(prompter)
        return sessions[-1]

    yield open_it
    for session in sessions:
        session.close()


@pytest.fixture
def line(login: Rig) -> Iterator[Line]:
    with Line(login.port()) as line:
        yield line


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set a heartbeat timeout of three seconds."""
    monkeypatch.setattr(heartbeat, "ASK_EVERY_S", 0.5)
    monkeypatch.setattr(heartbeat, "PATIENCE_S", 2.5)


class Owner:
    """A user with the password and the token, who counts the questions."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self.questions = 0

    def accept_host_key(self, host: str, key_type: str, fingerprint: str, note: str = "") -> bool:
        raise AssertionError(f"the rig's key is known: {host} {key_type} {fingerprint} {note}")

    def answer(self, prompt: str, echo: bool) -> str:
        assert not echo
        self.questions += 1
        return self._rig.totp() if "code" in prompt.lower() else self._rig.password


def test_a_hang_is_noticed_and_ends_when_the_line_is_back(login: Rig, line: Line, open_session: Open) -> None:
    session = open_session(line.profile(login.profile()))
    session.run(["true"])
    outcome: list[Exception] = []

    def wait() -> None:
        try:
            session.run(["sleep", "300"], deadline_s=300)
        except DisconnectedError as broken:
            outcome.append(broken)

    waiting = threading.Thread(target=wait)
    waiting.start()
    until(lambda: any("sleep 300" in process for process in login.operator_processes()))
    line.hang()
    until(lambda: session.health.note.startswith("no answer for"))
    assert session.state == "live"
    until(lambda: session.state != "live")
    waiting.join(10)
    assert len(outcome) == 1
    line.resume()
    until(lambda: session.state == "live")
    assert session.run(["echo", "back"]).stdout == "back\n"
    login.as_root(["pkill", "-u", login.user, "-x", "sleep"], check=False)


@pytest.mark.usefixtures("quick")
def test_commands_behind_a_hung_line_end_when_the_server_notices_it(login: Rig, line: Line, open_session: Open) -> None:
    session = open_session(line.profile(login.profile()))
    stream = session.stream(_LONG)
    assert stream.read(20) == b"up\n"
    line.hang()
    with pytest.raises(DisconnectedError):
        stream.read(60)
    assert any("echo up" in process for process in login.operator_processes())
    line.resume()  # the delayed data arrives: the end of the connection
    until(lambda: not any("echo up" in process for process in login.operator_processes()))


@pytest.mark.parametrize("bulk", [False, True], ids=["first", "own"])
def test_closing_leaves_nothing_running_there(login: Rig, open_session: Open, bulk: bool) -> None:
    session = open_session(login.profile())
    streams = [session.stream(_LONG, bulk=bulk) for _ in range(3)]
    assert [stream.read(20) for stream in streams] == [b"up\n"] * 3
    streams[0].close()
    until(lambda: sum("echo up" in process for process in login.operator_processes()) == 2)
    session.close()
    until(lambda: not login.operator_processes())


@pytest.mark.usefixtures("quick")
def test_a_slow_line_full_of_output_does_not_count_as_dead(login: Rig, open_session: Open) -> None:
    size = 1_000_000
    with NarrowLine(login.port(), bytes_per_s=120_000) as narrow:
        session = open_session(narrow.profile(login.profile()))
        received = 0
        with session.stream(["head", "-c", str(size), "/dev/zero"]) as stream:
            while data := stream.read(60):
                received += len(data)
        assert received == size
        assert session.state == "live"
        assert narrow.connections == 1


def test_a_restarted_server_is_connected_again(login: Rig, open_session: Open) -> None:
    session = open_session(login.profile())
    stream = session.stream(_LONG, bulk=True)
    assert stream.read(20) == b"up\n"
    login.servers.stop("login")
    with pytest.raises(DisconnectedError):
        stream.read(20)
    until(lambda: session.state in ("lost", "connecting"))
    login.servers.start_one("login")
    until(lambda: session.state == "live")
    with session.stream(_LONG, bulk=True) as again:
        assert again.read(20) == b"up\n"
        assert session.bulk.alive


def test_twelve_commands_and_a_stream_share_ten_sessions(login: Rig, open_session: Open) -> None:
    session = open_session(login.profile())
    stream = session.stream(_LONG)
    assert stream.read(20) == b"up\n"
    answers: list[str] = []

    def run(number: int) -> None:
        answers.append(session.run_script('sleep 0.2; echo "$1"', [str(number)], deadline_s=60).stdout)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(answers, key=int) == [f"{number}\n" for number in range(12)]
    assert session.calls_last_minute == 13


def test_with_one_session_a_long_stream_uses_a_second_connection(login: Rig, open_session: Open) -> None:
    session = open_session(login.profile("tight"))
    stream = session.stream(_LONG, bulk=True)
    assert stream.read(20) == b"up\n"
    for number in range(3):
        assert session.run(["echo", str(number)], deadline_s=30).stdout == f"{number}\n"
    assert stream.read(0.1) is None
    assert session.bulk.alive


def test_with_one_session_a_command_ends_the_stream_on_the_same_connection(login: Rig, open_session: Open) -> None:
    session = open_session(login.profile("tight"))
    lines = 0
    for number in range(3):
        with session.stream(["sh", "-c", "echo up; cat; exit"]) as stream:
            assert stream.read(20) == b"up\n"
            assert session.run(["echo", str(number)], deadline_s=30).stdout == f"{number}\n"
            with pytest.raises(DisconnectedError):
                stream.read(20)
            lines += 1
    assert lines == 3
    assert session.state == "live"


@pytest.mark.parametrize("endpoint", ["mfa", "pwotp"])
def test_after_a_cut_a_login_with_a_code_waits_for_a_person(login: Rig, open_session: Open, endpoint: str) -> None:
    owner = Owner(login)
    with Line(login.port(endpoint)) as line:
        session = open_session(line.profile(login.profile(endpoint)), owner)
        with session.stream(_LONG, bulk=True) as stream:
            assert stream.read(20) == b"up\n"
            assert not session.bulk.alive
        asked_at_first = owner.questions
        line.cut()
        until(lambda: session.state == "needs-login")
        with pytest.raises(LoginNeededError):
            session.run(["true"])
        assert (owner.questions, line.connections) == (asked_at_first, 1)
        session.connect(owner)
        assert session.run(["echo", "back"]).stdout == "back\n"
        assert (owner.questions, line.connections) == (2 * asked_at_first, 2)


def test_a_key_with_a_passphrase_prompts_once_for_all_connections(login: Rig, open_session: Open) -> None:
    from tests.rig.client import PASSPHRASE

    class PassphraseOwner(Owner):
        def answer(self, prompt: str, echo: bool) -> str:
            super().answer(prompt, echo)
            return PASSPHRASE

    owner = PassphraseOwner(login)
    session = open_session(login.profile("enc"), owner)
    with session.stream(_LONG, bulk=True) as stream:
        assert stream.read(20) == b"up\n"
        assert session.bulk.alive
    login.servers.end_sessions("login")
    until(lambda: session.state == "live" and session.run(["true"]).exit_code == 0)
    assert owner.questions == 1


def test_a_way_through_a_bastion_is_watched_to_its_end(login: Rig, open_session: Open) -> None:
    session = open_session(login.profile("behind"))
    session.run(["true"])
    until(lambda: session.health.round_trip_s is not None)
    login.servers.end_sessions("bastion")
    until(lambda: session.state != "live")
    assert session.run(["echo", "back"], deadline_s=30).stdout == "back\n"
    session.close()
    until(lambda: not login.servers.sessions("bastion"))
