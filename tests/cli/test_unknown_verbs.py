"""How the verbs ask about a run whose submission is unknown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from llmb_tui.catalog.load import load_presets
from llmb_tui.cli import unknown
from llmb_tui.cli.unknown import settle_all, settled
from llmb_tui.cluster.failures import AuthenticationFailed, Unreachable
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.slurm.trouble import SlurmTrouble
from llmb_tui.errors import Trouble
from llmb_tui.launch.run import Run
from llmb_tui.launch.spec_of import launch_spec
from llmb_tui.plan.make import plan
from llmb_tui.plan.selection import Selection
from llmb_tui.services import Services
from llmb_tui.store.paths import Places

Answer = Trouble | Callable[[Run], Run]


class AskedServices(Services):
    """Whose cluster answers what it is told to."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Places(folder / "config", folder / "state"))
        self.answers: list[Answer] = []
        self.asked: list[str] = []

    def remember(self, run_id: str, cluster: str) -> None:
        catalog = load_presets()
        recipe = catalog.recipe("nemotron4@25.04")
        made = plan(catalog, Selection("nemotron4", "25.04", "15b", "h100", "fp8", 64))
        spec = launch_spec(recipe, made, ClusterProfile(cluster, "host", "acct", "batch", "/lustre"), run_id)
        run = Run(run_id, made, spec, recipe.rule, recipe.launch.kind, "direct", cluster, created_at=len(run_id))
        self.runs().save(replace(run, submission="unknown", note="The cluster has not answered yet."))

    def reconcile(self, run_id: str) -> Run:
        self.asked.append(run_id)
        answer = self.answers.pop(0)
        if isinstance(answer, Trouble):
            raise answer
        run = answer(self.runs().load(run_id))
        self.runs().save(run)
        return run


@pytest.fixture
def services(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AskedServices:
    monkeypatch.setattr(unknown, "ASK_EVERY_S", 0.0)
    return AskedServices(tmp_path)


def _submitted(run: Run) -> Run:
    return replace(run, submission="submitted", job_ids=("7",), note="")


def _still_unknown(run: Run) -> Run:
    return replace(run, note="sbatch has not answered.")


def test_watching_asks_until_it_is_known_and_says_each_reason_once(
    services: AskedServices, capsys: pytest.CaptureFixture[str]
) -> None:
    services.remember("a1", "eos")
    silence = SlurmTrouble("squeue failed.", "It hangs.", "")
    services.answers = [Unreachable("No route."), silence, silence, _still_unknown, _still_unknown, _submitted]
    assert settled(services, "a1", patiently=True).job_ids == ("7",)
    said = capsys.readouterr().err.splitlines()
    assert [line.partition("submitted. ")[2] for line in said] == [
        "No route.",
        "squeue failed. It hangs.",
        "sbatch has not answered.",
    ]


def test_looking_once_asks_once(services: AskedServices) -> None:
    services.remember("a1", "eos")
    services.answers = [_still_unknown]
    assert settled(services, "a1").submission == "unknown"
    assert services.asked == ["a1"]


def test_what_is_known_is_not_asked_about(services: AskedServices) -> None:
    services.remember("a1", "eos")
    services.runs().save(_submitted(services.runs().load("a1")))
    assert settled(services, "a1", patiently=True).submission == "submitted"
    settle_all(services)
    assert services.asked == []


def test_who_is_not_let_in_does_not_knock_again(services: AskedServices) -> None:
    services.remember("a1", "eos")
    services.answers = [AuthenticationFailed("The server did not let you in.")]
    with pytest.raises(AuthenticationFailed):
        settled(services, "a1", patiently=True)


def test_listing_asks_about_all_but_a_silent_cluster_only_once(
    services: AskedServices, capsys: pytest.CaptureFixture[str]
) -> None:
    for run_id, cluster in (("aaa", "eos"), ("bb", "eos"), ("c", "other")):
        services.remember(run_id, cluster)
    services.answers = [Unreachable("No route to eos."), _submitted]
    settle_all(services)
    assert services.asked == ["aaa", "c"]
    assert services.runs().load("c").submission == "submitted"
    assert "eos: it is not known yet whether run aaa was submitted. No route to eos." in capsys.readouterr().err
