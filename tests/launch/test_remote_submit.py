"""`remote/submit.sh` as the cluster runs it, with an sbatch that records its calls."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from llmb_tui.cluster.remote_text import remote_text
from tests.kit.waiting import until


class Cluster:
    def __init__(self, folder: Path, shell: list[str]) -> None:
        self.shell = shell
        self.folder = folder / "submit"
        self.folder.mkdir()
        self.calls = folder / "calls"
        self.install = folder
        self.script = folder / "a script.sh"
        self.script.write_text("#!/bin/bash\n")
        self.programs = folder / "bin"
        self.programs.mkdir()
        self.environment = {"PATH": f"{self.programs}{os.pathsep}{os.environ['PATH']}"}
        self.sbatch("echo '48123;eos'")

    def sbatch(self, body: str) -> None:
        program = self.programs / "sbatch"
        program.write_text(f'#!/bin/sh\necho "$@" >>"{self.calls}"\nenv | grep SBATCH_ >>"{self.calls}"\n{body}\n')
        program.chmod(0o755)

    def start(self) -> subprocess.Popen[bytes]:
        helper = remote_text("inside.sh", "group.sh", "claim.sh", "sbatch.sh", "submit.sh")
        words = [*self.shell, "-c", helper, "submit.sh", str(self.install), str(self.folder), str(self.script)]
        return subprocess.Popen(words, env=self.environment)

    def submit(self) -> None:
        self.start().wait()

    def trace(self, name: str) -> str | None:
        path = self.folder / name
        return path.read_text() if path.exists() else None

    def owner(self) -> str:
        return os.readlink(self.folder / "claim")

    def submissions(self) -> list[str]:
        return self.calls.read_text().splitlines() if self.calls.exists() else []


@pytest.fixture(params=["sh", "bash --posix"])
def cluster(tmp_path: Path, request: pytest.FixtureRequest) -> Cluster:
    return Cluster(tmp_path, request.param.split())


def test_the_answer_of_sbatch_is_kept_and_then_the_exit_code(cluster: Cluster) -> None:
    cluster.submit()
    assert cluster.trace("answer") == "48123;eos\n"
    assert re.fullmatch(r"0 \d+\n", str(cluster.trace("exit")))
    assert cluster.submissions() == [f"--parsable ../{cluster.script.name}"]


def test_the_claim_names_its_owner_the_process_group_and_the_time(cluster: Cluster) -> None:
    before = int(time.time())
    cluster.submit()
    who, claimed_by, at = cluster.owner().split()
    assert who == f"{pwd.getpwuid(os.getuid()).pw_name}@{os.uname().nodename}"
    assert int(claimed_by) == os.getpgrp()
    assert before <= int(at) <= time.time()


def test_a_refusal_is_kept_in_slurms_words(cluster: Cluster) -> None:
    cluster.sbatch("echo 'sbatch: error: Invalid account' >&2; exit 1")
    cluster.submit()
    assert cluster.trace("answer") == ""
    assert str(cluster.trace("exit")).startswith("1 ")
    assert cluster.trace("refusal") == "sbatch: error: Invalid account\n"


def test_a_login_node_without_sbatch_is_a_refusal(cluster: Cluster) -> None:
    (cluster.programs / "sbatch").unlink()
    for name in ("chmod", "date", "env", "id", "ln", "mv", "ps", "pwd", "sed", "sh", "bash", "uname"):
        (cluster.programs / name).symlink_to(str(shutil.which(name)))
    cluster.environment["PATH"] = str(cluster.programs)
    cluster.submit()
    assert str(cluster.trace("exit")).startswith("127 ")
    assert "not found" in str(cluster.trace("refusal"))


def test_many_starts_at_once_submit_once(cluster: Cluster) -> None:
    for process in [cluster.start() for _ in range(20)]:
        process.wait()
    assert len(cluster.submissions()) == 1


def test_a_second_start_submits_nothing_even_if_the_first_was_killed(cluster: Cluster) -> None:
    cluster.sbatch("kill -9 $PPID; exit 1")  # submit.sh ends while sbatch runs
    cluster.submit()
    cluster.submit()
    assert len(cluster.submissions()) == 1
    assert cluster.trace("exit") is None


def test_an_answer_survives_the_caller_that_waited_for_it(cluster: Cluster) -> None:
    cluster.sbatch("kill -9 $PPID; echo 48123")
    cluster.submit()
    until(lambda: cluster.trace("answer") == "48123\n")


def test_a_claim_that_was_made_for_a_withdrawal_is_respected(cluster: Cluster) -> None:
    (cluster.folder / "claim").symlink_to("withdrawn")
    cluster.submit()
    assert cluster.submissions() == []
    assert cluster.owner() == "withdrawn"


def test_a_withdrawal_just_before_the_claim_wins(cluster: Cluster) -> None:
    slow_id = cluster.programs / "id"
    slow_id.write_text(f'#!/bin/sh\nln -s withdrawn "{cluster.folder}/claim"\necho operator\n')
    slow_id.chmod(0o755)
    cluster.submit()
    assert cluster.submissions() == []
    assert cluster.owner() == "withdrawn"


def test_the_login_environment_does_not_change_the_script(cluster: Cluster) -> None:
    cluster.environment |= {
        "SBATCH_PARTITION": "debug",
        "SBATCH_ACCOUNT": "other account",
        "SLURM_CONF": "/etc/slurm.conf",
    }
    cluster.submit()
    assert cluster.submissions() == [f"--parsable ../{cluster.script.name}"]
