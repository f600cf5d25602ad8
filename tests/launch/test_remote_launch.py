"""`remote/launch.sh` as the cluster runs it, with a squeue of one line and commands of the test."""

from __future__ import annotations

import itertools
import os
import pwd
import re
import subprocess
import time
from functools import partial
from pathlib import Path

import pytest

from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.launch.submission_status import SubmissionStatus, parse
from tests.kit.waiting import until

TOKEN = "hf_" + "secret" * 5
TOKEN_FILE = "keys/token"


class Recipe:
    """A folder of launches."""

    def __init__(self, folder: Path, shell: list[str]) -> None:
        self.shell, self.folder = shell, folder
        self.launches = folder / "launches"
        self.launches.mkdir()
        self.index = folder / ".slurm_jobs"
        (folder / "keys").mkdir()
        (folder / TOKEN_FILE).write_text(f"{TOKEN}\n")
        self.programs = folder / "bin"
        self.programs.mkdir()
        self.squeue("echo 7; echo 8")

    def squeue(self, body: str) -> None:
        self.program("squeue", body)

    def slow_squeue(self) -> None:
        """Install a squeue that records each call, and answers when the test allows it."""
        waits = f"while [ -e {self.folder}/asked ] && [ ! -e {self.folder}/answer ]; do sleep 0.02; done"
        self.squeue(f"echo . >>{self.folder}/asked; {waits}; echo 7")

    def program(self, name: str, body: str) -> None:
        program = self.programs / name
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(0o755)

    def start(self, name: str, command: str, node: str = "") -> subprocess.Popen[bytes]:
        """Start a launch with that name, on this node or as if on another."""
        if node:
            self.program("uname", 'echo "${NODE:-$(/usr/bin/uname -n)}"')
        folder = self.launches / name
        folder.mkdir(exist_ok=True)
        (folder / "command.sh").write_text(command)
        helper = remote_text("inside.sh", "group.sh", "claim.sh", "lock.sh", "launch.sh")
        words = [*self.shell, "-c", helper, "launch.sh", str(self.folder), str(folder), str(self.index), TOKEN_FILE]
        path = f"{self.programs}{os.pathsep}{os.environ['PATH']}"
        variables = {"PATH": path, "HOME": str(self.folder), "NODE": node}
        return subprocess.Popen(words, env=variables, start_new_session=True)

    def launch(self, name: str, command: str) -> None:
        """Run one launch from its start to its end."""
        assert self.start(name, command).wait(timeout=20) == 0

    def trace(self, name: str, file: str) -> str:
        path = self.launches / name / file
        return path.read_text() if path.exists() else "-"

    def left(self, name: str) -> SubmissionStatus:
        """Status of a launch."""
        script = remote_text("inside.sh", "group.sh", "status.sh", "lock.sh", "launched.sh")
        folder = self.launches / name
        words = [str(self.folder), str(folder), "look", "launch.sh", "", str(self.index), "", str(self.folder)]
        return parse(subprocess.check_output([*self.shell, "-c", script, "sh", *words], text=True))

    @property
    def asked(self) -> int:
        """Number of calls of the slow squeue."""
        path = self.folder / "asked"
        return len(path.read_text().splitlines()) if path.exists() else 0

    @property
    def lock(self) -> Path:
        return self.launches / f"launching.{os.getuid()}"

    def age(self, node: str) -> Path:
        """Folder of that node's only launch, with a time stamp ten minutes in the past."""
        (folder,) = self.launches.glob(f"launching.*@{node}.*")
        os.utime(folder, (time.time() - 600, time.time() - 600))
        return folder

    def see_looks(self, *names: str) -> None:
        """Wait until each of these waiting launches has started and ended another check."""
        for waits in [self.launches / name / "waits" for name in names] * 2:
            until(partial(_is_another, waits, waits.stat() if waits.exists() else None))


def _is_another(file: Path, before: os.stat_result | None) -> bool:
    return before is None or not file.exists() or file.stat().st_mtime_ns != before.st_mtime_ns


@pytest.fixture(params=["sh", "bash --posix"])
def recipe(tmp_path: Path, request: pytest.FixtureRequest) -> Recipe:
    return Recipe(tmp_path, request.param.split())


def test_a_launch_records_its_output_its_exit_code_and_earlier_jobs(recipe: Recipe) -> None:
    recipe.index.write_text("7 = before\n")
    recipe.launch("one", "echo 'Submitted batch job 9'; echo told >&2; exit 3")
    assert recipe.trace("one", "output") == "Submitted batch job 9\ntold\n"
    assert re.fullmatch(r"3 \d+\n", recipe.trace("one", "exit"))
    assert recipe.trace("one", "queue") == "7\n8\n"
    assert recipe.trace("one", "index") == "7 = before\n"
    assert recipe.trace("one", "ids") == "9\n"
    assert not recipe.lock.exists()


def test_the_command_is_run_once_however_often_it_is_started(recipe: Recipe) -> None:
    started = [recipe.start("one", f"echo . >>{recipe.folder}/calls") for _ in range(4)]
    for process in started:
        process.wait()
    recipe.launch("one", f"echo . >>{recipe.folder}/calls")
    assert (recipe.folder / "calls").read_text() == ".\n"


def test_the_token_is_in_no_file_and_on_no_command_line_of_ours(recipe: Recipe) -> None:
    command = f"""
token=$(cat {recipe.folder}/{TOKEN_FILE})
echo "a $token and a $token, and again: $token$token."
ps -A -o args= | grep -c "[s]ecretsecret" >&2
printf '%s' "$token"
"""
    recipe.launch("one", command)
    text = "a (the token) and a (the token), and again: (the token)(the token).\n0\n(the token)\n"
    assert recipe.trace("one", "output") == text
    assert not [path for path in recipe.launches.rglob("*") if path.is_file() and TOKEN in path.read_text()]


def test_output_comes_as_it_is_written(recipe: Recipe) -> None:
    process = recipe.start("one", f"echo first; while [ ! -e {recipe.folder}/go ]; do sleep 0.02; done")
    until(lambda: recipe.trace("one", "output") == "first\n")
    assert recipe.trace("one", "exit") == "-"
    (recipe.folder / "go").touch()
    process.wait()


def test_a_launch_does_not_begin_without_a_list_of_earlier_jobs(recipe: Recipe) -> None:
    recipe.squeue("echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1")
    recipe.launch("one", f"touch {recipe.folder}/called")
    assert recipe.trace("one", "output") == "slurm_load_jobs error: Unable to contact slurm controller\n"
    assert recipe.trace("one", "exit").startswith("1 ")
    assert recipe.trace("one", "began") == "-"
    assert not (recipe.folder / "called").exists()
    assert not recipe.lock.exists()


def test_a_launch_waits_for_another_and_names_it(recipe: Recipe) -> None:
    first = recipe.start("one", f"while [ ! -e {recipe.folder}/go ]; do sleep 0.02; done")
    until(lambda: recipe.trace("one", "began") != "-")
    second = recipe.start("two", f"[ -s {recipe.launches}/one/exit ] && echo later")
    until(lambda: recipe.trace("two", "waits").startswith(f"one {pwd.getpwuid(os.getuid()).pw_name}@"))
    assert recipe.trace("two", "began") == "-"
    (recipe.folder / "go").touch()
    first.wait()
    second.wait()
    assert recipe.trace("two", "output") == "later\n"
    assert recipe.trace("two", "waits") == "-"


def test_launches_on_different_nodes_run_one_at_a_time(recipe: Recipe) -> None:
    first = recipe.start("one", f"while [ ! -e {recipe.folder}/go ]; do sleep 0.02; done")
    until(lambda: recipe.trace("one", "began") != "-")
    recipe.slow_squeue()
    waiting = [recipe.start(name, "true", node=f"login{name}") for name in ("two", "three")]
    until(lambda: recipe.trace("two", "waits") != "-" != recipe.trace("three", "waits"))
    for name in ("two", "three"):
        recipe.age(f"login{name}")
    recipe.see_looks("two", "three")
    (recipe.folder / "go").touch()
    until(lambda: recipe.asked > 0)
    later = "three" if "logintwo" in os.readlink(recipe.lock) else "two"
    recipe.see_looks(later)
    assert recipe.trace(later, "waits") != "-"
    assert recipe.asked == 1
    (recipe.folder / "answer").touch()
    assert [process.wait(timeout=20) for process in (first, *waiting)] == [0, 0, 0]
    names = ("one", "two", "three")
    spans = sorted((int(recipe.trace(name, "began")), int(recipe.trace(name, "exit").split()[1])) for name in names)
    assert all(one[1] <= another[0] for one, another in itertools.pairwise(spans))


def test_a_launch_is_alive_while_slurm_does_not_answer(recipe: Recipe) -> None:
    recipe.slow_squeue()
    process = recipe.start("one", "true", node="login1")
    until(lambda: recipe.asked > 0)
    folder = recipe.age("login1")
    until(lambda: folder.stat().st_mtime > time.time() - 60, deadline_s=20)
    (recipe.folder / "answer").touch()
    process.wait(timeout=20)
    assert recipe.trace("one", "exit").startswith("0 ")


def test_the_lock_of_a_launch_that_was_killed_is_taken_over(recipe: Recipe) -> None:
    first = recipe.start("one", "sleep 60")
    until(lambda: recipe.trace("one", "beat") != "-")
    os.killpg(first.pid, 9)
    first.wait()
    recipe.launch("two", "echo done")
    assert recipe.trace("two", "output") == "done\n"


def test_a_launch_whose_first_process_was_killed_is_still_at_work(recipe: Recipe) -> None:
    waits = f"while [ ! -e {recipe.folder}/go ]; do sleep 0.02; done"
    first = recipe.start("one", f"echo begun; {waits}; echo Submitted batch job 9")
    until(lambda: recipe.trace("one", "output") == "begun\n")
    first.kill()
    first.wait()
    second = recipe.start("two", "true")
    until(lambda: recipe.trace("two", "waits") != "-")
    (recipe.folder / "go").touch()
    second.wait(timeout=20)
    assert recipe.trace("one", "output") == "begun\nSubmitted batch job 9\n"
    assert recipe.trace("two", "exit").startswith("0 ")


@pytest.mark.parametrize("left", ["nothing", "owner", "mark"])
def test_a_lock_whose_owner_died_at_any_moment_is_taken_over(recipe: Recipe, left: str) -> None:
    dead = recipe.launches / "launching.dead"
    if left != "nothing":
        dead.mkdir()
        (dead / "owner").write_text(f"{pwd.getpwuid(os.getuid()).pw_name}@{os.uname().nodename}.999999999.1\n")
    if left == "mark":
        (dead / "buried").mkdir()
        os.utime(dead / "buried", (1, 1))
    recipe.lock.symlink_to("launching.dead")
    recipe.launch("one", "echo done")
    assert recipe.trace("one", "output") == "done\n"
    assert [path.name for path in recipe.launches.iterdir()] == ["one"]


def test_a_folder_that_is_not_as_it_should_be_begins_nothing(recipe: Recipe) -> None:
    recipe.lock.write_text("in the way")
    recipe.launch("one", f"touch {recipe.folder}/called")
    assert recipe.trace("one", "output").startswith("The folder of the launches is not as it should be: ")
    assert not (recipe.folder / "called").exists()


def test_a_later_launch_on_another_node_is_at_work_as_long_as_it_touches_its_lock(recipe: Recipe) -> None:
    recipe.launch("one", "true")
    later = recipe.launches / "two"
    later.mkdir()
    for name in ("began", "queue"):
        (later / name).write_text("7\n")
    os.utime(later / "began", (time.time() + 2, time.time() + 2))
    assert recipe.left("one").values_of("last") == ("lost",)
    owner = f"someone@login2.77.{time.time() - 600:.0f}"
    held = recipe.launches / f"launching.{owner}"
    held.mkdir()
    (held / "owner").write_text(f"{owner}\n")
    recipe.lock.symlink_to(held.name)
    for path in (held / "owner", recipe.lock):
        os.utime(path, (time.time() - 600, time.time() - 600), follow_symlinks=False)
    assert recipe.left("one").values_of("last") == ("working",)
    recipe.age("login2")
    assert recipe.left("one").values_of("last") == ("lost",)


def test_the_jobs_of_an_output_that_is_too_long_to_be_read_are_named(recipe: Recipe) -> None:
    recipe.launch("one", "echo '- Job id: 11'; echo '- Job id: 12'")
    assert recipe.left("one").values_of("named") == ()
    recipe.launch("two", "echo '- Job id: 11'; yes a line of the output | head -n 2000; echo '- Job id: 12'")
    result = recipe.left("two")
    assert result.values_of("named") == ("11 12 ",)
    assert "11" not in result.output
