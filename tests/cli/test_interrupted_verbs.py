"""What a verb says and does when a person, or whoever reads it, goes away in the middle."""

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

# Nothing listens there.
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
def test_who_interrupts_a_submission_before_anything_is_sent_is_told_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Launcher, "prepare", interrupt)
    assert main(["submit", *FLAGS, "--yes", "--json"]) == 130
    said = capsys.readouterr()
    assert "Interrupted: nothing was submitted." in said.err
    assert json.loads(said.out)["error"]["what"] == "Interrupted: nothing was submitted."


def test_who_interrupts_a_resume_is_told_what_can_be_done(
    services: Services, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    services.runs.save(intended_run(request_for(NEMOTRON, EOS), "prepared"))
    services.runs.save_script("prepared", "#!/bin/sh\n")
    monkeypatch.setattr(Launcher, "resume", interrupt)
    assert main(["submit", "--resume", "prepared", "--yes"]) == 130
    said = capsys.readouterr().err
    assert "Interrupted: nothing was submitted." in said
    assert "`llmb-tui submit --resume prepared` submits it" in said


@pytest.mark.usefixtures("services")
def test_who_interrupts_an_install_is_told_that_it_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("llmb_tui.cluster.session.Session.connect", lambda *_: None)
    monkeypatch.setattr(clusters, "install", interrupt)
    assert main(["install", "eos", *FLAGS[:-2]]) == 130
    assert "what was begun there goes on" in capsys.readouterr().err


def test_a_verb_does_its_work_although_nobody_reads_what_it_says(tmp_path: Path) -> None:
    """`2>&1 | head` has what it wanted: the answer on stdout, and what it is for, are another matter."""
    reads, writes = os.pipe()
    os.close(reads)
    command = [sys.executable, "-m", "llmb_tui", "doctor", "nope", "--json"]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=writes, env=verbs.environment(tmp_path),
        check=False,
    )  # fmt: skip
    os.close(writes)
    assert done.returncode == 1
    assert "nope" in json.loads(done.stdout)["error"]["what"]


def without_a_reader(home: Path, *words: str) -> subprocess.Popen[str]:
    """A verb whose stdout nobody reads any more, and whose stdin stays open."""
    reads, writes = os.pipe()
    os.close(reads)
    command = [sys.executable, "-m", "llmb_tui", *words]
    pipe = subprocess.PIPE
    verb = subprocess.Popen(
        command, stdin=pipe, stdout=writes, stderr=pipe, text=True, env=verbs.environment(home)
    )  # fmt: skip
    os.close(writes)
    return verb


def test_a_verb_whose_answer_nobody_reads_does_its_work_and_answers_its_own_code(tmp_path: Path) -> None:
    """`jobs --prune --yes | head` removes the logs, and a script still hears that a file is wrong."""
    runs = Runs(UserPaths(tmp_path / "config", tmp_path / "state"))
    runs.save(make_run("old", job_state="COMPLETED", log_read=True))
    log = runs.folder("old") / "log"
    log.write_text("no step\n")
    with without_a_reader(tmp_path, "jobs", "--prune", "--yes") as verb:
        said = verb.communicate()[1]
    assert (verb.returncode, log.exists()) == (0, False), said
    (runs.folder("old") / "run.json").write_text("{")
    with without_a_reader(tmp_path, "config", "validate") as verb:
        said = verb.communicate()[1]
    assert verb.returncode == 1, said


def test_what_has_no_end_of_its_own_ends_with_its_reader(tmp_path: Path) -> None:
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


@pytest.mark.parametrize(("typed", "said"), [(b"\x04", "''"), (b"\xff\n", "What was typed or sent is no text.")])
def test_a_key_that_is_not_typed_is_none(typed: bytes, said: str) -> None:
    pid, terminal = pty.fork()
    if not pid:
        os.execve(sys.executable, [sys.executable, "-c", ASKS], {**os.environ, "PYTHONIOENCODING": "utf-8:strict"})
    seen, sent = b"", False
    while True:
        try:
            seen += os.read(terminal, 1 << 12)
        except OSError:  # the program has ended
            break
        if not sent and b"Key:" in seen:
            os.write(terminal, typed)
            sent = True
    os.close(terminal)
    os.waitpid(pid, 0)
    assert seen.decode().strip().endswith(said)


def test_a_log_file_that_cannot_be_read_to_its_end_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", "/proc/self/mem"]) == 2
    assert "/proc/self/mem cannot be read. Input/output error." in " ".join(capsys.readouterr().err.split())


@pytest.mark.usefixtures("services")
def test_what_is_no_log_is_said_to_be_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, what in ((tmp_path, "is a folder"), (tmp_path / "pipe", "is no file")):
        assert main(["logs", str(path)]) == 1
        assert f"{path} {what}, and no run." in capsys.readouterr().err
