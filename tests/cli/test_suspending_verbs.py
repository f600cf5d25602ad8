"""`suspend` and `resume`: the cluster is asked only if it lets users suspend jobs, and only for a run with a job."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from llmb_tui.cli import main
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from tests.kit.runs import make_run

EOS = SlurmProfile("eos", "login.example.org", "research", "batch", "/lustre/llmb")


@pytest.fixture
def services(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Services:
    made = Services(UserPaths(tmp_path / "config", tmp_path / "state"))
    made.clusters.save(EOS)
    made.runs.save(make_run("going", cluster="eos", job_ids=("7",)))
    made.runs.save(make_run("over", cluster="eos", job_ids=("6",), job_state="COMPLETED"))
    monkeypatch.setattr("llmb_tui.cli.runs.user_services", lambda _: made)
    return made


def test_suspend_and_resume_send_a_request_to_the_cluster(
    services: Services, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[tuple[str, str]] = []
    cluster: Any = SimpleNamespace(connect=lambda _: None)
    for word in ("suspend", "resume"):
        setattr(cluster, word, lambda job, word=word: requests.append((word, job)))
    monkeypatch.setattr(services.clusters, "cluster", lambda _: cluster)
    monkeypatch.setattr(services.clusters, "poller", lambda _: SimpleNamespace(poll_soon=lambda: None))
    assert (main(["suspend", "going", "--json"]), main(["resume", "going"])) == (0, 0)
    assert requests == [("suspend", "7"), ("resume", "7")]
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {"id": "going", "asked": "suspend"}
    assert "`llmb-tui watch going --once`" in printed.err


def test_slurm_refuses_to_suspend(
    services: Services, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SlurmCluster, "connect", lambda *_: None)
    assert main(["suspend", "going"]) == 1
    assert "Slurm does not let users suspend jobs." in capsys.readouterr().err
    services.close()


def test_a_finished_run_has_no_job_to_suspend(services: Services, capsys: pytest.CaptureFixture[str]) -> None:
    assert (main(["suspend", "over"]), main(["resume", "none"])) == (1, 1)
    assert "has no job to suspend" in capsys.readouterr().err
    assert services.runs.load("over").job_state == "COMPLETED"
