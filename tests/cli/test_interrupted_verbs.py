"""Verbs that are interrupted, or whose output is no longer read."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest

from llmb_tui.cli import clusters, main
from llmb_tui.cluster.login_profile import NO_SSH_CONFIG
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.launch.launcher import Launcher
from llmb_tui.launch.runs import Runs
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from tests.kit import verbs
from tests.kit.runs import NEMOTRON, intended_run, make_run, request_for

# Nothing listens on its port.
EOS = SlurmProfile(
    "eos", "127.0.0.1", "acct", "batch", "/lustre",
    port=9, known_hosts="/nonexistent", user="me", ssh_config=NO_SSH_CONFIG,
)  # fmt: skip
FLAGS = ("-w", "nemotron4", "-s", "15b", "--gpu", "h100", "-d", "fp8", "--scale", "64", "--cluster", "eos")


@pytest.fixture
def services(user_places: UserPaths) -> Services:
    services = Services(user_places)
    services.clusters.save(EOS)
    return services


def interrupt(*_: Any, **__: Any) -> NoReturn:
    raise KeyboardInterrupt


@pytest.mark.usefixtures("services")
def test_an_interrupted_submission_reports_that_nothing_was_submitted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Launcher, "prepare", interrupt)
    assert main(["submit", *FLAGS, "--yes", "--json"]) == 130
    printed = capsys.readouterr()
    assert "Interrupted: nothing was submitted." in printed.err
    assert json.loads(printed.out)["error"]["what"] == "Interrupted: nothing was submitted."


def test_an_interrupted_resume_names_the_next_steps(
    services: Services, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    services.runs.save(intended_run(request_for(NEMOTRON, EOS), "prepared"))
    services.runs.save_script("prepared", "#!/bin/sh\n")
    monkeypatch.setattr(Launcher, "resume", interrupt)
    assert main(["submit", "--resume", "prepared", "--yes"]) == 130
    printed = capsys.readouterr().err
    assert "Interrupted: nothing was submitted." in printed
    assert "`llmb-tui submit --resume prepared` submits it" in printed


@pytest.mark.usefixtures("services")
def test_an_interrupted_install_reports_that_its_step_continues(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("llmb_tui.cluster.session.Session.connect", lambda *_: None)
    monkeypatch.setattr(clusters, "install", interrupt)
    assert main(["install", "eos", *FLAGS[:-2]]) == 130
    assert "a started step continues on the cluster" in capsys.readouterr().err


def test_a_verb_completes_although_stderr_is_not_read(tmp_path: Path) -> None:
    """A closed stderr, as after `2>&1 | head`, affects neither the answer on stdout nor the verb's work."""
    reads, writes = os.pipe()
    os.close(reads)
    command = [sys.executable, "-m", "llmb_tui", "doctor", "nope", "--json"]
    result = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=writes, env=verbs.environment(tmp_path),
        check=False,
    )  # fmt: skip
    os.close(writes)
    assert result.returncode == 1
    assert "nope" in json.loads(result.stdout)["error"]["what"]


def without_a_reader(home: Path, *words: str) -> subprocess.Popen[str]:
    """A verb whose stdout is no longer read, and whose stdin stays open."""
    reads, writes = os.pipe()
    os.close(reads)
    command = [sys.executable, "-m", "llmb_tui", *words]
    pipe = subprocess.PIPE
    verb = subprocess.Popen(
        command, stdin=pipe, stdout=writes, stderr=pipe, text=True, env=verbs.environment(home)
    )  # fmt: skip
    os.close(writes)
    return verb


def test_a_verb_completes_with_its_exit_code_although_stdout_is_not_read(tmp_path: Path) -> None:
    """`jobs --prune --yes | head` removes the logs, and a script still gets the exit code of a wrong file."""
    runs = Runs(UserPaths(tmp_path / "config", tmp_path / "state"))
    runs.save(make_run("old", job_state="COMPLETED", log_read=True))
    log = runs.folder("old") / "log"
    log.write_text("no step\n")
    with without_a_reader(tmp_path, "jobs", "--prune", "--yes") as verb:
        printed = verb.communicate()[1]
    assert (verb.returncode, log.exists()) == (0, False), printed
    (runs.folder("old") / "run.json").write_text("{")
    with without_a_reader(tmp_path, "config", "validate") as verb:
        printed = verb.communicate()[1]
    assert verb.returncode == 1, printed


def test_a_stream_ends_with_its_reader(tmp_path: Path) -> None:
    with without_a_reader(tmp_path, "plan", "--from", "-") as verb:
        assert verb.stdin is not None
        verb.stdin.write("{}\n")
        verb.stdin.flush()
        assert verb.wait(timeout=60) == 0


ASKS = """
from llmb_tui.cli.user import read_hidden
from llmb_tui.errors import LlmbError
try:
    print(repr(read_hidden("Key: ")))
except LlmbError as error:
    print(error.what)
"""


def at_a_terminal(program: str, prompt: bytes, typed: bytes) -> str:
    """Output of a program at a terminal where the user types when the prompt appears."""
    pid, terminal = pty.fork()
    if not pid:
        os.execve(sys.executable, [sys.executable, "-c", program], {**os.environ, "PYTHONIOENCODING": "utf-8:strict"})
    seen, sent = b"", False
    while True:
        try:
            seen += os.read(terminal, 1 << 12)
        except OSError:  # the program has ended
            break
        if not sent and prompt in seen:
            os.write(terminal, typed)
            sent = True
    os.close(terminal)
    os.waitpid(pid, 0)
    return seen.decode().strip()


@pytest.mark.parametrize(("typed", "printed"), [(b"\x04", "''"), (b"\xff\n", "The input is not text.")])
def test_a_secret_that_is_not_text_is_refused(typed: bytes, printed: str) -> None:
    assert at_a_terminal(ASKS, b"Key:", typed).endswith(printed)


@pytest.mark.parametrize(
    ("echo", "typed", "answer"),
    [(True, b"\n", "''"), (True, b"\x04", "None"), (True, b"123\n", "'123'"), (False, b"\n", "None")],
)
def test_enter_alone_answers_a_servers_question_whose_answer_is_echoed(echo: bool, typed: bytes, answer: str) -> None:
    program = "from llmb_tui.cli.user import TerminalPrompter\n"
    program += f"print('answer', repr(TerminalPrompter().answer('Press Enter when done: ', {echo})))"
    assert at_a_terminal(program, b"when done:", typed).endswith(f"answer {answer}")


def test_a_log_file_that_cannot_be_read_to_its_end_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", "/proc/self/mem"]) == 2
    assert "/proc/self/mem cannot be read. Input/output error." in " ".join(capsys.readouterr().err.split())


@pytest.mark.usefixtures("services")
def test_a_path_that_is_not_a_log_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, what in ((tmp_path, "is a folder."), (tmp_path / "pipe", "is neither a regular file nor a run.")):
        assert main(["logs", str(path)]) == 1
        assert f"{path} {what}" in capsys.readouterr().err
