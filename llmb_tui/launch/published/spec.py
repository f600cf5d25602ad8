"""`PublishedSpec`: what the published procedure launches a plan with on a cluster. No secret is in it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from llmb_tui.launch.job_log import JobLog


@dataclass(frozen=True, slots=True)
class PublishedSpec:
    """One launch, before it. Paths are on the cluster."""

    run_id: str
    """Lower-case letters and digits; unique."""
    experiment: str
    """NeMo-Run's experiment title, as far as it can be said before; the sbatch recipes have none of their own."""
    job_name: str
    """Slurm job name: the script's own, or for NeMo-Run's tasks what each of their names begins with."""
    folder: str
    """`<root>/.llmb-tui/launches/<run id>`: the command, its output, and what tells its jobs from others."""
    script: str
    """Name of the launch script."""
    how: Literal["bash", "sbatch"]
    """`bash`: NeMo-Run calls sbatch, once for each task. `sbatch`: the script is the batch script itself."""
    command: str
    """What is run, to the letter."""
    directory: str
    """Where it is run; for `sbatch` the job's working directory."""
    root: str
    """What the recipe's variable names."""
    results: str
    """Where the results go: for `bash` NeMo-Run's experiments."""
    needed: tuple[str, ...]
    """What the install leaves: directories, and files that are not empty."""
    token_file: str
    """Below the home directory: the command reads the Hugging Face token there; empty: it needs none."""
    account: str
    partition: str
    nodes: int
    tasks_per_node: int
    gpu_request: str
    time_limit: str
    memory: str
    options: tuple[tuple[str, str | None], ...]
    """Further `sbatch` options that the cluster's profile asks for."""
    log: JobLog | None = None
    """Where the job writes; None for `bash`, where the launch's output says it."""
    notes: tuple[str, ...] = ()
    """Where the job is not what the selection or the profile asks for: a sentence each."""

    @property
    def index(self) -> str:
        """Where NeMo-Run writes its jobs down, `NEMORUN_HOME/.slurm_jobs`; empty without NeMo-Run."""
        return f"{self.results.rpartition('/')[0]}/.slurm_jobs" if self.how == "bash" else ""
