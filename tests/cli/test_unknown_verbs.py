"""Questions of the verbs to the cluster about a run whose submission is unknown."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from llmb_tui.cli import user
from llmb_tui.cli.runs import jobs_verb, settle
from llmb_tui.cluster.failures import AuthenticationError, UnreachableError
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.cluster.slurm.errors import SlurmError
from llmb_tui.clusters import Clusters
from llmb_tui.errors import LlmbError
from llmb_tui.launch.run import Run
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from llmb_tui.watch.timing import Timing
from tests.kit.runs import make_run

Answer = LlmbError | Callable[[Run], Run]


class RecordingClusters(Clusters):
    """Clusters that accept every login, and record whether a prompter was given."""

    def __init__(self, places: UserPaths) -> None:
        super().__init__(places.clusters, look_every_s=10.0)
        self.attended: list[bool] = []

    def cluster(self, ref: object) -> SlurmCluster:  # noqa: ARG002 - the rooms'
        return cast("SlurmCluster", self)

    def connect(self, prompter: Prompter | None) -> None:
        self.attended.append(prompter is not None)

    def query_jobs(self, *_: object) -> None:
        raise LlmbError("Slurm is not asked by this test.")


class RecordingServices(Services):
    """Services whose cluster gives predefined answers."""

    def __init__(self, folder: Path) -> None:
        super().__init__(UserPaths(folder / "config", folder / "state"), timing=Timing(settle_every_s=0.0))
        self.answers: list[Answer] = []
        self.asked: list[str] = []
        self.clusters = clusters = RecordingClusters(self.places)
        self.attended = clusters.attended
        """Prompter of each attempt to connect."""

    def remember(self, run_id: str, cluster: str) -> None:
        note = "The cluster has not answered yet."
        self.runs.save(
            make_run(
                run_id, cluster=cluster, created_at=len(run_id), submission="unknown", job_ids=(), job_state=None,
                submitted_at=None, note=note,
            )
        )  # fmt: skip

    def reconcile(self, _session: object, _runs: object, _journal: object, run: Run) -> Run:
        self.asked.append(run.id)
        answer = self.answers.pop(0)
        if isinstance(answer, LlmbError):
            raise answer
        run = answer(run)
        self.runs.save(run)
        return run


@pytest.fixture
def services(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RecordingServices:
    asked = RecordingServices(tmp_path)
    monkeypatch.setattr("llmb_tui.watch.runs_feed.reconcile", asked.reconcile)
    return asked


def _submitted(run: Run) -> Run:
    return replace(run, submission="submitted", job_ids=("7",), note="")


def _still_unknown(run: Run) -> Run:
    return replace(run, note="sbatch has not answered.")


def test_watch_queries_until_the_submission_is_known_and_prints_each_reason_once(
    services: RecordingServices, capsys: pytest.CaptureFixture[str]
) -> None:
    services.remember("a1", "eos")
    silence = SlurmError("squeue failed.", "It hangs.", "")
    services.answers = [UnreachableError("No route."), silence, silence, _still_unknown, _still_unknown, _submitted]
    assert settle(services, "a1", wait=True).job_ids == ("7",)
    printed = capsys.readouterr().err.splitlines()
    assert [line.partition("submitted. ")[2] for line in printed] == [
        "No route.",
        "squeue failed. It hangs.",
        "sbatch has not answered.",
    ]


def test_watch_once_queries_once(services: RecordingServices) -> None:
    services.remember("a1", "eos")
    services.answers = [_still_unknown]
    assert settle(services, "a1").submission == "unknown"
    assert services.asked == ["a1"]


def test_watch_prompts_for_a_password_once_and_not_after_each_disconnect(
    services: RecordingServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(user, "has_terminal", lambda: True)
    services.remember("a1", "eos")
    services.answers = [_still_unknown, _still_unknown, _submitted]
    settle(services, "a1", wait=True)
    assert services.attended == [True, False, False]


def test_verbs_without_a_terminal_do_not_prompt(services: RecordingServices, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user, "has_terminal", lambda: False)
    services.remember("a1", "eos")
    services.answers = [_submitted]
    settle(services, "a1")
    assert services.attended == [False]


def test_a_known_submission_is_not_queried(services: RecordingServices) -> None:
    services.remember("a1", "eos")
    services.runs.save(_submitted(services.runs.load("a1")))
    assert settle(services, "a1", wait=True).submission == "submitted"
    assert services.asked == []


def test_a_refused_login_is_not_repeated(services: RecordingServices) -> None:
    services.remember("a1", "eos")
    services.answers = [AuthenticationError("The server did not let you in.")]
    with pytest.raises(AuthenticationError):
        settle(services, "a1", wait=True)


def test_jobs_queries_a_silent_cluster_only_once(
    services: RecordingServices, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llmb_tui.cli.runs.user_services", lambda _arguments: services)
    for run_id, cluster in (("aaa", "eos"), ("bb", "eos"), ("c", "other")):
        services.remember(run_id, cluster)
    services.answers = [UnreachableError("No route to eos."), _submitted]
    assert jobs_verb(Namespace(json=True, prune=False, yes=False, older_than=None)) == 0
    assert services.asked == ["aaa", "c"]
    assert services.runs.load("c").submission == "submitted"
    printed = capsys.readouterr()
    assert "eos: it is not known yet whether run aaa was submitted. No route to eos." in printed.err
    assert "in their last known state" in printed.err, "the submitted run's cluster is not saved here"
    assert [(run["id"], run["state"]) for run in json.loads(printed.out)] == [
        ("aaa", "unknown"),
        ("bb", "unknown"),
        ("c", "submitted"),
    ]
