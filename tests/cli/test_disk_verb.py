"""`disk`: a removal is checked against the state at that moment, not at the time of the list."""

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
    """Install directory with an image of this program; the test runs on the login node, whose queue is empty."""
    install = tmp_path / "install"
    for path in (IMAGE, ".llmb-tui/steps/image-nvidia+nemo+25.02.01/log", "bin/squeue"):
        (install / path).parent.mkdir(parents=True)
        (install / path).write_text("#!/bin/sh\nexit 0\n")
    (install / "bin" / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", str(install / "bin"), prepend=":")
    eos = SlurmProfile("eos", "localhost", "acct", "batch", str(install), transport="local")
    Services(user_places).clusters.save(eos)
    return install


def test_an_item_that_a_run_needs_by_now_is_kept(
    install: Path, user_places: UserPaths, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The user may take hours to answer."""
    runs = Services(user_places).runs
    monkeypatch.setattr(
        "llmb_tui.cli.disk.require_confirmation", lambda *_: runs.save(make_run("b", job_state="PENDING"))
    )
    assert main(["disk", "eos", "--remove", IMAGE]) == 1
    assert "Run b is active" in capsys.readouterr().err
    assert (install / IMAGE).exists()
    runs.save(make_run("b", job_state="COMPLETED"))
    assert main(["disk", "eos", "--remove", IMAGE, "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["removed"] == [IMAGE]
    assert not (install / IMAGE).exists()
