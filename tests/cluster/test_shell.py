"""Read-only commands share a process on the login node. `test_link` covers that each answers as any command does."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from llmb_tui.cluster.failures import DeadlineError, DisconnectedError
from llmb_tui.cluster.prompter import NonInteractivePrompter
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.cluster.ssh import heartbeat, shell
from llmb_tui.cluster.ssh.connect import connect
from llmb_tui.cluster.ssh.connection import Connection
from tests.cluster.login_node import PERL_SETTINGS, SHELL_PRINTS, WORDS_AT_EXIT, LoginNode
from tests.kit.waiting import until


@pytest.fixture
def connection(node: LoginNode) -> Iterator[Connection]:
    connection = connect(node.profile(), NonInteractivePrompter())
    yield connection
    connection.close()


def look(connection: Connection, script: str, deadline_s: float = 20.0) -> str:
    return connection.run_script(script, deadline_s=deadline_s, only_looks=True).stdout


def shell_of(connection: Connection) -> int:
    """Process id of the shell for read-only commands; requested twice, because the first command runs outside it."""
    look(connection, "true")
    return int(look(connection, "echo $PPID"))


def is_running(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").exists()


def test_all_read_only_commands_but_the_first_share_one_channel(node: LoginNode, connection: Connection) -> None:
    assert [look(connection, f"echo {number}") for number in range(20)] == [f"{number}\n" for number in range(20)]
    assert len(node.commands) == 2


def test_a_command_that_changes_something_has_a_separate_channel(node: LoginNode, connection: Connection) -> None:
    shell_of(connection)
    known = len(node.commands)
    connection.run(["true"])
    connection.write_file(str(node.home / "file"), b"data")
    assert len(node.commands) == known + 2


def test_a_read_only_command_does_not_wait_for_a_hanging_command(node: LoginNode, connection: Connection) -> None:
    shell_of(connection)
    slow = threading.Thread(target=look, args=(connection, "touch begun; while [ ! -e go ]; do sleep 0.02; done"))
    slow.start()
    until((node.home / "begun").exists)
    assert look(connection, "echo here") == "here\n"
    (node.home / "go").touch()
    slow.join(20)


def test_after_its_deadline_a_read_only_command_is_killed_with_its_child_processes(
    node: LoginNode, connection: Connection
) -> None:
    first = shell_of(connection)
    with pytest.raises(DeadlineError):
        look(connection, "sleep 60 & echo $! > pid; wait", deadline_s=0.5)
    pid = int((node.home / "pid").read_text())
    until(lambda: not is_running(pid) and not is_running(first))
    known = len(node.commands)
    assert shell_of(connection) != first
    assert len(node.commands) == known + 1


def test_output_that_resembles_the_end_marker_does_not_end_an_answer(connection: Connection) -> None:
    shell_of(connection)
    answer = look(
        connection, "mark=$(tr '\\0' '\\n' < /proc/$PPID/cmdline | tail -n 2 | head -n 1); echo \"$mark = 0\"; echo on"
    )
    assert answer.endswith(" = 0\non\n")
    assert len(answer) > len(" = 0\non\n") + 8


def test_every_command_starts_in_the_home_directory(node: LoginNode, connection: Connection) -> None:
    shell_of(connection)
    moved = node.home.rename(node.home.with_name("moved"))
    node.home.mkdir()
    assert look(connection, "ls > list; pwd") == f"{node.home}\n"
    assert not (moved / "list").exists()


def test_it_ends_with_the_connection(connection: Connection) -> None:
    pid = shell_of(connection)
    connection.close()
    until(lambda: not is_running(pid))


def test_the_shell_ends_on_a_silent_connection_and_is_replaced(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shell, "SILENCE_S", 1)
    pid = shell_of(connection)
    until(lambda: not is_running(pid))
    assert shell_of(connection) != pid


def test_the_heartbeat_keeps_it(node: LoginNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thirty attempts, because a busy machine may miss some."""
    monkeypatch.setattr(shell, "SILENCE_S", 3)
    monkeypatch.setattr(heartbeat, "ASK_EVERY_S", 0.1)
    connection = connect(node.profile(), NonInteractivePrompter())
    pid = shell_of(connection)
    connection.run(["sleep", "3.5"])
    assert shell_of(connection) == pid
    connection.close()


def test_a_query_is_repeated_once_after_a_broken_connection(node: LoginNode) -> None:
    session = SlurmCluster(node.profile())
    for _ in range(2):
        session.run(["true"], only_looks=True)
    answers: list[str] = []
    script = "echo x >> looks; while [ ! -e go ]; do sleep 0.02; done; cat looks"
    thread = threading.Thread(target=lambda: answers.append(session.run_script(script, only_looks=True).stdout))
    thread.start()
    until((node.home / "looks").exists)
    node.cut()
    until(lambda: (node.home / "looks").read_text() == "x\nx\n")
    (node.home / "go").touch()
    thread.join(20)
    assert answers == ["x\nx\n"]
    session.close()


def test_a_connection_that_breaks_during_a_command_leaves_its_outcome_unknown(
    node: LoginNode, connection: Connection
) -> None:
    shell_of(connection)
    failures: list[DisconnectedError] = []

    def run() -> None:
        with pytest.raises(DisconnectedError, match="broke") as caught:
            look(connection, "touch begun; sleep 60")
        failures.append(caught.value)

    thread = threading.Thread(target=run)
    thread.start()
    until((node.home / "begun").exists)
    node.cut()
    thread.join(10)
    assert [(failure.may_have_run, "a script may have run" in failure.why) for failure in failures] == [(True, True)]


def test_without_perl_each_read_only_command_has_a_separate_channel(
    node: LoginNode, connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sh").symlink_to("/bin/sh")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [look(connection, f"echo {number}") for number in range(4)] == [f"{number}\n" for number in range(4)]
    assert len(node.commands) == 5


@pytest.mark.parametrize("printed", SHELL_PRINTS)
def test_output_of_the_login_shell_is_not_part_of_an_answer(
    node: LoginNode, connection: Connection, printed: str
) -> None:
    node.shell_prints = printed
    look(connection, "true")
    assert [look(connection, "echo here") for _ in range(2)] == ["here\n", "here\n"]
    assert len(node.commands) == 2


def test_words_at_exit_are_not_part_of_an_answer(node: LoginNode, connection: Connection) -> None:
    node.startup_file = WORDS_AT_EXIT
    look(connection, "true")
    assert [look(connection, "echo here") for _ in range(2)] == ["here\n", "here\n"]
    assert len(node.commands) == 2


@pytest.mark.parametrize(("variable", "value"), PERL_SETTINGS)
def test_answers_are_bytes_whatever_perl_is_set_to(
    node: LoginNode, connection: Connection, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    look(connection, "true")
    answers = [connection.run_script("echo é; echo ü >&2", only_looks=True) for _ in range(2)]
    assert [(answer.stdout, answer.stderr) for answer in answers] == [("é\n", "ü\n")] * 2
    assert len(node.commands) == 2


def test_the_shell_ends_on_a_server_with_one_session_and_does_not_restart(node: LoginNode) -> None:
    node.max_sessions = 1
    connection = connect(node.profile(), NonInteractivePrompter())
    pid = shell_of(connection)
    assert connection.run(["echo", "here"], deadline_s=30).stdout == "here\n"
    until(lambda: not is_running(pid))
    assert [look(connection, "echo $PPID") != f"{pid}\n" for _ in range(2)] == [True, True]
    assert sum(b"perl" in command or b"PERL" in command for command in node.commands) <= 1
    connection.close()
