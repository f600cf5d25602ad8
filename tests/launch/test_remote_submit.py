"""`remote/submit.sh` as the cluster runs it, with an sbatch that writes down that it was called."""

from __future__ import annotations

import os
import subprocess
from importlib import resources
from pathlib import Path

import pytest

HELPER = str(resources.files("llmb_tui.remote").joinpath("submit.sh"))


class Cluster:
    def __init__(self, folder: Path, shell: list[str]) -> None:
        self.shell = shell
        self.folder = folder / "submit"
        self.folder.mkdir()
        self.calls = folder / "calls"
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
        return subprocess.Popen([*self.shell, HELPER, str(self.folder), str(self.script)], env=self.environment)

    def submit(self) -> None:
        self.start().wait()

    def trace(self, name: str) -> str | None:
        path = self.folder / name
        return path.read_text() if path.exists() else None

    def submissions(self) -> list[str]:
        return self.calls.read_text().splitlines() if self.calls.exists() else []


@pytest.fixture(params=["sh", "bash --posix"])
def cluster(tmp_path: Path, request: pytest.FixtureRequest) -> Cluster:
    return Cluster(tmp_path, request.param.split())


def test_the_answer_of_sbatch_is_kept_and_then_the_exit_code(cluster: Cluster) -> None:
    cluster.submit()
    assert cluster.trace("submitted") == "48123;eos\n"
    assert cluster.trace("exit") == "0\n"
    assert cluster.submissions() == [f"--parsable {cluster.script}"]
    owner = cluster.trace("claim/owner")
    assert owner is not None
    assert "@" in owner


def test_a_refusal_is_kept_in_slurms_words(cluster: Cluster) -> None:
    cluster.sbatch("echo 'sbatch: error: Invalid account' >&2; exit 1")
    cluster.submit()
    assert cluster.trace("submitted") is None
    assert cluster.trace("exit") == "1\n"
    assert cluster.trace("refusal") == "sbatch: error: Invalid account\n"


def test_a_login_node_without_sbatch_is_a_refusal(cluster: Cluster) -> None:
    (cluster.programs / "sbatch").unlink()
    cluster.environment["PATH"] = f"{cluster.programs}:/usr/bin:/bin"
    cluster.submit()
    assert cluster.trace("exit") == "127\n"
    assert "not found" in str(cluster.trace("refusal"))


def test_many_starts_at_once_submit_once(cluster: Cluster) -> None:
    for process in [cluster.start() for _ in range(20)]:
        process.wait()
    assert len(cluster.submissions()) == 1


def test_a_second_start_does_nothing_whatever_became_of_the_first(cluster: Cluster) -> None:
    cluster.sbatch("kill -9 $PPID; exit 1")  # submit.sh dies while sbatch runs
    cluster.submit()
    cluster.submit()
    assert len(cluster.submissions()) == 1
    assert cluster.trace("exit") is None


def test_a_claim_that_was_made_for_a_withdrawal_is_respected(cluster: Cluster) -> None:
    (cluster.folder / "claim").mkdir()
    (cluster.folder / "claim/owner").write_text("withdrawn\n")
    cluster.submit()
    assert cluster.submissions() == []
    assert cluster.trace("claim/owner") == "withdrawn\n"


def test_an_owner_that_appears_after_the_claim_wins(cluster: Cluster) -> None:
    """A withdrawal may come between `mkdir claim` and the writing of its owner: then nothing may be submitted."""
    slow_id = cluster.programs / "id"
    slow_id.write_text(f'#!/bin/sh\necho withdrawn >"{cluster.folder}/claim/owner"\necho operator\n')
    slow_id.chmod(0o755)
    cluster.submit()
    assert cluster.submissions() == []
    assert cluster.trace("claim/owner") == "withdrawn\n"


def test_the_login_environment_does_not_change_the_script(cluster: Cluster) -> None:
    cluster.environment |= {
        "SBATCH_PARTITION": "debug",
        "SBATCH_ACCOUNT": "other account",
        "SLURM_CONF": "/etc/slurm.conf",
    }
    cluster.submit()
    assert cluster.submissions() == [f"--parsable {cluster.script}"]
