"""`--json` prints one document also when a verb fails, with the run's id; a wrong request exits with 1."""

from __future__ import annotations

import json
from typing import Any

import pytest

from llmb_tui.cli import main
from llmb_tui.cluster.login_profile import NO_SSH_CONFIG
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.errors import LlmbError
from llmb_tui.launch.readiness import NotReadyError, failures
from llmb_tui.preflight.report import Check, Preflight
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from tests.kit.runs import NEMOTRON, make_run, request_for

# Nothing listens on its port.
EOS = SlurmProfile(
    "eos", "127.0.0.1", "acct", "batch", "/lustre",
    port=9, known_hosts="/nonexistent", user="me", ssh_config=NO_SSH_CONFIG,
)  # fmt: skip
FLAGS = ("-w", "nemotron4@25.04", "-s", "15b", "--gpu", "h100", "-d", "fp8", "--scale", "64")


@pytest.fixture(autouse=True)
def services(user_places: UserPaths) -> Services:
    services = Services(user_places)
    services.clusters.save(EOS)
    services.runs.save(make_run("going"))
    services.runs.save(make_run("nosuchcluster", cluster="nowhere"))
    services.runs.save(make_run("prepared", submission="intended", job_ids=(), job_state=None))
    return services


@pytest.mark.parametrize(
    ("words", "code", "run_id"),
    [
        (("cancel", "going", "--yes"), 2, "going"),
        (("watch", "nosuchcluster"), 1, "nosuchcluster"),
        (("watch", "prepared"), 1, "prepared"),
        (("watch", "abc123"), 1, None),
        (("watch", "../x"), 1, None),
        (("logs", "abc123"), 1, None),
        (("results", "abc123"), 1, None),
        (("doctor", "nowhere"), 1, None),
        (("doctor", "eos"), 2, None),
        (("install", "eos", *FLAGS), 2, None),
        (("submit", "--cluster", "eos", *FLAGS, "--yes"), 2, None),
        (("submit", "--cluster", "eos", *FLAGS), 1, None),
        (("plan", "--from", "/nonexistent"), 1, None),
        (("plan", "-w", "nothing"), 1, None),
        (("plan", "--layouts", "0"), 1, None),
        (("jobs", "--set", "nothing=1"), 1, None),
        (("nothing",), 1, None),
        (("config", "nothing"), 1, None),
    ],
)
def test_a_verb_that_fails_prints_one_document(
    words: tuple[str, ...], code: int, run_id: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--json"]) == code
    printed = capsys.readouterr()
    document: dict[str, Any] = json.loads(printed.out)
    assert document.keys() == {"error", "id"}
    assert document["error"].keys() == {"what", "why", "fix"}
    assert document["error"]["what"] in printed.err
    assert document["id"] == run_id


def test_an_error_has_the_id_of_a_run_that_exists(
    services: Services, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*_: object) -> None:
        error = LlmbError("Slurm rejected the job.", exit_code=1)
        error.run_id = "k3f9a2"
        raise error

    monkeypatch.setattr("llmb_tui.cli.clusters.submit", refused)
    monkeypatch.setattr("llmb_tui.cli.clusters.run_preflight", lambda *_: Preflight(()))
    monkeypatch.setattr("llmb_tui.cluster.session.Session.connect", lambda *_: None)
    assert main(["submit", "--cluster", "eos", *FLAGS, "--yes", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["id"] == "k3f9a2"
    assert services.runs.has("going")


def test_an_internal_error_is_a_document(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for fault, code in ((ZeroDivisionError("here"), 2), (KeyboardInterrupt(), 130)):
        monkeypatch.setattr("llmb_tui.cli.clusters.user_services", lambda _, fault=fault: (_ for _ in ()).throw(fault))
        assert main(["clusters", "--json"]) == code
        assert json.loads(capsys.readouterr().out)["error"]["what"]


@pytest.mark.parametrize(
    ("failed", "code"),
    [
        (("account",), 1),
        (("partition", "qos", "nodes", "time-limit"), 1),
        (("controller",), 2),
        (("account", "disk"), 2),
    ],
)
def test_a_wrong_request_exits_with_1_and_a_failed_cluster_with_2(failed: tuple[str, ...], code: int) -> None:
    report = Preflight(tuple(Check(name, name, "failed", "this", "that", "Mend it.") for name in failed))
    assert report.exit_code == code
    refused = NotReadyError(request_for(NEMOTRON, EOS), failures(report))
    assert refused.exit_code == code
    assert refused.what == "eos is not ready for this run."
    assert all(name in refused.why for name in failed)


def test_an_internal_error_names_its_place_and_no_value(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = "canary7391"

    def fail(_: object) -> int:
        raise ValueError(typed)

    monkeypatch.setattr("llmb_tui.cli.config.config_verb", fail)
    assert main(["config", "path", "--json"]) == 2
    answer, printed = capsys.readouterr()
    assert json.loads(answer)["error"]["what"] == "llmb-tui failed with an internal error."
    assert "in fail" in printed
    assert "ValueError" in printed
    assert typed not in printed + answer
