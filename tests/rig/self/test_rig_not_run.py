"""Tests that need a rig are listed without one, and none fails; and rigs from the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rig import packages
from tests.rig.block import Block
from tests.rig.cluster import Rig
from tests.rig.machine import REPOSITORY


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *words],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        timeout=300,
        check=False,
    )


def test_tests_that_were_not_run_are_named_with_the_reason() -> None:
    test = "tests/rig/self/test_rig_sshd.py::test_the_bastion_gives_no_shell"
    done = run("pytest", "-p", "no:cacheprovider", test, **{packages.NO_RIG: "1"})
    assert done.returncode == 0
    head, _, names = done.stdout.partition(f"not run: {packages.NO_RIG} is set")
    assert head
    assert names.splitlines()[1] == test


def test_installing_without_apt_names_the_missing_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "missing", lambda *_: ["slurmd", "munge"])
    monkeypatch.setenv("PATH", "/nowhere")
    assert packages.install() == "only root on Debian or Ubuntu can install slurmd, munge"


def test_installing_does_nothing_if_no_package_is_missing(login: Rig) -> None:
    assert login
    done = run("tests.rig", "packages")
    assert (done.returncode, done.stdout) == (0, "")


def test_blocks_do_not_overlap(login: Rig) -> None:
    block = Block()
    try:
        assert block.number != login.block.number
        assert block.port() not in login.servers.ports.values()
        assert block.directory.is_dir()
        mark = make_mark(block.directory)
    finally:
        block.release()
    assert not mark.exists()


def make_mark(directory: Path) -> Path:
    """Create a file in a rig's directory that the next rig with this number does not create."""
    mark = directory / f"of-{os.getpid()}"
    mark.touch()
    return mark


def test_a_manually_started_rig_prints_how_to_reach_and_end_it(login: Rig) -> None:
    assert login
    up = run("tests.rig", "up", "--background", "--login-only")
    assert up.returncode == 0, up.stderr
    config = next(word for word in up.stdout.split() if word.endswith("/client/config"))
    assert f"ssh -F {config} login" in up.stdout
    directory = Path(config).parent.parent
    number = directory.name.rpartition("-")[2]
    try:
        mark = make_mark(directory)
        ssh = subprocess.run(["ssh", "-F", config, "login", "hostname"], capture_output=True, text=True, check=True)
        assert ssh.stdout == "login01\n"
        assert f"python -m tests.rig down {number}" in up.stdout
    finally:
        down = run("tests.rig", "down", number)
    assert down.returncode == 0
    assert not mark.exists()
