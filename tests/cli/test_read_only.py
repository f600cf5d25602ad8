"""Observer mode by the verbs: whatever would change a cluster is refused in words, before anybody is asked anything."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llmb_tui.cli import main
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.services import Services
from llmb_tui.store.paths import Places
from tests.kit.runs import make_run

# Nothing listens there: a verb that connects fails otherwise.
EOS = SlurmProfile("eos", "127.0.0.1", "acct", "batch", "/lustre", port=9, known_hosts="/nonexistent", user="me")
RUN_ID = "251121080102abcd"
FLAGS = ("-w", "nemotron4@25.04", "-s", "15b", "--gpu", "h100", "-d", "fp8", "--scale", "64")
VERBS = {
    "install": ("install", "eos", *FLAGS),
    "submit": ("submit", "--cluster", "eos", *FLAGS, "--yes"),
    "cancel": ("cancel", RUN_ID, "--yes"),
    "again": ("submit", "--again", RUN_ID, "--yes"),
    "disk": ("disk", "eos", "--remove", "images/a.sqsh", "--yes"),
    "give": ("secrets", "eos", "--give", "ngc"),
    "forget": ("secrets", "eos", "--forget", "ngc"),
}


@pytest.fixture
def services(user_places: Places) -> Services:
    services = Services(user_places)
    services.clusters.save(EOS)
    services.runs.save(make_run(RUN_ID, cluster=EOS.name, job_ids=("101",)))
    return services


@pytest.mark.usefixtures("services")
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_the_flag_refuses(verb: str, before: bool, capsys: pytest.CaptureFixture[str]) -> None:
    words = VERBS[verb]
    assert main(["--read-only", *words] if before else [*words, "--read-only"]) == 1
    said = capsys.readouterr().err
    assert "eos is only looked at" in said
    assert "Start the program without it." in said


@pytest.mark.parametrize("verb", VERBS)
def test_a_profile_refuses(services: Services, verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    services.clusters.save(replace(EOS, read_only=True))
    assert main([*VERBS[verb]]) == 1
    assert "read_only" in capsys.readouterr().err


@pytest.mark.usefixtures("services")
def test_a_run_beyond_the_limit_is_not_submitted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["submit", "--cluster", "eos", *FLAGS, "--yes", "--set", "limits.gpu_hours=1"]) == 1
    said = capsys.readouterr().err
    assert "GPU-hours" in said
    assert "limits.gpu_hours" in said
