"""Read-only verbs: every change of a cluster is refused with a message, before the user is asked anything."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llmb_tui.cli import main
from llmb_tui.cluster.login_profile import NO_SSH_CONFIG
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from tests.kit.runs import NEMOTRON, intended_run, make_run, request_for

# Nothing listens on this port: a verb that connects fails with another message.
EOS = SlurmProfile(
    "eos", "127.0.0.1", "acct", "batch", "/lustre",
    port=9, known_hosts="/nonexistent", user="me", ssh_config=NO_SSH_CONFIG,
)  # fmt: skip
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
def services(user_places: UserPaths) -> Services:
    services = Services(user_places)
    services.clusters.save(EOS)
    services.runs.save(make_run(RUN_ID, cluster=EOS.name, job_ids=("101",)))
    return services


@pytest.mark.usefixtures("services")
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_the_flag_refuses_changes(verb: str, before: bool, capsys: pytest.CaptureFixture[str]) -> None:
    words = VERBS[verb]
    assert main(["--read-only", *words] if before else [*words, "--read-only"]) == 1
    printed = capsys.readouterr().err
    assert "eos is read-only" in printed
    assert "Start the program without it." in printed


@pytest.mark.parametrize("verb", VERBS)
def test_a_read_only_profile_refuses_changes(services: Services, verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    services.clusters.save(replace(EOS, read_only=True))
    assert main([*VERBS[verb]]) == 1
    assert "read_only" in capsys.readouterr().err


@pytest.mark.usefixtures("services")
def test_a_run_beyond_the_limit_is_not_submitted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["submit", "--cluster", "eos", *FLAGS, "--yes", "--set", "limits.gpu_hours=1"]) == 1
    printed = capsys.readouterr().err
    assert "GPU-hours" in printed
    assert "limits.gpu_hours" in printed


@pytest.fixture
def intent(services: Services) -> str:
    services.runs.save(intended_run(request_for(NEMOTRON, EOS), "intent1"))
    return "intent1"


def test_a_run_is_withdrawn_although_its_cluster_is_no_longer_saved(
    services: Services, intent: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing was submitted, so the cluster need not be asked; `jobs` names this verb."""
    (services.places.clusters / "eos.toml").unlink()
    assert main(["cancel", intent]) == 0
    assert "It was withdrawn before anything was submitted." in capsys.readouterr().err
    assert services.runs.load(intent).submission == "withdrawn"
    assert main(["cancel", RUN_ID, "--yes"]) == 1
    assert "No saved cluster is named eos." in capsys.readouterr().err


@pytest.mark.parametrize("refused_by", ["flag", "profile", "flag without a profile"])
def test_a_run_is_not_withdrawn_on_a_read_only_cluster(
    services: Services, intent: str, refused_by: str, capsys: pytest.CaptureFixture[str]
) -> None:
    services.clusters.save(replace(EOS, read_only=refused_by == "profile"))
    if refused_by == "flag without a profile":
        (services.places.clusters / "eos.toml").unlink()
    assert main(["cancel", intent, *["--read-only"] * (refused_by != "profile")]) == 1
    printed = capsys.readouterr().err
    assert "eos is read-only: nothing was changed." in printed
    assert "read_only" in printed or "Start the program without it." in printed
    assert services.runs.load(intent).submission == "intended"
