"""Behaviour of every link, over SSH and on this machine."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import pytest

from llmb_tui.cluster.failures import AnswerTooLongError, DeadlineError, DisconnectedError
from llmb_tui.cluster.link import Completed, Link
from llmb_tui.cluster.local import LocalConnection
from llmb_tui.cluster.prompter import NonInteractivePrompter
from llmb_tui.cluster.ssh.connect import connect
from llmb_tui.errors import LlmbError
from tests.cluster.login_node import LoginNode
from tests.kit.unknown_user import use_unknown_user_id
from tests.kit.waiting import until


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture(params=["ssh", "shell", "local"])
def link(request: pytest.FixtureRequest, node: LoginNode, monkeypatch: pytest.MonkeyPatch) -> Iterator[Link]:
    """`shell`: a link whose commands run in a shell that stays open, as read-only commands do."""
    monkeypatch.setenv("HOME", str(node.home))
    link: Link = (
        LocalConnection("node") if request.param == "local" else connect(node.profile(), NonInteractivePrompter())
    )
    if request.param == "shell":
        run = link.run

        def look(argv: Sequence[str], *, stdin: bytes = b"", deadline_s: float = 20.0, **_: object) -> Completed:
            return run(argv, stdin=stdin, deadline_s=deadline_s, only_looks=not stdin)

        monkeypatch.setattr(link, "run", look)
        link.run(["true"])
        link.run(["true"])
    yield link
    link.close()


@pytest.fixture
def local(node: LoginNode, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalConnection]:
    monkeypatch.setenv("HOME", str(node.home))
    local = LocalConnection("node")
    yield local
    local.close()


def test_a_command_answers_with_both_outputs_and_its_exit_code(link: Link) -> None:
    result = link.run_script("echo out; echo err >&2; exit 3")
    assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 3)


def test_arguments_are_not_read_by_a_shell(link: Link) -> None:
    words = ["a b", "$HOME", "`id`", "it's", "two\nlines", "", "é", "\\", "!"]
    assert link.run(["printf", r"%s|", *words]).stdout == "".join(f"{word}|" for word in words)


def test_big_input_and_big_output_at_once_do_not_block_each_other(link: Link) -> None:
    data = bytes(range(256)) * 40_000  # 10 MB: five times the window in each direction

    result = link.run_script("tee /dev/stderr | od -An -v -tx1 | wc -l", stdin=data, deadline_s=60)

    assert int(result.stdout) == len(data) // 16
    assert len(result.stderr) == len(data.decode(errors="replace"))


def test_input_that_the_command_does_not_read_is_not_an_error(link: Link) -> None:
    result = link.run(["echo", "done"], stdin=b"x" * 5_000_000)
    assert (result.stdout, result.exit_code) == ("done\n", 0)


def test_output_that_is_not_text_is_read(link: Link) -> None:
    assert link.run(["printf", r"a\377b"]).stdout == "a\ufffdb"


def test_a_command_ended_by_a_signal_has_no_exit_code(link: Link) -> None:
    assert link.run_script("kill -9 $$").exit_code == -1
    assert link.alive


def test_a_command_past_its_deadline_raises_and_keeps_the_connection(link: Link) -> None:
    with pytest.raises(DeadlineError):
        link.run(["sleep", "60"], deadline_s=0.3)
    assert link.run(["echo", "still here"]).stdout == "still here\n"


@pytest.mark.parametrize("where", ["", ">&2"])
def test_an_answer_that_does_not_stop_is_given_up_at_its_size(link: Link, where: str) -> None:
    with pytest.raises(AnswerTooLongError, match="16 MiB"):
        link.run_script(f"head -c 20000000 /dev/zero {where}", deadline_s=60)
    assert link.run(["echo", "still here"]).stdout == "still here\n"


def test_an_answer_that_comes_byte_by_byte_is_given_up_at_its_deadline(link: Link) -> None:
    with pytest.raises(DeadlineError):
        link.run_script("while sleep 0.05; do printf x || exit; done", deadline_s=0.5)


def test_a_command_that_continues_after_its_output_has_a_deadline(link: Link) -> None:
    with pytest.raises(DeadlineError):
        link.run_script("exec > /dev/null 2>&1; sleep 60", deadline_s=0.3)
    assert link.run_script("exec > /dev/null 2>&1; sleep 0.3; exit 3").exit_code == 3


def test_a_stream_read_returns_bytes_or_none_or_the_end(node: LoginNode, link: Link) -> None:
    stream = link.stream(["sh", "-c", "echo one; echo oops >&2; while [ ! -e go ]; do sleep 0.02; done; echo two"])

    assert stream.read(10) == b"one\n"
    assert stream.read(0.05) is None
    (node.home / "go").touch()
    assert stream.read(10) == b"two\n"
    assert stream.read(10) == b""
    assert stream.stderr == "oops\n"
    stream.close()


def test_a_stream_read_returns_at_most_a_mebibyte_and_loses_nothing(link: Link) -> None:
    received = 0
    with link.stream(["head", "-c", "5000000", "/dev/zero"]) as stream:
        while data := stream.read(10):
            assert len(data) <= 1 << 20
            received += len(data)
    assert received == 5_000_000


def test_a_noisy_stderr_does_not_block_a_stream(link: Link) -> None:
    script = "head -c 4000000 /dev/zero >&2; echo done"
    with link.stream(["sh", "-c", script]) as stream:
        assert until(lambda: stream.read(0.1), look_waits=True) == b"done\n"
    assert len(stream.stderr) <= 4096


def test_closing_a_stream_ends_its_command(link: Link) -> None:
    stream = link.stream(["sh", "-c", "echo $$; cat; exit"])
    pid = int(stream.read(10) or b"0")
    stream.close()
    until(lambda: not is_running(pid))
    assert stream.read(0.1) == b""


def test_a_stream_can_be_closed_while_it_is_read(link: Link) -> None:
    stream = link.stream(["sh", "-c", "echo up; cat"])
    assert stream.read(10) == b"up\n"
    got: list[bytes | None] = []
    reader = threading.Thread(target=lambda: got.append(stream.read(60)))
    reader.start()
    stream.close()
    reader.join(10)
    assert got == [b""]


def test_a_missing_program_answers_as_in_a_shell(link: Link) -> None:
    result = link.run(["no-such-program", "x"])
    assert result.exit_code == 127
    assert "no-such-program" in result.stderr
    with link.stream(["no-such-program"]) as stream:
        assert stream.read(10) == b""


def test_closing_ends_waiting_calls(link: Link) -> None:
    stream = link.stream(["sh", "-c", "echo up; cat"])
    assert stream.read(10) == b"up\n"
    failures: list[DisconnectedError] = []

    def wait_for(use: Callable[[], object]) -> threading.Thread:
        def wait() -> None:
            with pytest.raises(DisconnectedError) as caught:
                use()
            failures.append(caught.value)

        thread = threading.Thread(target=wait)
        thread.start()
        return thread

    threads = [
        wait_for(lambda: stream.read(60)),
        wait_for(lambda: link.run_script("touch running; sleep 5; exit", deadline_s=60)),
    ]
    until(lambda: link.run(["ls"]).stdout == "running\n")
    link.close()
    for thread in threads:
        thread.join(10)
    assert [failure.may_have_run for failure in failures] == [True, True]
    assert not link.alive
    with pytest.raises(DisconnectedError) as caught:
        link.run(["true"])
    assert not caught.value.may_have_run


def test_a_detached_child_of_a_command_keeps_running(node: LoginNode, link: Link) -> None:
    helper = "while [ ! -e go ]; do sleep 0.05; done; touch done"
    link.run_script('nohup sh -c "$1" < /dev/null > /dev/null 2>&1 &', [helper])
    link.close()
    (node.home / "go").touch()
    until((node.home / "done").exists)


def test_a_written_file_has_its_content_and_mode_and_no_rest(node: LoginNode, link: Link) -> None:
    path = node.home / 'it\'s a "file" $x'
    data = bytes(range(256)) * 1000

    link.write_file(str(path), b"old")
    link.write_file(str(path), data)

    assert path.read_bytes() == data
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(node.home.iterdir()) == [path]


def test_the_next_write_removes_only_the_rest_of_a_killed_write(node: LoginNode, link: Link) -> None:
    path, hour_ago = node.home / "it's *", time.time() - 3600
    names = ("0123abcd.part", "longer-0123abcd.part", "0123abcd.parts", "0000ffff.part")
    left, *others, young = (node.home / f"{path.name}.{name}" for name in names)
    another = node.home / "it's another.0123abcd.part"
    target = node.home / "target"
    a_link = node.home / f"{path.name}.11112222.part"
    for each in (left, *others, young, another, target):
        each.write_text("x")
    a_link.symlink_to(target)
    for each in node.home.iterdir():
        if each != young:
            os.utime(each, (hour_ago, hour_ago), follow_symlinks=False)

    link.write_file(str(path), b"data")

    assert set(node.home.iterdir()) == {path, *others, young, another, target, a_link}


def test_a_file_may_be_written_empty(node: LoginNode, link: Link) -> None:
    link.write_file(str(node.home / "secret"), b"")
    assert (node.home / "secret").read_bytes() == b""


@pytest.mark.parametrize("path", ["absent/file", "directory"])
def test_a_file_that_cannot_be_written_is_a_trouble_with_the_reason(node: LoginNode, link: Link, path: str) -> None:
    (node.home / "directory").mkdir()
    with pytest.raises(LlmbError, match="Could not write"):
        link.write_file(str(node.home / path), b"data")
    assert list((node.home / "directory").iterdir()) == []


def test_after_its_deadline_a_local_command_is_ended_with_its_child_processes(
    node: LoginNode, local: LocalConnection
) -> None:
    with pytest.raises(DeadlineError):
        local.run_script("sleep 60 & echo $! > pid; wait", deadline_s=1)
    pid = int((node.home / "pid").read_text())
    until(lambda: not is_running(pid))


def test_a_local_command_has_only_the_variables_of_a_login(
    local: LocalConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """sbatch passes its whole environment to the job, and a run must not depend on the terminal of its submission."""
    gone = ("LLMB_TUI_SECRET", "HF_TOKEN", "NCCL_ALGO", "PYTHONPATH", "SLURM_JOB_ID", "SBATCH_QOS")
    kept = ("TZ", "LC_MESSAGES", "TMPDIR", "SLURM_CONF", "https_proxy", "NO_PROXY", "KRB5CCNAME", "SSL_CERT_FILE")
    for name in (*gone, *kept):
        monkeypatch.setenv(name, "C")
    names = {line.partition("=")[0] for line in local.run(["env"]).stdout.splitlines()}
    assert not names.intersection(gone)
    assert names.issuperset((*kept, "HOME", "PATH"))


def test_local_commands_are_out_of_reach_of_the_terminal(local: LocalConnection) -> None:
    groups = local.run(["sh", "-c", "ps -o pgid= -p $$"]).stdout
    assert int(groups) != os.getpgrp()


def test_local_commands_run_without_a_home_too(monkeypatch: pytest.MonkeyPatch) -> None:
    use_unknown_user_id(monkeypatch)
    local = LocalConnection("here")
    assert local.run(["pwd"]).stdout == "/\n"
    local.close()


def test_a_program_that_ends_leaves_no_local_stream_behind() -> None:
    program = (
        "import os, sys\n"
        "from llmb_tui.cluster.local import LocalConnection\n"
        "stream = LocalConnection('here').stream(['sh', '-c', 'echo $$; cat; exit'])\n"
        "print(stream.read(10).decode(), flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    result = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=False)
    assert result.returncode == -signal.SIGKILL
    until(lambda: not is_running(int(result.stdout)))
