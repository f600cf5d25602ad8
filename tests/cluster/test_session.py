from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from llmb_tui.cluster import reconnector
from llmb_tui.cluster.failures import AuthenticationError, DisconnectedError, UnreachableError
from llmb_tui.cluster.prompter import NonInteractivePrompter, Prompter
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.cluster.ssh.connect import connect
from llmb_tui.cluster.ssh.connection import Connection
from llmb_tui.errors import LlmbError
from tests.cluster.login_node import PASSWORD, LoginNode, Person
from tests.kit.waiting import until


@pytest.fixture
def session(node: LoginNode) -> Iterator[SlurmCluster]:
    session = SlurmCluster(node.profile())
    yield session
    session.close()


@pytest.fixture
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def test_the_first_command_connects_and_the_next_ones_share_the_connection(
    node: LoginNode, session: SlurmCluster
) -> None:
    assert (session.state, session.banner) == ("connecting", "")
    assert session.run(["echo", "one"]).stdout == "one\n"
    assert session.run_script('echo "$1"', ["two"]).stdout == "two\n"
    assert session.state == "live"
    assert len(node.transports) == 1


def test_after_a_cut_the_next_command_connects_again(node: LoginNode, session: SlurmCluster) -> None:
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


def test_a_query_is_repeated_twice_after_a_broken_connection(node: LoginNode, session: SlurmCluster) -> None:
    looks: list[str] = []

    def look(cuts: int) -> str:
        looks.append(session.run(["echo", "seen"]).stdout)
        if len(looks) <= cuts:
            node.cut()
            raise DisconnectedError("The connection broke.")
        return looks[-1]

    assert session.retry_after_disconnect(lambda: look(2)) == "seen\n"
    assert len(looks) == 3
    looks.clear()
    with pytest.raises(DisconnectedError):
        session.retry_after_disconnect(lambda: look(3))
    assert len(looks) == 3


def test_a_query_over_a_closed_session_is_not_repeated(session: SlurmCluster) -> None:
    looks: list[str] = []

    def look() -> None:
        looks.append("")
        session.close()
        session.run(["true"])

    with pytest.raises(DisconnectedError):
        session.retry_after_disconnect(look)
    assert len(looks) == 1


def test_a_command_whose_outcome_is_unknown_is_not_run_again(node: LoginNode, session: SlurmCluster) -> None:
    outcome: list[LlmbError] = []

    def submit() -> None:
        try:
            session.run_script("echo x >> submissions; sleep 60")
        except LlmbError as error:
            outcome.append(error)

    thread = threading.Thread(target=submit)
    thread.start()
    until((node.home / "submissions").exists)
    node.cut()
    thread.join(10)

    assert isinstance(outcome[0], DisconnectedError)
    assert session.run(["cat", "submissions"]).stdout == "x\n"


def test_threads_that_need_a_connection_at_once_share_one_connection(node: LoginNode, session: SlurmCluster) -> None:
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
    """True if the innermost frame of the thread belongs to the reconnector: it waits for the connecting thread."""
    frame = sys._current_frames().get(thread.ident or 0)
    return frame is not None and frame.f_code.co_filename == reconnector.__file__


def test_threads_that_wait_for_a_try_share_its_failure(node: LoginNode) -> None:
    asked = threading.Event()
    may_answer = threading.Event()

    class Slow(Person):
        def answer(self, prompt: str, echo: bool) -> str | None:
            super().answer(prompt, echo)
            asked.set()
            may_answer.wait(60)
            return None

    node.factors = ("password",)
    person = Slow()
    session = SlurmCluster(node.profile())
    failures: list[LlmbError] = []

    def attempt(use: Callable[[], object]) -> None:
        try:
            use()
        except LlmbError as error:
            failures.append(error)

    first = threading.Thread(target=attempt, args=(lambda: session.connect(person),))
    first.start()
    assert asked.wait(60)
    assert session.state == "connecting"
    uses = (lambda: session.run(["true"]), session.connect, lambda: session.connect(person))
    others = [threading.Thread(target=attempt, args=(use,)) for use in uses]
    for thread in others:
        thread.start()
    until(lambda: all(stands_in_dialer(thread) for thread in others))
    may_answer.set()
    for thread in [first, *others]:
        thread.join(60)

    assert [type(failure) for failure in failures] == [AuthenticationError] * 4
    assert len(person.prompts) == 1
    session.close()


def test_a_caller_with_a_prompter_is_prompted_after_a_failed_attempt_without(
    node: LoginNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.factors = ("password",)
    knocking, may_go_on = threading.Event(), threading.Event()

    def slowly(profile: SlurmProfile, prompter: Prompter, **keys: Any) -> Connection:
        if isinstance(prompter, NonInteractivePrompter):
            knocking.set()
            may_go_on.wait(60)
        return connect(profile, prompter, **keys)

    monkeypatch.setattr("llmb_tui.cluster.ssh.connect.connect", slowly)
    session = SlurmCluster(node.profile())
    failures: list[LlmbError] = []

    def in_background() -> None:
        try:
            session.run(["true"])
        except LlmbError as error:
            failures.append(error)

    person = Person(answers=[PASSWORD])
    background = threading.Thread(target=in_background)
    background.start()
    assert knocking.wait(60)
    attended = threading.Thread(target=lambda: session.connect(person))
    attended.start()
    until(lambda: stands_in_dialer(attended))
    may_go_on.set()
    for thread in (background, attended):
        thread.join(60)

    assert [type(failure) for failure in failures] == [AuthenticationError]
    assert session.state == "live"
    assert len(person.prompts) == 1
    session.close()


def test_a_caller_without_a_prompter_shares_the_login_of_a_prompted_caller(node: LoginNode) -> None:
    node.factors = ("password",)
    asked, may_answer = threading.Event(), threading.Event()

    class Slow(Person):
        def answer(self, prompt: str, echo: bool) -> str | None:
            asked.set()
            may_answer.wait(60)
            return super().answer(prompt, echo)

    person = Slow(answers=[PASSWORD])
    session = SlurmCluster(node.profile())
    answers: list[str] = []
    attended = threading.Thread(target=lambda: session.connect(person))
    attended.start()
    assert asked.wait(60)
    background = threading.Thread(target=lambda: answers.append(session.run(["echo", "in"]).stdout))
    background.start()
    until(lambda: stands_in_dialer(background))
    may_answer.set()
    for thread in (attended, background):
        thread.join(60)

    assert answers == ["in\n"]
    assert (len(person.prompts), len(node.transports)) == (1, 1)
    session.close()


def test_a_command_never_prompts_even_if_it_is_the_first(node: LoginNode, session: SlurmCluster) -> None:
    node.factors = ("password",)
    with pytest.raises(AuthenticationError, match="was not answered"):
        session.run(["true"])
    assert session.state == "lost"
    person = Person(answers=[PASSWORD])
    session.connect(person)
    assert session.run(["echo", "in"]).stdout == "in\n"


def test_a_broken_connection_and_a_failed_try_show_as_lost(node: LoginNode, session: SlurmCluster) -> None:
    session.run(["true"])
    node.cut()
    until(lambda: session.state == "lost")
    node.close()
    with pytest.raises(UnreachableError):
        session.run(["true"])
    assert session.state == "lost"


def test_failed_tries_are_spaced(closed_port: int, node: LoginNode) -> None:
    session = SlurmCluster(replace(node.profile(), port=closed_port))
    started = time.monotonic()
    for _ in range(3):
        with pytest.raises(UnreachableError):
            session.run(["true"])
    assert time.monotonic() - started >= 1.5  # 0.5 s, then 1 s
    session.close()


def test_a_closed_session_stays_closed(node: LoginNode, session: SlurmCluster) -> None:
    session.run(["true"])
    session.close()
    assert session.state == "closed"
    with pytest.raises(DisconnectedError, match="closed by this program"):
        session.run(["true"])
    assert len(node.transports) == 1


def test_closing_ends_a_thread_that_waits_for_its_next_try(
    closed_port: int, node: LoginNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconnector, "FIRST_PAUSE_S", 60.0)
    session = SlurmCluster(replace(node.profile(), port=closed_port))
    failures: list[LlmbError] = []

    def run() -> None:
        try:
            session.run(["true"])
        except LlmbError as error:
            failures.append(error)

    with pytest.raises(UnreachableError):
        session.connect()
    thread = threading.Thread(target=run)
    thread.start()
    session.close()
    thread.join(10)
    assert not thread.is_alive()
    assert failures


def test_the_banner_is_the_login_nodes(node: LoginNode, session: SlurmCluster) -> None:
    node.banner = "Be kind.\n"
    session.run(["true"])
    assert session.banner == "Be kind.\n"
