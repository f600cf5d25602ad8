"""NVIDIA's scripts from the command line: the exact command, refusals, and the submission."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from llmb_tui.catalog.load import load_presets
from llmb_tui.cli import clusters, main, secrets
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.clusters import Clusters
from llmb_tui.language.states import Submission
from llmb_tui.launch.direct.render import render
from llmb_tui.launch.launcher import Launcher
from llmb_tui.launch.prepared import PreparedRun
from llmb_tui.launch.procedure_loader import secrets_of
from llmb_tui.launch.procedures import procedures_on
from llmb_tui.launch.readiness import ClusterEvidence, blockers, refuse
from llmb_tui.launch.run import Run
from llmb_tui.launch.step_state import StepState
from llmb_tui.launch.upstream.command import differences, upstream_command
from llmb_tui.plan.make import plan
from llmb_tui.plan.selection import ProcedureId, Selection
from llmb_tui.preflight.access import SecretTest
from llmb_tui.preflight.report import Check, Preflight
from llmb_tui.preflight.secret import SecretNeed, SecretValue
from llmb_tui.request import RunRequest
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths

EOS = SlurmProfile("eos", "login.example.org", "research", "batch", "/lustre/llmb")
MOUNTED = SlurmProfile("mounted", "login.example.org", "research", "batch", "/lustre/llmb", mounts=("/a:/b",))
CHOSEN = Selection("llama3.1", "25.04", "8b", "h100", "bf16", 8)
FLAGS = ("-w", "llama3.1@25.04", "-s", "8b", "--gpu", "h100", "-d", "bf16", "--scale", "8")
SUBMIT = ("submit", *FLAGS, "--cluster", "eos", "--procedure", "upstream")


class OpenClusters(Clusters):
    """Clusters that accept every login."""

    def cluster(self, ref: object) -> SlurmCluster:  # noqa: ARG002 - the rooms'
        return cast("SlurmCluster", self)

    login_node = cluster

    def connect(self, prompter: Prompter | None) -> None:
        """Accept without a connection."""


class RecordingLauncher(Launcher):
    """Launcher without a cluster, which records the requests to one."""

    def __init__(self, services: Services) -> None:
        super().__init__(
            services.clusters.cluster,
            services.catalog,
            services.runs,
            services.journal,
            services.policy,
            services.sources,
            render,
        )
        self.procedures: list[tuple[str, ProcedureId]] = []
        self.checks: tuple[Check, ...] = ()
        self.steps: tuple[StepState, ...] = (StepState("image", "Container image", "done"),)
        self.submission: Submission = "submitted"
        self.drafts: list[PreparedRun] = []

    def preflight(
        self, target: ClusterProfile | RunRequest, on_progress: Callable[[Preflight], None] | None = None
    ) -> Preflight:
        self.procedures.append(("preflight", target.procedure if isinstance(target, RunRequest) else "direct"))
        report = Preflight(self.checks)
        if on_progress is not None:
            on_progress(report)
        return report

    def installer(self, request: RunRequest) -> Any:
        self.procedures.append(("install", request.procedure))
        return self

    def run(self, *_: object) -> tuple[StepState, ...]:
        return self.steps

    probe = run

    def submit(
        self, prepared: PreparedRun, evidence: ClusterEvidence, on_progress: Callable[[str], None] | None = None
    ) -> Run:
        refuse(prepared.request, blockers(prepared.request, self.policy, evidence))
        assert on_progress is not None
        self.drafts.append(prepared)
        on_progress("Importing NeMo")
        ids = ("101", "102") if self.submission == "submitted" else ()
        run = replace(prepared.run, submission=self.submission, job_ids=ids, note="The answer was lost.")
        self.runs.save(run)
        return run


class RecordingServices(Services):
    """Services that record the requests to a cluster and the secrets for it."""

    def __init__(self, places: UserPaths) -> None:
        super().__init__(places)
        self.clusters = OpenClusters(places.clusters, look_every_s=10.0)
        self.launcher = self.asked = RecordingLauncher(self)
        self.given: list[tuple[str, str | None]] = []

    def try_secret(self, _: object, need: SecretNeed, secret: SecretValue, __: object) -> SecretTest:
        return SecretTest(need.id, "valid", f"{secret.value} is taken.")

    def give_secret(self, _: object, secret_id: str, value: str | None, *, keep: bool) -> str:  # noqa: ARG002
        self.given.append((secret_id, value))
        self.asked.steps = (StepState("image", "Container image", "done"),)
        return "It is there."


@pytest.fixture
def services(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RecordingServices:
    result = RecordingServices(UserPaths(tmp_path / "config", tmp_path / "state"))
    for profile in (EOS, MOUNTED):
        result.clusters.save(profile)
    for room in (clusters, secrets):
        monkeypatch.setattr(room, "user_services", lambda _: result)
    monkeypatch.setattr(secrets, "try_secret", result.try_secret)
    monkeypatch.setattr(secrets, "give_secret", result.give_secret)
    return result


def call(*arguments: str) -> int:
    return main(list(arguments))


@pytest.mark.usefixtures("services")
def test_a_dry_run_prints_the_exact_command(capsys: pytest.CaptureFixture[str]) -> None:
    catalog = load_presets()
    recipe = catalog.recipe("llama3.1", "25.04")
    assert recipe.upstream is not None
    assert call(*SUBMIT, "--dry-run") == 0
    printed = capsys.readouterr()
    assert printed.out == upstream_command(RunRequest(recipe, plan(catalog, CHOSEN), EOS)).text + "\n"
    for words in (*differences(recipe), *recipe.upstream.notes):
        assert words in printed.err
    assert "token unencrypted into the batch script" in printed.err


@pytest.mark.usefixtures("services")
def test_a_dry_run_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(*SUBMIT, "--dry-run", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["procedure"] == "upstream"
    assert document["command"].endswith("./launch.sh")
    assert document["results"] == "/lustre/llmb/published/llama3.1-25.04/experiments"
    assert document["problems"] == []
    assert any("pyarrow" in words for words in document["differences"])
    assert any("token" in words for words in document["notes"])


def test_a_submission_prints_its_progress(services: RecordingServices, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(*SUBMIT, "--yes") == 0
    printed = capsys.readouterr()
    (run,) = services.runs.all()
    assert printed.out == f"{run.id}\n"
    assert (run.procedure, run.submission, run.job_ids) == ("upstream", "submitted", ("101", "102"))
    assert "Importing NeMo" in printed.err
    assert "job 101, 102" in printed.err
    assert services.asked.procedures == [("preflight", "upstream"), ("install", "upstream")]


def test_the_submitted_command_is_that_of_the_dry_run(
    services: RecordingServices, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(*SUBMIT, "--dry-run") == 0
    printed = capsys.readouterr().out
    assert services.runs.all() == ()
    assert call(*SUBMIT, "--yes") == 0
    assert [draft.script for draft in services.asked.drafts] == [printed.removesuffix("\n")]


def test_the_run_is_one_json_document_as_with_our_script(
    services: RecordingServices, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(*SUBMIT, "--yes", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    (run,) = services.runs.all()
    assert (document["id"], document["procedure"], document["job_ids"]) == (run.id, "upstream", ["101", "102"])


def test_without_a_terminal_and_yes_nothing_is_submitted(
    services: RecordingServices, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(*SUBMIT) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "Add --yes" in printed.err
    assert services.asked.procedures == []
    assert services.runs.all() == ()


def test_an_unknown_submission_is_reported_with_the_command_to_check_it(
    services: RecordingServices, capsys: pytest.CaptureFixture[str]
) -> None:
    services.asked.submission = "unknown"
    assert call(*SUBMIT, "--yes") == 2
    printed = capsys.readouterr().err
    (run,) = services.runs.all()
    assert f"It is unknown whether run {run.id} was submitted.\nThe answer was lost." in printed
    assert f"llmb-tui watch {run.id}" in printed


def test_a_recipe_that_is_not_installed_is_not_submitted(
    services: RecordingServices, capsys: pytest.CaptureFixture[str]
) -> None:
    services.asked.steps = (StepState("setup-x", "setup.sh of the recipe", "missing"),)
    assert call(*SUBMIT, "--yes") == 1
    assert "Not installed yet: setup.sh of the recipe." in capsys.readouterr().err
    assert services.runs.all() == ()


def test_private_commits_are_reported_and_nothing_is_submitted(
    services: RecordingServices, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "Commit 111 is not in https://example.org/NeMo. It may not be public."
    services.asked.checks = (Check("commits", "Required commits", "failed", text, "2 commits", "Choose direct."),)
    assert call("doctor", "eos", *FLAGS, "--procedure", "upstream") == 2
    assert text in capsys.readouterr().out
    assert call(*SUBMIT, "--yes") == 2
    printed = capsys.readouterr().err
    assert text in printed
    assert "Choose direct." in printed
    assert services.runs.all() == ()


LACKING = StepState(
    "token-x", "Hugging Face token", "failed", "There is none.", fix="Give it.", key_would_help="hugging-face"
)


def test_an_install_without_the_token_prints_how_to_enter_it(
    services: RecordingServices, capsys: pytest.CaptureFixture[str]
) -> None:
    services.asked.steps = (LACKING,)
    assert call("install", "eos", *FLAGS, "--procedure", "upstream") == 2
    printed = capsys.readouterr().err
    assert "stopped at: Hugging Face token." in printed
    assert "`llmb-tui secrets eos --give hugging-face`" in printed


def test_install_prompts_for_the_token_at_a_terminal_and_continues(
    services: RecordingServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    services.asked.steps = (LACKING,)
    for room in (clusters, secrets):
        monkeypatch.setattr(room, "has_terminal", lambda: True)
    monkeypatch.setattr(secrets, "read_hidden", lambda _: "hf_typed")
    monkeypatch.setattr(secrets, "confirm", lambda _: False)
    assert call("install", "eos", *FLAGS, "--procedure", "upstream") == 0
    assert services.given == [("hugging-face", "hf_typed")]


@pytest.mark.parametrize(
    "verb",
    [
        ("install", "mounted"),
        ("doctor", "mounted"),
        ("submit", "--dry-run", "--cluster", "mounted"),
        ("submit", "--yes", "--cluster", "mounted"),
    ],
)
def test_an_unsupported_selection_is_refused_with_the_reason(
    services: RecordingServices, capsys: pytest.CaptureFixture[str], verb: tuple[str, ...]
) -> None:
    assert call(*verb, *FLAGS, "--procedure", "upstream") == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "mounts: launch.sh cannot add mounts." in printed.err
    assert services.asked.procedures == []


@pytest.mark.usefixtures("services")
def test_numbers_that_the_script_rejects_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(*SUBMIT, "--dry-run", "--mbs", "2") == 1
    assert "MBS" in capsys.readouterr().err


@pytest.mark.parametrize(("more", "procedure"), [((), "direct"), (("--procedure", "upstream"), "upstream")])
def test_preflight_and_install_are_those_of_the_launch_method(
    services: RecordingServices, more: tuple[str, ...], procedure: str
) -> None:
    assert call("doctor", "eos", *FLAGS, *more, "--json") == 0
    assert call("install", "eos", *FLAGS, *more) == 0
    assert services.asked.procedures == [("preflight", procedure), ("install", procedure)]


@pytest.mark.usefixtures("services")
@pytest.mark.parametrize("verb", ["doctor", "secrets"])
def test_the_launch_method_needs_a_recipe(capsys: pytest.CaptureFixture[str], verb: str) -> None:
    assert call(verb, "eos", "--procedure", "upstream") == 1
    assert "No recipe is named." in capsys.readouterr().err


def test_only_nvidias_scripts_need_the_hub_token(services: RecordingServices) -> None:
    run_plan = plan(services.catalog, CHOSEN)
    needed = {
        procedure: [need.id for need in secrets_of(services.request("eos", run_plan, procedure)) if need.required]
        for procedure in procedures_on(None)
    }
    assert needed == {"direct": [], "upstream": ["hugging-face"]}
