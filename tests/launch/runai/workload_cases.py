"""Requests for a Run:ai cluster, with their specs and runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from llmb_tui.cluster.runai.profile import RunaiProfile
from llmb_tui.launch.files import as_json
from llmb_tui.launch.run import Run
from llmb_tui.launch.runai.workload import Placement, creation_request, runai_spec
from llmb_tui.launch.spec import RunaiSpec
from llmb_tui.plan.make import plan
from llmb_tui.plan.selection import Selection
from llmb_tui.request import RunRequest
from tests.kit.runs import CATALOG

PROFILE = RunaiProfile(
    "dgx",
    "https://runai.example.org/api/v1",
    "llmb",
    "research",
    mounts=("data:/data:llmb-data",),
    work_dir="/data/llmb",
)
RUN_ID = "251121080102abcd"
PLACED = Placement("4500105", "5b1f6c0e-2f4d-4b52-9a53-6d0c7c1f0d11")
NEMOTRON_340B = Selection("nemotron4-340b", "25.12", "340b", "h100", "fp8", 256)
SMALL = Selection("llama3.1", "25.04", "8b", "h100", "bf16", 8)
"""A selection for one node."""


def request_of(selection: Selection = NEMOTRON_340B, profile: RunaiProfile = PROFILE, /, **options: Any) -> RunRequest:
    """Request to run a selection; `options` are options of the run."""
    selection = replace(selection, options=replace(selection.options, **options))
    recipe = CATALOG.recipe(selection.workload, selection.release)
    return RunRequest(recipe, plan(CATALOG, selection), profile, "runai")


def spec_of(request: RunRequest, run_id: str = RUN_ID) -> RunaiSpec:
    """Spec of a request."""
    return runai_spec(request, run_id)


def intent(request: RunRequest, placed: Placement = PLACED, run_id: str = RUN_ID) -> tuple[Run, str]:
    """An unsubmitted run, and the request that would create its workload."""
    spec = spec_of(request, run_id)
    return Run.of(request, spec, 1_760_000_000.0), as_json(creation_request(spec, placed))
