"""The published procedure by the verbs: the command to the letter, what stands against it, what is not submitted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llmb_tui.catalog.load import load_presets
from llmb_tui.cli import clusters, doctor, main, secrets
from llmb_tui.cluster.preflight.report import Preflight
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.launch.published import differences, published_command
from llmb_tui.plan.make import plan
from llmb_tui.plan.selection import Procedure, Selection
from llmb_tui.services import Services
from llmb_tui.store.paths import Places

EOS = ClusterProfile("eos", "login.example.org", "research", "batch", "/lustre/llmb")
MOUNTED = ClusterProfile("mounted", "login.example.org", "research", "batch", "/lustre/llmb", mounts=("/a:/b",))
CHOSEN = Selection("llama3.1", "25.04", "8b", "h100", "bf16", 8)
FLAGS = ("-w", "llama3.1@25.04", "-s", "8b", "--gpu", "h100", "-d", "bf16", "--scale", "8")
SUBMIT = ("submit", *FLAGS, "--cluster", "eos", "--procedure", "recipe")


class Asked(Services):
    """No cluster is there; what would be asked of one is noted."""

    def __init__(self, places: Places) -> None:
        super().__init__(places)
        self.procedures: list[tuple[str, Procedure]] = []

    def preflight(self, *asked: Any, **_: Any) -> Preflight:
        self.procedures.append(("preflight", asked[-1]))
        return Preflight(())

    def installer(self, *asked: Any, **_: Any) -> Any:
        self.procedures.append(("install", asked[-1]))
        return self

    def run(self, *_: object) -> tuple[()]:
        return ()


@pytest.fixture
def services(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    found = Asked(Places(tmp_path / "config", tmp_path / "state"))
    for profile in (EOS, MOUNTED):
        found.save_profile(profile)
    for room in (clusters, doctor, secrets):
        monkeypatch.setattr(room, "user_services", lambda: found)
    return found


def call(*arguments: str) -> int:
    return main(list(arguments))


@pytest.mark.usefixtures("services")
def test_a_dry_run_prints_the_command_to_the_letter(capsys: pytest.CaptureFixture[str]) -> None:
    catalog = load_presets()
    recipe = catalog.recipe("llama3.1", "25.04")
    assert recipe.published is not None
    assert call(*SUBMIT, "--dry-run") == 0
    said = capsys.readouterr()
    assert said.out == published_command(recipe, plan(catalog, CHOSEN), EOS).text + "\n"
    for words in (*differences(recipe), *recipe.published.notes):
        assert words in said.err
    assert "token as it is into the batch script" in said.err


@pytest.mark.usefixtures("services")
def test_a_dry_run_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(*SUBMIT, "--dry-run", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["procedure"] == "recipe"
    assert document["command"].endswith("./launch.sh")
    assert document["results"] == "/lustre/llmb/published/llama3.1-25.04/experiments"
    assert document["problems"] == []
    assert any("pyarrow" in words for words in document["differences"])
    assert any("token" in words for words in document["notes"])


@pytest.mark.parametrize("more", [(), ("--yes",)])
def test_it_is_not_submitted(services: Asked, capsys: pytest.CaptureFixture[str], more: tuple[str, ...]) -> None:
    assert call(*SUBMIT, *more) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "not submitted from here yet" in said.err
    assert "--dry-run" in said.err
    assert services.procedures == []
    assert services.runs().all() == ()


@pytest.mark.parametrize(
    "verb", [("install", "mounted"), ("doctor", "mounted"), ("submit", "--dry-run", "--cluster", "mounted")]
)
def test_what_it_cannot_do_is_refused_with_the_reason(
    services: Asked, capsys: pytest.CaptureFixture[str], verb: tuple[str, ...]
) -> None:
    assert call(*verb, *FLAGS, "--procedure", "recipe") == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "mounts: launch.sh takes no further mounts." in said.err
    assert services.procedures == []


@pytest.mark.usefixtures("services")
def test_numbers_that_the_script_does_not_take_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(*SUBMIT, "--dry-run", "--mbs", "2") == 1
    assert "MBS" in capsys.readouterr().err


@pytest.mark.parametrize(("more", "procedure"), [((), "direct"), (("--procedure", "recipe"), "recipe")])
def test_the_cluster_is_looked_at_and_installed_for_the_procedure(
    services: Asked, more: tuple[str, ...], procedure: str
) -> None:
    assert call("doctor", "eos", *FLAGS, *more, "--json") == 0
    assert call("install", "eos", *FLAGS, *more) == 0
    assert services.procedures == [("preflight", procedure), ("install", procedure)]


@pytest.mark.usefixtures("services")
@pytest.mark.parametrize("verb", ["doctor", "secrets"])
def test_it_depends_on_the_recipe(capsys: pytest.CaptureFixture[str], verb: str) -> None:
    assert call(verb, "eos", "--procedure", "recipe") == 1
    assert "of which recipe" in capsys.readouterr().err


def test_the_hub_token_is_needed_by_the_published_procedure_only(services: Asked) -> None:
    made = plan(services.catalog(), CHOSEN)
    needed = {
        procedure: [need.id for need in services.secrets_needed(made, procedure) if need.required]
        for procedure in ("direct", "recipe")
    }
    assert needed == {"direct": [], "recipe": ["hugging-face"]}
