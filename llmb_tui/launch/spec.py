"""`LaunchSpec`: everything that the batch script is rendered from. No secret is in it."""

from __future__ import annotations

from dataclasses import dataclass

from llmb_tui.launch.job_log import JobLog


@dataclass(frozen=True, slots=True)
class LaunchSpec:
    """One job, before it is rendered. Paths are on the cluster."""

    run_id: str
    """Lower-case letters and digits; unique; part of the task name and so of the job name."""
    experiment: str
    """NeMo-Run's experiment title, such as `pretrain_nemotron4_15b_fp8_64_nsys`."""
    task: str
    """NeMo-Run's task name: the experiment and the run id."""
    experiment_dir: str
    """`<install>/workloads/pretrain_<workload>/experiments/<experiment>/<experiment>_<run id>`."""
    task_dir: str
    """`<experiment_dir>/<task>`: logs, `code/`, `configs/`; `/nemo_run` in the container."""
    job_name: str
    """Slurm job name as NeMo-Run makes it: `<account>-<last part of account>.<task>`."""
    account: str
    partition: str
    nodes: int
    tasks_per_node: int
    gpu_request: str
    time_limit: str
    container_image: str
    mounts: tuple[str, ...]
    """`SOURCE:TARGET` or `SOURCE:TARGET:FLAGS` each: the cluster profile's, then those that the run's options need."""
    env: tuple[tuple[str, str], ...]
    """The recipe's variables, those that the run's options need, then the cluster profile's."""
    command: tuple[str, ...]
    """Argument list that each rank runs in the container: a profiler, the binding to a NUMA node, the training."""
    files: tuple[tuple[str, str], ...] = ()
    """(path below `task_dir`, text) of the files that are written before the job is submitted."""
    copies: tuple[tuple[str, str], ...] = ()
    """(path of an installed file, path below `task_dir`) of the files that are copied on the cluster."""
    links: tuple[tuple[str, str], ...] = ()
    """(path below the operator's home directory, path below `task_dir`) of symbolic links that are made there; an empty
    file instead of a link, where the home directory has none."""
    folders: tuple[str, ...] = ()
    """Folders outside `task_dir` that a mount needs; they are made where they are missing."""
    memory: str = "0"
    """Memory of each node, for `sbatch --mem`; `0` is all of it."""
    srun: tuple[tuple[str, str | None], ...] = ()
    """Options of the `srun` that starts the training: long name and value, None for a flag."""
    vboost: bool = False
    """Whether a first `srun` gives the GPUs' tensor cores more power."""
    options: tuple[tuple[str, str | None], ...] = ()
    """Further `sbatch` options: long name and value, None for a flag."""
    overridden: tuple[tuple[str, str, str], ...] = ()
    """(name, recipe's value, profile's value) of the recipe's variables that the profile changes: a result that was
    made with one of them is not the published procedure's."""
    notes: tuple[str, ...] = ()
    """Where the job is not what the recipe makes of it, beside `overridden`: a few words each."""

    @property
    def log(self) -> JobLog:
        """Where the job writes, as NeMo-Run names it."""
        name = f"{self.job_name}_%j"
        return JobLog(f"{self.task_dir}/log-{name}_%r.out", (f"{self.task_dir}/sbatch_{name}.out",))
