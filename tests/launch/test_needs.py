"""Requirements of a run other than its nodes: the hub and a token, and for NVIDIA's scripts a Python."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.launch.launcher import Launcher
from llmb_tui.launch.policy import Policy
from llmb_tui.launch.procedure_loader import procedure, secrets_of
from llmb_tui.launch.runs import Runs
from llmb_tui.plan.make import plan
from llmb_tui.plan.selection import ProcedureId, RunOptions, Selection
from llmb_tui.preflight.needs import Needs, Sources
from llmb_tui.preflight.secret import SecretNeed
from llmb_tui.request import RunRequest
from llmb_tui.store.journal import Journal
from llmb_tui.store.paths import UserPaths

PROFILE = SlurmProfile(
    name="eos", host="eos", user="me", account="a", partition="batch", install_dir="/lustre/llmb", known_hosts="/k"
)


def _needs(name: ProcedureId, request: RunRequest) -> Needs:
    needs = procedure(name).needs(request)
    assert isinstance(needs, Needs)
    return needs


@pytest.mark.parametrize("hub", [True, False])
@pytest.mark.parametrize(
    ("selection", "repository"),
    [
        (("llama3.1", "25.04", "70b", "h100", "bf16", 64), "meta-llama/Meta-Llama-3-70B"),
        (("grok1", "25.02", "314b", "h100", "bf16", 512), "meta-llama/Meta-Llama-3-70B"),
    ],
    ids=["llama", "grok"],
)
def test_the_hub_token_is_needed_if_the_run_uses_it(
    catalog: Catalog, selection: tuple[str, str, str, str, str, int], repository: str, hub: bool
) -> None:
    run_plan = plan(catalog, Selection(*selection, options=RunOptions(hub_tokenizer=hub)))
    request = RunRequest(catalog.recipe(selection[0], selection[1]), run_plan, PROFILE)
    tokens: list[SecretNeed] = [need for need in secrets_of(request) if need.id == "hugging-face"]
    assert _needs("direct", request).hub is hub
    if hub:
        (token,) = tokens
        assert (token.required, token.opens) == (True, (repository,))
        assert "fetches nothing" not in token.why
    else:
        assert not any(token.required for token in tokens)


@pytest.mark.parametrize(
    ("selection", "python", "gb"),
    [
        (("nemotron4", "25.04", "15b", "h100", "fp8", 64), ("3.10.12", False), 9.5),
        (("nemotron4-340b", "25.12", "340b", "h100", "fp8", 256), ("3.12", True), 10.6),
        (("grok1", "25.02", "314b", "h100", "bf16", 512), (None, False), None),
        (("llama3.1", "24.11", "405b", "h100", "fp8", 576), ("3.9", False), 0.7),
    ],
    ids=["25.04", "25.12", "grok", "24.11"],
)
def test_the_upstream_procedure_needs_the_python_of_its_scripts(
    catalog: Catalog,
    selection: tuple[str, str, str, str, str, int],
    python: tuple[str | None, bool],
    gb: float | None,
) -> None:
    needs = _needs(
        "upstream", RunRequest(catalog.recipe(*selection[:2]), plan(catalog, Selection(*selection)), PROFILE)
    )
    assert (needs.python, needs.python_only) == python
    assert (needs.venv, needs.environment_gb) == (python[0] is not None, gb)
    assert needs.repository == "https://github.com/NVIDIA/dgxc-benchmarking.git"


@pytest.mark.parametrize(
    ("selection", "file", "each_run"),
    [
        (("llama3.1", "24.11", "405b", "h100", "fp8", 576), "set-up/setup-", False),
        (("llama3.1", "25.04", "8b", "h100", "bf16", 8), "set-up/pins-", True),
    ],
    ids=["24.11", "25.04"],
)
def test_downloads_that_are_done_once_leave_a_note(
    catalog: Catalog, selection: tuple[str, str, str, str, str, int], file: str, each_run: bool
) -> None:
    recipe = catalog.recipe(selection[0], selection[1])
    request = RunRequest(recipe, plan(catalog, Selection(*selection)), PROFILE)
    needs = _needs("upstream", request)
    assert needs.set_up.startswith(f"/lustre/llmb/.llmb-tui/published/{selection[0]}-{selection[1]}/{file}")
    assert needs.hub_each_run is each_run
    assert _needs("direct", request).set_up == ""


def test_the_paths_for_offline_files_match_the_install(catalog: Catalog) -> None:
    selection = Selection("nemotron4", "25.04", "15b", "h100", "fp8", 64)
    names: tuple[ProcedureId, ...] = ("direct", "upstream")
    for name in names:
        request = RunRequest(catalog.recipe("nemotron4@25.04"), plan(catalog, selection), PROFILE, name)
        needs, steps = _needs(name, request), procedure(name).install(request)
        image = next(step for step in steps if step.id.startswith("image-"))
        assert needs.brought_image == "/lustre/llmb/offline/nvidia+nemo+25.02.01.sqsh"
        assert needs.brought_image in image.args
    folder = "/lustre/llmb/offline"
    repositories = ("dgxc-benchmarking", "NeMo", "Megatron-LM", "NeMo-Run")
    assert needs.brought_sources == tuple(f"{folder}/{repository}.bundle" for repository in repositories)
    assert needs.brought_packages == f"{folder}/wheels"


def test_a_target_is_complete_without_a_connection_to_the_cluster(catalog: Catalog, tmp_path: Path) -> None:
    """The launcher collects the target without a connection; the checks in it run later."""

    def no_cluster(profile: ClusterProfile) -> NoReturn:
        raise AssertionError(f"{profile.name} was asked")

    places, sources = UserPaths(tmp_path, tmp_path), Sources(registry="https://mirror.example")
    runs, journal = Runs(places), Journal(tmp_path / "journal")
    launcher = Launcher(no_cluster, catalog, runs, journal, Policy(), sources, lambda spec: spec.run_id)
    run_plan = plan(catalog, Selection("nemotron4", "25.04", "15b", "h100", "fp8", 64))
    request = RunRequest(catalog.recipe("nemotron4@25.04"), run_plan, PROFILE, "upstream")
    target = launcher.target(request)
    assert isinstance(target.needs, Needs)
    assert (target.needs.profile.account, target.needs.image[:13]) == ("a", "/lustre/llmb/")
    assert target.needs.sources is target.sources is sources
    assert [key.id for key in target.keys] == ["ngc"]
    assert (len(target.surveys), len(target.further)) == (1, 1)
    alone = launcher.target(PROFILE)
    assert (alone.keys, alone.further, len(alone.surveys)) == ((), (), 1)
