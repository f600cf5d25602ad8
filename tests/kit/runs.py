"""Plans, specs and runs: of a recipe, or with fixed values if the recipe does not matter. All times are fixed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from llmb_tui.catalog.load import load_presets
from llmb_tui.catalog.recipe import ResultRule
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.session import Session
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.launch.direct.delivery import DirectDelivery
from llmb_tui.launch.direct.spec_of import launch_spec
from llmb_tui.launch.login_node import LoginNodeDelivery
from llmb_tui.launch.run import Run
from llmb_tui.launch.spec import LaunchSpec
from llmb_tui.launch.submission_status import SubmissionDir
from llmb_tui.launch.upstream.delivery import UpstreamDelivery
from llmb_tui.plan.make import plan
from llmb_tui.plan.plan import Estimate, Memory, Parallelism, Plan
from llmb_tui.plan.selection import ProcedureId, Selection
from llmb_tui.request import RunRequest

CATALOG = load_presets()
NEMOTRON = Selection("nemotron4", "25.04", "15b", "h100", "fp8", 64)
"""The selection of most tests: 50 steps, with a published step time of 1.98 s."""
CREATED_AT = 1_760_000_000.0

ESTIMATE = Estimate(
    step_time_s=1.98,
    low_s=1.90,
    high_s=2.06,
    method="published",
    anchor="nemotron4@25.04, 64 GPUs",
    tokens_per_s=529_584,
    mfu_pct=39.3,
    days_per_1t_tokens=21.9,
    tflops_per_gpu=777.0,
    model_flops_per_sample=3.85e14,
    peak_tflops=1979,
    flops_formula="grouped queries, full attention",
)
PLAN = Plan(
    selection=NEMOTRON,
    scaling="weak",
    nodes=8,
    gpus_per_node=8,
    parallelism=Parallelism(2, 1, 1, 1, 32, None, 2, 256, 4, 4096, 32),
    printed=None,
    published=None,
    estimate=ESTIMATE,
    memory=Memory(34.2, 70.8, 80.0, "fits"),
    checkpoint_gb=204.0,
    gpu_hours=1.8,
    steps=50,
    time_limit="00:15:00",
    container="nvidia/nemo:25.02.01",
    problems=(),
)
"""A plan for that selection with round figures that are independent of the presets."""


def request_for(selection: Selection, profile: SlurmProfile, procedure: ProcedureId = "direct") -> RunRequest:
    """The request to run a recipe on a cluster."""
    recipe = CATALOG.recipe(selection.workload, selection.release)
    return RunRequest(recipe, plan(CATALOG, selection), profile, procedure)


def intended_run(request: RunRequest, run_id: str) -> Run:
    """The intent of a run by our script before its submission."""
    return Run.of(request, launch_spec(request, run_id), 0.0)


def make_spec(run_id: str = "run1", task_dir: Path | None = None) -> LaunchSpec:
    """Spec of a run with fixed values, with its task directory on the cluster."""
    experiment = "pretrain_nemotron4_15b_fp8_64"
    task = f"{experiment}_{run_id}"
    task_dir = task_dir or Path("/lustre/llmb/workloads/pretrain_nemotron4/experiments/e/e_1", task)
    return LaunchSpec(
        run_id=run_id,
        experiment=experiment,
        task=task,
        experiment_dir=str(task_dir.parent),
        task_dir=str(task_dir),
        job_name=f"acct-acct.{task}",
        account="acct",
        partition="batch",
        nodes=8,
        tasks_per_node=8,
        gpu_request="gpus-per-node",
        time_limit="00:15:00",
        container_image="/lustre/llmb/images/nvidia+nemo+25.02.01.sqsh",
        mounts=(),
        env=(),
        command=("python",),
    )


def make_run(run_id: str = "k3f9a2", task_dir: Path | None = None, **changes: Any) -> Run:
    """A run of `PLAN` on a cluster named eos, submitted as job 48123, which is running."""
    run = Run(
        id=run_id,
        plan=PLAN,
        spec=make_spec(run_id, task_dir),
        rule=ResultRule("last", "README"),
        log_format="nemo2",
        procedure="direct",
        cluster="eos",
        created_at=CREATED_AT,
        submission="submitted",
        job_ids=("48123",),
        submitted_at=CREATED_AT + 2,
        job_state="RUNNING",
    )
    return replace(run, **changes)


def delivery_of(run: Run) -> LoginNodeDelivery:
    """Delivery of a run from a login node that cannot be reached."""
    cluster = SlurmCluster(SlurmProfile(run.cluster, "none", "a", "b", "/none"))
    cluster.close()
    return DirectDelivery(cluster, run) if isinstance(run.spec, LaunchSpec) else UpstreamDelivery(cluster, run)


def start_late(session: Session, place: SubmissionDir) -> None:
    """Run the submission script late, like a command that was delayed on its way to the login node."""
    install = session.profile.install_dir
    session.run_script(remote_text(*place.helper), [install, place.folder, *place.arguments])


def direct_spec(run: Run) -> LaunchSpec:
    """Spec from which a run by our script was submitted."""
    return run.spec_as(LaunchSpec)


def slurm(profile: ClusterProfile) -> SlurmProfile:
    """The profile as one of a Slurm cluster."""
    assert isinstance(profile, SlurmProfile)
    return profile
