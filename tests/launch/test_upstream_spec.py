"""Specs of launches by NVIDIA's scripts, for each recipe, and selections that cannot be launched this way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.cluster.job_log import JobLog
from llmb_tui.cluster.slurm.client import Version
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.errors import LlmbError
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import Runs
from llmb_tui.launch.spec import UpstreamSpec
from llmb_tui.launch.upstream.command import upstream_command
from llmb_tui.launch.upstream.procedure import upstream_spec
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.selection import Overrides
from llmb_tui.request import RunRequest
from llmb_tui.store.paths import UserPaths
from tests.launch.launch_cases import PROFILE, ROWS, RUN_ID, MakePlan

GROK = "/lustre/llmb/published/grok1-25.02"


def spec_of(
    catalog: Catalog, plan: Plan, profile: SlurmProfile = PROFILE, slurm: Version | None = None
) -> UpstreamSpec:
    recipe = catalog.recipe(plan.selection.workload, plan.selection.release)
    return upstream_spec(RunRequest(recipe, plan, profile), RUN_ID, slurm)


@pytest.mark.parametrize(
    ("name", "job_name", "index"),
    [
        ("nemotron4-25.04", "research_llm_bench-bench.pretrain_nemotron4_15b_fp8_64", "published/nemotron4-25.04"),
        ("llama3.1-25.04", "research_llm_bench-bench.pretrain_llama3.1_70b_bf16_64", "published/llama3.1-25.04"),
        (
            "nemotron4-340b-25.12",
            "research_llm_bench-bench.pretrain_nemotron4_340b_fp8_gpus128_tp8_pp4_cp1_vp12_mbs1_gbs32",
            "workloads/pretrain_nemotron4-340b",
        ),
    ],
)
def test_names_and_folders_of_nemo_run_are_known_before_the_launch(
    catalog: Catalog, make_plan: MakePlan, name: str, job_name: str, index: str
) -> None:
    spec = spec_of(catalog, make_plan(*ROWS[name]))
    assert (spec.how, spec.job_name, spec.log) == ("bash", job_name, None)
    assert spec.index == f"/lustre/llmb/{index}/.slurm_jobs"
    assert spec.results == f"/lustre/llmb/{index}/experiments"


@pytest.mark.parametrize(("slurm", "own"), [(None, True), ((24, 11), True), ((23, 2), True), ((22, 5), False)])
def test_the_log_path_of_a_batch_script_is_known_before_the_launch(
    catalog: Catalog, make_plan: MakePlan, slurm: Version | None, own: bool
) -> None:
    spec = spec_of(catalog, make_plan(*ROWS["grok1-25.02"]), slurm=slurm)
    log = f"{GROK}/results/25.02/bf16/314b/64/log-nemo_grok1_314b_64_%j"
    batch = f"{GROK}/slurm-%j.out"
    assert (spec.how, spec.job_name, spec.index) == ("sbatch", "nemo_grok1", "")
    assert spec.log == (JobLog(f"{log}.out", (f"{log}.err", batch)) if own else JobLog(batch))


@pytest.mark.parametrize("name", ROWS)
def test_the_command_is_the_shown_command(catalog: Catalog, make_plan: MakePlan, name: str) -> None:
    plan = make_plan(*ROWS[name])
    spec = spec_of(catalog, plan)
    assert spec.command == upstream_command(RunRequest(catalog.recipe(ROWS[name][0]), plan, PROFILE)).text
    assert spec.folder == f"{spec.root}/.llmb-tui/launches/{RUN_ID}"
    assert any(path.endswith(".sqsh") for path in spec.needed)
    assert any(path.endswith("/launch.sh") for path in spec.needed)


def test_a_run_of_either_procedure_is_remembered(catalog: Catalog, make_plan: MakePlan, tmp_path: Path) -> None:
    plan = make_plan(*ROWS["grok1-25.02"])
    recipe = catalog.recipe("grok1@25.02")
    spec = replace(spec_of(catalog, plan), options=(("qos", "short"), ("requeue", None)))
    run = Run.of(RunRequest(recipe, plan, PROFILE, "upstream"), spec, 0.0)
    runs = Runs(UserPaths(tmp_path / "config", tmp_path / "state"))
    runs.save(run)
    assert runs.load(RUN_ID) == run
    assert run.job_log == spec.log


def test_unsupported_selections_are_refused(catalog: Catalog, make_plan: MakePlan) -> None:
    plan = make_plan(*ROWS["nemotron4-25.04"], overrides=Overrides(gbs=512))
    with pytest.raises(LlmbError, match="NVIDIA's scripts cannot launch this plan") as caught:
        spec_of(catalog, plan)
    assert "GBS" in caught.value.why
    assert "our script" in caught.value.fix
    assert caught.value.exit_code == 1


def test_its_deviations_are_noted(catalog: Catalog, make_plan: MakePlan) -> None:
    profile = replace(PROFILE, env=(("NCCL_NVLS_ENABLE", "1"),))
    notes = spec_of(catalog, make_plan(*ROWS["nemotron4-25.04"]), profile).notes
    assert any("NCCL_NVLS_ENABLE" in note for note in notes)
