"""A session whose link breaks: when it reconnects by itself, and when only the user can reconnect."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace

import pytest

from llmb_tui.cluster import reconnector
from llmb_tui.cluster.failures import AuthenticationError, LoginNeededError, UnreachableError
from llmb_tui.cluster.link import Link
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from tests.cluster.login_node import LoginNode, Person, make_key
from tests.kit.waiting import until


@pytest.fixture
def opened() -> Iterator[Callable[[SlurmCluster], SlurmCluster]]:
    """Sessions that are closed at the end of the test."""
    sessions: list[SlurmCluster] = []

    def open_it(session: SlurmCluster) -> SlurmCluster:
        sessions.append(session)
        return session

    yield open_it
    for session in sessions:
        session.close()


def wants_a_code(node: LoginNode, *codes: str) -> None:
    """Log in with the key and one of the codes; each code is valid once."""
    node.factors = ("publickey", "keyboard-interactive")
    node.rounds = (("Verification code: ",),)
    node.codes = list(codes)


def test_a_login_with_a_code_is_never_repeated_unbidden(
    node: LoginNode, opened: Callable[[SlurmCluster], SlurmCluster]
) -> None:
    wants_a_code(node, "111111", "222222")
    person = Person(answers=["111111", "222222"])
    session = opened(SlurmCluster(node.profile()))
    session.connect(person)
    node.cut()
    until(lambda: session.state == "needs-login")

    for use in (lambda: session.run(["true"]), lambda: session.stream(["true"]), session.connect):
        with pytest.raises(LoginNeededError):
            use()

    assert session.health.note == "needs you to log in again"
    assert (len(person.prompts), len(node.transports)) == (1, 1)
    session.connect(person)
    assert session.run(["echo", "back"]).stdout == "back\n"
    assert (len(person.prompts), len(node.transports), session.state) == (2, 2, "live")


def test_a_caller_that_waits_for_a_login_continues_after_it(
    node: LoginNode, opened: Callable[[SlurmCluster], SlurmCluster]
) -> None:
    wants_a_code(node, "111111", "222222")
    asked, may_answer = threading.Event(), threading.Event()

    class Slow(Person):
        def answer(self, prompt: str, echo: bool) -> str | None:
            if self.prompts:
                asked.set()
                may_answer.wait(20)
            return super().answer(prompt, echo)

    person = Slow(answers=["111111", "222222"])
    session = opened(SlurmCluster(node.profile()))
    session.connect(person)
    node.cut()
    until(lambda: session.state == "needs-login")
    again = threading.Thread(target=lambda: session.connect(person))
    again.start()
    assert asked.wait(20)
    assert session.state == "connecting"
    answers: list[str] = []
    waiting = threading.Thread(target=lambda: answers.append(session.run(["echo", "back"]).stdout))
    waiting.start()
    may_answer.set()
    for thread in (again, waiting):
        thread.join(20)
    assert answers == ["back\n"]


def test_a_user_who_cancels_may_log_in_later(node: LoginNode, opened: Callable[[SlurmCluster], SlurmCluster]) -> None:
    wants_a_code(node, "111111", "222222")
    person = Person(answers=["111111", None, "222222"])
    session = opened(SlurmCluster(node.profile()))
    session.connect(person)
    node.cut()
    until(lambda: session.state == "needs-login")
    with pytest.raises(AuthenticationError):
        session.connect(person)
    with pytest.raises(LoginNeededError):
        session.run(["true"])
    session.connect(person)
    assert session.state == "live"


def test_the_first_connection_may_prompt_again_after_a_failed_login(
    node: LoginNode, opened: Callable[[SlurmCluster], SlurmCluster]
) -> None:
    wants_a_code(node, "111111")
    person = Person(answers=[None, "111111"])
    session = opened(SlurmCluster(node.profile()))
    with pytest.raises(AuthenticationError):
        session.connect(person)
    assert session.state == "lost"
    session.connect(person)
    assert session.run(["echo", "in"]).stdout == "in\n"


def test_a_login_without_questions_is_repeated_without_a_use(
    node: LoginNode, opened: Callable[[SlurmCluster], SlurmCluster]
) -> None:
    person = Person()
    session = opened(SlurmCluster(node.profile()))
    session.connect(person)
    node.cut()
    until(lambda: len(node.transports) == 2 and session.state == "live")
    assert person.prompts == []


def test_a_key_that_was_unlocked_once_does_not_prompt_again(
    node: LoginNode, opened: Callable[[SlurmCluster], SlurmCluster]
) -> None:
    locked = node.directory / "locked_key"
    node.user_key = make_key(locked, passphrase="secret")
    person = Person(answers=["secret"])
    session = opened(SlurmCluster(replace(node.profile(), identity_file=str(locked))))
    session.connect(person)
    node.cut()
    assert session.run(["echo", "back"]).stdout == "back\n"
    assert len(person.prompts) == 1


def test_a_host_key_that_cannot_be_saved_is_confirmed_once(
    node: LoginNode, opened: Callable[[SlurmCluster], SlurmCluster]
) -> None:
    person = Person(accepts=True)
    session = opened(SlurmCluster(replace(node.profile(), known_hosts=os.devnull)))
    session.connect(person)
    with session.stream(["echo", "long"], bulk=True) as stream:
        assert stream.read(10) == b"long\n"
    assert session.bulk.alive
    node.cut()
    until(lambda: session.state == "live" and len(node.transports) == 3)
    assert session.run(["echo", "back"]).stdout == "back\n"
    assert len(person.host_keys) == 1


def test_a_host_key_that_differs_from_the_accepted_key_needs_a_login(
    node: LoginNode, opened: Callable[[SlurmCluster], SlurmCluster]
) -> None:
    person = Person(accepts=True)
    session = opened(SlurmCluster(replace(node.profile(), known_hosts=os.devnull)))
    session.connect(person)
    node.host_keys = [make_key(node.directory / "other_host_key")]
    node.cut()
    until(lambda: session.state == "needs-login")
    with pytest.raises(LoginNeededError):
        session.run(["true"])
    session.connect(person)
    assert len({fingerprint for _, _, fingerprint in person.host_keys}) == 2


def test_a_login_that_is_refused_later_is_left_to_a_person(
    node: LoginNode, opened: Callable[[SlurmCluster], SlurmCluster]
) -> None:
    session = opened(SlurmCluster(node.profile()))
    session.run(["true"])
    mine = node.user_key
    node.user_key = make_key(node.directory / "another")
    node.cut()
    until(lambda: session.state == "needs-login")
    tried = len(node.transports)
    with pytest.raises(LoginNeededError):
        session.run(["true"])
    assert len(node.transports) == tried
    node.user_key = mine
    session.connect(Person())
    assert session.state == "live"


def test_an_unused_link_is_not_reconnected(
    node: LoginNode, opened: Callable[[SlurmCluster], SlurmCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []
    monkeypatch.setattr(reconnector, "LOOK_EVERY_S", 0.05)
    monkeypatch.setattr(reconnector, "WANTED_S", 0.0)
    session = opened(SlurmCluster(node.profile()))
    session.run(["true"])
    node.cut()
    until(lambda: session.state == "lost")
    state = vars(reconnector.Reconnector)["state"].fget

    def state_after_look(one: reconnector.Reconnector) -> str:
        looks.append(one._name)
        return str(state(one))

    monkeypatch.setattr(reconnector.Reconnector, "state", property(state_after_look))
    until(lambda: looks.count(node.profile().name) > 5)
    assert (session.state, session.health.note) == ("lost", "reconnects at the next use")
    assert len(node.transports) == 1
    assert session.run(["echo", "back"]).stdout == "back\n"


def test_an_unreachable_host_is_retried_and_the_note_gives_the_time(
    node: LoginNode, opened: Callable[[SlurmCluster], SlurmCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconnector, "LOOK_EVERY_S", 0.05)
    session = opened(SlurmCluster(node.profile()))
    session.run(["true"])
    there = session.profile
    session.profile = replace(there, port=1)
    node.cut()
    until(lambda: session.health.note == "trying again in 2 s")  # after 0.5 s, 1 s and 2 s
    session.profile = there
    until(lambda: session.state == "live")
    # Links of other tests may have tried this port meanwhile: their logins do not count.
    assert [transport.is_active() for transport in node.transports].count(True) == 1


def test_programs_that_lost_the_same_host_do_not_come_back_in_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def dial(_: Prompter) -> Link:
        raise UnreachableError("away")

    monkeypatch.setattr(reconnector, "time", SimpleNamespace(monotonic=lambda: 1000.0))  # a clock that stands still
    pauses = []
    for _ in range(8):
        lost = reconnector.Reconnector(dial, "away")
        with pytest.raises(UnreachableError):
            lost.live()
        pauses.append(lost._pause_left_s)
    assert min(pauses) >= reconnector.FIRST_PAUSE_S
    assert len(set(pauses)) > 1


def test_a_person_does_not_wait_for_the_pause(
    node: LoginNode, opened: Callable[[SlurmCluster], SlurmCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconnector, "FIRST_PAUSE_S", 300.0)
    session = opened(SlurmCluster(replace(node.profile(), port=1)))
    with pytest.raises(UnreachableError):
        session.connect()
    session.profile = node.profile()
    connecting = threading.Thread(target=session.connect, args=(Person(),), daemon=True)
    connecting.start()
    connecting.join(60)
    assert session.state == "live"


def test_health_of_a_link_that_is_well(node: LoginNode, opened: Callable[[SlurmCluster], SlurmCluster]) -> None:
    session = opened(SlurmCluster(node.profile()))
    before = session.health
    assert (before.state, before.round_trip_s, before.note) == ("connecting", None, "")
    session.run(["true"])
    until(lambda: session.health.round_trip_s is not None)
    now = session.health
    assert (now.state, now.note) == ("live", "")
    session.close()
    assert (session.health.state, session.health.round_trip_s, session.health.note) == ("closed", None, "")


def test_calls_of_the_last_minute_are_counted(
    node: LoginNode, opened: Callable[[SlurmCluster], SlurmCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = opened(SlurmCluster(node.profile()))
    assert session.calls_last_minute == 0
    session.run(["true"])
    session.run_script("true")
    session.write_file(str(node.home / "file"), b"")
    session.stream(["true"]).close()
    until(lambda: session.health.round_trip_s is not None)  # a heartbeat does not count as a call
    assert session.calls_last_minute == 4
    monkeypatch.setattr("llmb_tui.cluster.call_rate.PERIOD_S", 0.0)
    assert session.calls_last_minute == 0


def test_a_local_session_opens_no_connection(
    node: LoginNode, opened: Callable[[SlurmCluster], SlurmCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(node.home))
    session = opened(SlurmCluster(replace(node.profile(), transport="local")))
    assert session.run(["pwd"]).stdout == f"{node.home}\n"
    session.write_file(str(node.home / "file"), b"data")
    with session.stream(["cat", "file"], bulk=True) as stream:
        assert stream.read(10) == b"data"
    assert (session.health.state, session.health.round_trip_s, session.bulk.alive) == ("live", None, False)
    assert node.transports == []
    session.close()
    assert session.state == "closed"
