from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from llmb_tui.cluster import dialer
from llmb_tui.cluster.failures import AuthenticationFailed, Disconnected, Unreachable
from llmb_tui.cluster.prompter import Unattended
from llmb_tui.cluster.session import Session
from llmb_tui.errors import Trouble
from tests.cluster.login_node import PASSWORD, LoginNode, Person, wait_until


@pytest.fixture
def session(node: LoginNode) -> Iterator[Session]:
    session = Session(node.profile(), Unattended())
    yield session
    session.close()


@pytest.fixture
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def test_the_first_command_connects_and_the_next_ones_share_the_connection(node: LoginNode, session: Session) -> None:
    assert (session.state, session.alive, session.banner) == ("connecting", False, "")
    assert session.run(["echo", "one"]).stdout == "one\n"
    assert session.run_script('echo "$1"', ["two"]).stdout == "two\n"
    assert (session.state, session.alive) == ("live", True)
    assert len(node.transports) == 1


def test_after_a_cut_the_next_command_connects_again(node: LoginNode, session: Session) -> None:
    session.run(["true"])
    node.cut()

    assert session.run(["echo", "again"]).stdout == "again\n"
    node.cut()
    session.write_file(str(node.home / "file"), b"data")
    node.cut()
    with session.stream(["echo", "streamed"]) as stream:
        assert stream.read(10) == b"streamed\n"

    assert (node.home / "file").read_bytes() == b"data"
    assert len(node.transports) == 4


def test_a_command_whose_outcome_is_unknown_is_not_run_again(node: LoginNode, session: Session) -> None:
    outcome: list[Trouble] = []

    def submit() -> None:
        try:
            session.run_script("echo x >> submissions; sleep 60")
        except Trouble as trouble:
            outcome.append(trouble)

    thread = threading.Thread(target=submit)
    thread.start()
    wait_until((node.home / "submissions").exists)
    node.cut()
    thread.join(10)

    assert isinstance(outcome[0], Disconnected)
    assert session.run(["cat", "submissions"]).stdout == "x\n"


def test_threads_that_need_a_connection_at_once_make_one(node: LoginNode, session: Session) -> None:
    barrier = threading.Barrier(6)
    answers: list[str] = []

    def run() -> None:
        barrier.wait()
        answers.append(session.run(["echo", "ok"]).stdout)

    threads = [threading.Thread(target=run) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert answers == ["ok\n"] * 6
    assert len(node.transports) == 1


def stands_in_dialer(thread: threading.Thread) -> bool:
    """True when the thread's innermost frame is the dialer's own: it waits for the one that connects."""
    frame = sys._current_frames().get(thread.ident or 0)
    return frame is not None and frame.f_code.co_filename == dialer.__file__


def test_threads_that_wait_for_a_try_share_its_failure(node: LoginNode) -> None:
    asked = threading.Event()
    may_answer = threading.Event()

    class Slow(Person):
        def answer(self, prompt: str, echo: bool) -> str | None:
            super().answer(prompt, echo)
            asked.set()
            may_answer.wait(10)
            return None

    node.factors = ("password",)
    person = Slow()
    session = Session(node.profile(), person)
    failures: list[Trouble] = []

    def run() -> None:
        try:
            session.run(["true"])
        except Trouble as trouble:
            failures.append(trouble)

    first = threading.Thread(target=run)
    first.start()
    assert asked.wait(10)
    assert session.state == "connecting"
    others = [threading.Thread(target=run) for _ in range(2)]
    for thread in others:
        thread.start()
    wait_until(lambda: all(stands_in_dialer(thread) for thread in others))
    may_answer.set()
    for thread in [first, *others]:
        thread.join(10)

    assert [type(failure) for failure in failures] == [AuthenticationFailed] * 3
    assert len(person.prompts) == 1
    session.close()


def test_a_broken_connection_and_a_failed_try_show_as_lost(node: LoginNode, session: Session) -> None:
    session.run(["true"])
    node.cut()
    wait_until(lambda: session.state == "lost")
    node.close()
    with pytest.raises(Unreachable):
        session.run(["true"])
    assert session.state == "lost"


def test_failed_tries_are_spaced(closed_port: int, node: LoginNode) -> None:
    session = Session(replace(node.profile(), port=closed_port), Unattended())
    started = time.monotonic()
    for _ in range(3):
        with pytest.raises(Unreachable):
            session.run(["true"])
    assert 1.5 <= time.monotonic() - started < 10  # 0.5 s, then 1 s
    session.close()


def test_patience_tries_until_the_host_is_there(
    closed_port: int, node: LoginNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dialer, "FIRST_PAUSE_S", 0.05)
    session = Session(replace(node.profile(), port=closed_port), Unattended())
    thread = threading.Thread(target=lambda: session.connect(patience_s=30))
    thread.start()
    wait_until(lambda: session.state == "lost")
    session.profile = node.profile()
    thread.join(20)
    assert session.state == "live"
    session.close()


def test_patience_ends(closed_port: int, node: LoginNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialer, "FIRST_PAUSE_S", 0.05)
    session = Session(replace(node.profile(), port=closed_port), Unattended())
    with pytest.raises(Unreachable):
        session.connect(patience_s=0.3)
    session.close()


def test_patience_is_not_for_a_refused_log_in(node: LoginNode) -> None:
    node.factors = ("password",)
    person = Person(answers=["wrong", "wrong", "wrong", PASSWORD])
    session = Session(node.profile(), person)
    with pytest.raises(AuthenticationFailed):
        session.connect(patience_s=30)
    assert person.answers == [PASSWORD]
    session.close()


def test_a_closed_session_stays_closed(node: LoginNode, session: Session) -> None:
    session.run(["true"])
    session.close()
    assert (session.state, session.alive) == ("closed", False)
    with pytest.raises(Disconnected, match="closed here"):
        session.run(["true"])
    assert len(node.transports) == 1


def test_closing_ends_a_thread_that_waits_for_its_next_try(closed_port: int, node: LoginNode) -> None:
    session = Session(replace(node.profile(), port=closed_port), Unattended())
    failures: list[Trouble] = []

    def connect() -> None:
        try:
            session.connect(patience_s=60)
        except Trouble as trouble:
            failures.append(trouble)

    thread = threading.Thread(target=connect)
    thread.start()
    wait_until(lambda: session.state == "lost")
    session.close()
    thread.join(10)
    assert not thread.is_alive()
    assert failures


def test_the_banner_is_the_login_nodes(node: LoginNode, session: Session) -> None:
    node.banner = "Be kind.\n"
    session.run(["true"])
    assert session.banner == "Be kind.\n"
