"""`disk`: what is named goes by what is known when it goes, whenever it was listed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llmb_tui.cli import main
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from tests.kit.runs import make_run

IMAGE = "images/nvidia+nemo+25.02.01.sqsh"


@pytest.fixture
def install(tmp_path: Path, user_places: UserPaths, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With an image of ours; and an operator on the login node, whose queue is empty."""
    install = tmp_path / "install"
    for path in (IMAGE, ".llmb-tui/steps/image-nvidia+nemo+25.02.01/log", "bin/squeue"):
        (install / path).parent.mkdir(parents=True)
        (install / path).write_text("#!/bin/sh\nexit 0\n")
    (install / "bin" / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", str(install / "bin"), prepend=":")
    eos = SlurmProfile("eos", "localhost", "acct", "batch", str(install), transport="local")
    Services(user_places).clusters.save(eos)
    return install


def test_what_is_needed_since_the_question_was_asked_stays(
    install: Path, user_places: UserPaths, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The question may stand for hours."""
    runs = Services(user_places).runs
    monkeypatch.setattr("llmb_tui.cli.disk.agree", lambda *_: runs.save(make_run("b", job_state="PENDING")))
    assert main(["disk", "eos", "--remove", IMAGE]) == 1
    assert "Run b is active" in capsys.readouterr().err
    assert (install / IMAGE).exists()
    runs.save(make_run("b", job_state="COMPLETED"))
    assert main(["disk", "eos", "--remove", IMAGE, "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["removed"] == [IMAGE]
    assert not (install / IMAGE).exists()
