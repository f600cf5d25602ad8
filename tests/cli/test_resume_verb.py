"""`submit --resume`: refusals that need no cluster, and the messages of all verbs about a run that is not submitted."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from llmb_tui.cli import main
from llmb_tui.cluster.login_profile import NO_SSH_CONFIG
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.language.states import Submission
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from tests.kit.runs import NEMOTRON, intended_run, make_run, request_for

# Nothing listens on its port.
EOS = SlurmProfile(
    "eos", "127.0.0.1", "acct", "batch", "/lustre",
    port=9, known_hosts="/nonexistent", user="me", ssh_config=NO_SSH_CONFIG,
)  # fmt: skip
RESUME = ("submit", "--resume", "prepared")
WHAT_CAN_BE_DONE = "`llmb-tui submit --resume prepared` submits it, `llmb-tui cancel prepared` withdraws it."


@pytest.fixture(autouse=True)
def services(user_places: UserPaths) -> Services:
    services = Services(user_places)
    services.clusters.save(EOS)
    services.runs.save(intended_run(request_for(NEMOTRON, EOS), "prepared"))
    services.runs.save_script("prepared", "#!/bin/sh\n")
    return services


@pytest.mark.parametrize(
    ("words", "code", "printed"),
    [
        (RESUME, 1, "Add --yes"),
        ((*RESUME, "--yes"), 2, "Nothing was submitted."),
        ((*RESUME, "--yes", "--read-only"), 1, "is read-only"),
        ((*RESUME, "--yes", "--set", "limits.gpu_hours=1"), 1, "GPU-hours"),
        ((*RESUME, "--cluster", "eos", "--yes"), 1, "as it was confirmed"),
        ((*RESUME, "-w", "nemotron4", "--yes"), 1, "as it was confirmed"),
        ((*RESUME, "--procedure", "upstream", "--yes"), 1, "as it was confirmed"),
        (("submit", "--resume", "nosuchrun", "--yes"), 1, "no run nosuchrun"),
        (("submit", "-w", "nemotron4", "--yes"), 1, "Add --cluster"),
    ],
)
def test_an_impossible_resume_is_refused_with_the_reason(
    services: Services, words: tuple[str, ...], code: int, printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--json"]) == code
    out, err = capsys.readouterr()
    assert printed in err
    assert json.loads(out)["id"] == ("prepared" if "prepared" in words else None)
    assert services.runs.load("prepared").submission == "intended"


@pytest.mark.parametrize(("submission", "code"), [("submitted", 0), ("refused", 1), ("withdrawn", 1), ("unknown", 2)])
def test_only_a_run_that_is_not_submitted_is_submitted(
    services: Services, submission: Submission, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    job_ids = ("48123",) if submission == "submitted" else ()
    services.runs.save(make_run("other", submission=submission, job_ids=job_ids, note="Because."))
    assert main(["submit", "--resume", "other", "--yes", "--json"]) == code
    out, err = capsys.readouterr()
    assert json.loads(out)["id"] == "other"
    assert ("It is not submitted again." if code == 0 else "Because.") in err


def test_resuming_a_submitted_run_needs_no_cluster(services: Services, capsys: pytest.CaptureFixture[str]) -> None:
    """The verb prints its state, as every verb does."""
    services.runs.save(make_run("over", cluster="nowhere", job_state="CANCELLED", log_read=True))
    for words in (["submit", "--resume", "over", "--json", "--read-only"], ["watch", "over", "--once", "--json"]):
        main(words)
        assert json.loads(capsys.readouterr().out)["state"] == "cancelled"
    assert main(["submit", "--resume", "over"]) == 0


def test_a_dry_run_prints_the_script(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RESUME, "--dry-run"]) == 0
    assert capsys.readouterr().out == "#!/bin/sh\n"


def test_every_verb_prints_the_next_steps_for_a_run_that_is_not_submitted(capsys: pytest.CaptureFixture[str]) -> None:
    for words, code in (("jobs", 0), ("watch prepared", 1), ("watch prepared --once", 0), ("results prepared", 0)):
        assert main(words.split()) == code
        assert WHAT_CAN_BE_DONE in capsys.readouterr().err
    assert main(["logs", "prepared"]) == 0
    assert WHAT_CAN_BE_DONE in capsys.readouterr().err


def test_a_withdrawn_run_is_not_submitted(services: Services, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cancel", "prepared", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"id": "prepared", "cancelled": []}
    assert main([*RESUME, "--yes"]) == 1
    assert services.runs.load("prepared").submission == "withdrawn"
    assert main(["jobs"]) == 0
    assert "--resume" not in capsys.readouterr().err.split("\n")[-2]


def test_a_run_of_a_removed_cluster_is_not_submitted(services: Services, capsys: pytest.CaptureFixture[str]) -> None:
    services.runs.save(replace(services.runs.load("prepared"), cluster="nowhere"))
    assert main([*RESUME, "--yes"]) == 1
    assert "nowhere" in capsys.readouterr().err
