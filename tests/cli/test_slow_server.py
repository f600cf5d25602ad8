"""A login node that answers each command with one byte a minute: every verb ends with a message that names it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from llmb_tui.cli import main
from llmb_tui.cluster.link import Completed
from llmb_tui.cluster.local import LocalConnection
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from tests.kit.runs import NEMOTRON, intended_run, make_run, request_for

SELECTION = ("-w", "nemotron4@25.04", "-s", "15b", "--gpu", "h100", "-d", "fp8", "--scale", "64")
TRICKLES = ("sh", "-c", "while printf x; do sleep 60; done")


@pytest.fixture
def places(user_places: UserPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> UserPaths:
    """This machine as such a login node, with an active run and one of unknown submission."""
    monkeypatch.setenv("HOME", str(tmp_path))
    services = Services(user_places)
    profile = SlurmProfile("here", "local", "acct", "batch", str(tmp_path / "install"), transport="local")
    services.clusters.save(profile)
    spec = intended_run(request_for(NEMOTRON, profile), "going1").spec
    services.runs.save(make_run("going1", spec=spec, cluster="here", job_state="RUNNING", job_ids=("7",)))
    services.runs.save(make_run("unknown1", spec=spec, cluster="here", submission="unknown", job_ids=()))
    real_run, real_stream = LocalConnection.run, LocalConnection.stream

    def run(link: LocalConnection, argv: Sequence[str], *, deadline_s: float, **options: Any) -> Completed:
        assert deadline_s <= 110, argv
        return real_run(link, TRICKLES, deadline_s=0.05, **options)

    monkeypatch.setattr(LocalConnection, "run", run)
    monkeypatch.setattr(LocalConnection, "stream", lambda link, _argv: real_stream(link, TRICKLES))
    for name in (
        "launch.install.LINK_PATIENCE_S",
        "launch.install.LOOK_EVERY_S",
        "cluster.remotelog.HEADER_WITHIN_S",
    ):
        monkeypatch.setattr(f"llmb_tui.{name}", 0.05)
    return user_places


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any, str]:
    code = main([*words, "--json"])
    printed = capsys.readouterr()
    assert "internal error" not in printed.err, printed.err
    return code, json.loads(printed.out.splitlines()[-1]), printed.err


@pytest.mark.parametrize(
    "words",
    [
        ("doctor", "here"),
        ("doctor", "here", *SELECTION),
        ("install", "here", *SELECTION),
        ("submit", "--cluster", "here", *SELECTION, "--yes"),
        ("secrets", "here"),
        ("llmb", "here"),
        ("watch", "going1", "--once"),
        ("logs", "going1"),
        ("cancel", "going1"),
        ("results", "going1"),
        ("watch", "unknown1", "--once"),
        ("cancel", "unknown1"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_each_verb_ends_and_reports_the_missing_answer(
    words: tuple[str, ...], places: UserPaths, capsys: pytest.CaptureFixture[str]
) -> None:
    code, document, err = answer(capsys, *words)
    assert code == 2 or (code == 0 and words[0] == "watch" and words[1] == "unknown1")
    assert "in time" in err + json.dumps(document), (words, document, err)
    assert Services(places).runs.load("going1").job_state == "RUNNING"


def test_the_list_shows_runs_in_their_last_known_state(places: UserPaths, capsys: pytest.CaptureFixture[str]) -> None:
    code, document, err = answer(capsys, "jobs")
    assert (code, {run["id"]: run["state"] for run in document}["unknown1"]) == (2, "unknown")
    assert "in time" in err
    assert places.runs.is_dir()
