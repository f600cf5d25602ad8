"""Outputs of launches by NVIDIA's scripts, and their specs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from llmb_tui.cluster.job import OwnJob
from llmb_tui.launch.spec import UpstreamSpec
from llmb_tui.launch.submission_status import SubmissionStatus, parse

ROOT = "/lustre/llmb/published/llama3.1-25.04"
EXPERIMENTS = f"{ROOT}/experiments"
EXPERIMENT = "pretrain_llama3.1_8b_bf16_8"
NAME = f"research_llm_bench-bench.{EXPERIMENT}"
BEGAN, ENDED, NOW = 1763712000, 1763712060, 1763712100

NEMO_RUN = UpstreamSpec(
    run_id="251121080102abcd",
    experiment=EXPERIMENT,
    job_name=NAME,
    folder=f"{ROOT}/.llmb-tui/launches/251121080102abcd",
    script="launch.sh",
    how="bash",
    command="cd /lustre && ./launch.sh",
    directory=f"{ROOT}/dgxc-benchmarking/llama3.1",
    root=ROOT,
    results=EXPERIMENTS,
    needed=(ROOT,),
    token_file="",
    account="research_llm_bench",
    partition="batch",
    nodes=1,
    tasks_per_node=8,
    gpu_request="gpus-per-node",
    time_limit="00:30:00",
    memory="0",
    options=(),
)
BATCH = replace(NEMO_RUN, how="sbatch", experiment="", job_name="nemo_grok1", directory=ROOT, results=f"{ROOT}/results")


def folder(mark: str = "", made_at: int = BEGAN + 5, experiment: str = EXPERIMENT) -> str:
    """Folder of a task of NeMo-Run."""
    return f"{EXPERIMENTS}/{experiment}/{experiment}_{made_at}/{experiment}{mark}"


def block(number: int, job_id: str, mark: str = "", where: str = "") -> str:
    """Output of NeMo-Run about a task."""
    return f"""
Task {number}: {EXPERIMENT}{mark}
- Status: PENDING
- Executor: SlurmExecutor on @localhost
- Job id: {job_id}
- Local Directory: {where or folder(mark)}
"""


def found(words: str = "", *more: str, exit_code: str | None = "0") -> SubmissionStatus:
    """Status of a launch that began; `more` are lines of `remote/launched.sh`."""
    end = "" if exit_code is None else f"exit {exit_code} {ENDED}"
    head = [f"claim me@login1 77 {BEGAN - 1}", f"now {NOW}", f"beat {ENDED}", end, f"began {BEGAN}", *more]
    return parse("\n".join([*(line for line in head if line), "words", words]))


def job(job_id: str, mark: str = "", **changes: Any) -> OwnJob:
    """One of the jobs, as the queue lists it."""
    made = OwnJob(
        job_id, f"{NAME}{mark}", BEGAN + 10, ROOT, f"{folder(mark).rpartition('/')[0]}/{EXPERIMENT}{mark}_sbatch.sh"
    )
    return replace(made, **changes)


def batch_job(job_id: str, **changes: Any) -> OwnJob:
    """One of the batch recipe's jobs."""
    return replace(OwnJob(job_id, "nemo_grok1", BEGAN + 10, ROOT, f"{ROOT}/launch.sh"), **changes)
