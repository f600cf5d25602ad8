"""Output of a login shell, with a line end or without, is not part of an answer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from llmb_tui.cluster.batch import Answer, run_batch
from llmb_tui.cluster.slurm.client import partitions
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.launch.install import Installer
from llmb_tui.launch.install_step import InstallStep
from llmb_tui.launch.submission_status import SubmissionDir, probe
from tests.cluster.login_node import SHELL_PRINTS, WORDS_AT_EXIT, LoginNode

STEP = InstallStep("setup", "Set up", ("/not/made",), "true", ())


@pytest.fixture
def node(tmp_path: Path) -> Iterator[LoginNode]:
    with closing(LoginNode(tmp_path)) as login_node:
        yield login_node


@pytest.fixture(params=[*(("", printed) for printed in SHELL_PRINTS), (WORDS_AT_EXIT, "")])
def session(node: LoginNode, request: pytest.FixtureRequest) -> Iterator[SlurmCluster]:
    """Session of a user whose login shell prints."""
    node.startup_file, node.shell_prints = request.param
    with closing(SlurmCluster(node.profile())) as cluster:
        yield cluster


@pytest.fixture
def place(node: LoginNode) -> SubmissionDir:
    """Files of a submission that has not started."""
    return SubmissionDir(str(node.home), ("submit.sh",), ("script", "output"), ("submitted.sh",))


def test_words_of_the_login_shell_are_in_no_answer(session: SlurmCluster) -> None:
    for _ in range(2):  # the first batch has a channel of its own, the second one uses the shared shell
        answers = run_batch(session, {"one": "echo here", "two": "(exit 3)"}, 20.0)
        assert answers == {"one": Answer(0, "here\n"), "two": Answer(3, "")}


def test_install_steps_are_queried(session: SlurmCluster) -> None:
    assert [state.status for state in Installer(session, session.profile, (STEP,)).probe()] == ["missing"]


def test_a_run_is_withdrawn(session: SlurmCluster, place: SubmissionDir) -> None:
    assert probe(session, place, "withdraw").withdrawn


def test_that_a_submission_was_killed_is_seen(node: LoginNode, session: SlurmCluster, place: SubmissionDir) -> None:
    (node.home / "claim").symlink_to(f"me@{os.uname().nodename} 999999999 1")
    assert probe(session, place).values_of("gone") == ("",)


def test_a_login_banner_is_not_part_of_the_first_partitions_name(
    session: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sinfo = tmp_path / "sinfo"
    sinfo.write_text("#!/bin/sh\necho 'batch|batch*|up|4:00:00|2|idle|gpu:h100:8|(null)'\n")
    sinfo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert [partition.name for partition in partitions(session)] == ["batch"]
