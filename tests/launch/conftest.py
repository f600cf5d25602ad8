from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.launch.direct.spec_of import launch_spec
from llmb_tui.launch.run import Run
from llmb_tui.launch.spec import LaunchSpec
from llmb_tui.plan.make import plan
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.selection import Selection
from llmb_tui.request import RunRequest
from tests.kit.runs import NEMOTRON, intended_run, request_for
from tests.launch.launch_cases import PROFILE, RUN_ID, MakePlan, MakeRun, MakeSpec
from tests.launch.submit_stage import Stage


@pytest.fixture(scope="session")
def make_plan(catalog: Catalog) -> MakePlan:
    def make(recipe: str, size: str, gpu: str, dtype: str, scale: int, **more: object) -> Plan:
        workload, _, release = recipe.partition("@")
        return plan(catalog, replace(Selection(workload, release, size, gpu, dtype, scale), **more))  # type: ignore[arg-type]

    return make


@pytest.fixture(scope="session")
def make_spec(catalog: Catalog, make_plan: MakePlan) -> MakeSpec:
    def make(recipe: str, *selection: object, profile: SlurmProfile = PROFILE, **more: object) -> LaunchSpec:
        return launch_spec(RunRequest(catalog.recipe(recipe), make_plan(recipe, *selection, **more), profile), RUN_ID)

    return make


@pytest.fixture(scope="session")
def make_run() -> MakeRun:
    """A run of Nemotron4 15b fp8 on 64 GPUs, on the cluster of `profile`."""

    def make(profile: SlurmProfile = PROFILE, run_id: str = RUN_ID) -> Run:
        return replace(intended_run(request_for(NEMOTRON, profile), run_id), created_at=1763712000.0)

    return make


@pytest.fixture
def stage(tmp_path: Path, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """A cluster on which a submission can fail at any point."""
    made = Stage(tmp_path, make_run, monkeypatch)
    yield made
    made.close()
