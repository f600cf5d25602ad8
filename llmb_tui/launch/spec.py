"""`LaunchSpec`, `UpstreamSpec`, `RunaiSpec`: what a run was submitted from, as it is remembered, without a secret.

A field's name is the key in the run's stored file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias, TypeVar

from llmb_tui.cluster.job_log import JobLog
from llmb_tui.cluster.runai.words import RUNAI_WORDS
from llmb_tui.cluster.scheduler_words import JobWords
from llmb_tui.cluster.slurm.words import SLURM_WORDS

SpecType = TypeVar("SpecType", bound="Spec")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """Fields that all specs share, and an empty answer to each question that only some of them can answer."""

    job_words: ClassVar[JobWords]
    """What the jobs are called by their scheduler."""
    notes: tuple[str, ...] = ()
    """Differences between the job and the recipe or the selection, apart from changed variables: a few words each."""
    otherwise: tuple[str, ...] = ()
    """Conditions that affect the step time and differ from the runs behind the expected one: a few words each."""

    def results_folder(self, log: JobLog | None) -> str:  # noqa: ARG002 - only some need the log
        """Folder on the cluster with the run's results; empty if the procedure has none."""
        return ""

    @property
    def account_and_partition(self) -> str:
        """Slurm's account and partition; empty without Slurm."""
        return ""

    @property
    def image_used(self) -> str:
        """Container image as the job names it: a path, or a name in a registry; empty if a script chooses it."""
        return ""

    @property
    def changed_variables(self) -> tuple[tuple[str, str, str], ...]:
        """(name, recipe's value, profile's value) of the recipe's variables that the cluster's profile changes."""
        return ()

    @property
    def sbatch_options(self) -> Mapping[str, str | None]:
        """Further `sbatch` options by long name, None for a flag."""
        return {}

    @property
    def variables(self) -> Mapping[str, str] | None:
        """Environment of the job as it was asked for; None if scripts set it that the record does not hold."""
        return None

    def has_command(self, prefix: tuple[str, ...], training: tuple[str, ...]) -> bool:  # noqa: ARG002 - as above
        """Whether the job's command begins with `prefix` and ends with `training`, if the record holds one."""
        return True

    @property
    def sent_files(self) -> Mapping[str, str]:
        """Texts of the files that are sent with the job, by their paths below its folder."""
        return {}

    @property
    def shares_folder(self) -> bool:
        """True if other runs write to the same results folder."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnScriptSpec(Spec):
    """Fields of the jobs that run this program's own entry script."""

    overridden: tuple[tuple[str, str, str], ...] = ()
    """(name, recipe's value, profile's value) of the recipe's variables that the profile changes: a result that was
    made with one of them is not the recipe's."""

    @property
    def changed_variables(self) -> tuple[tuple[str, str, str], ...]:
        """As they are stored."""
        return self.overridden


def _as_stored(spec: type[SpecType]) -> type[SpecType]:
    """Put the shared fields after a spec's own ones: stored files have always had this order."""
    by_name = spec.__dataclass_fields__
    for name in ("overridden", "notes", "otherwise"):
        if name in by_name:
            by_name[name] = by_name.pop(name)
    return spec


@_as_stored
@dataclass(frozen=True, slots=True)
class LaunchSpec(OwnScriptSpec):
    """One job by the direct procedure, before it is rendered. Paths are on the cluster."""

    job_words: ClassVar[JobWords] = SLURM_WORDS
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

    @property
    def account_and_partition(self) -> str:
        """Of the job."""
        return f"{self.account}, {self.partition}"

    @property
    def image_used(self) -> str:
        """Path of the imported image."""
        return self.container_image

    @property
    def sbatch_options(self) -> Mapping[str, str | None]:
        """By name."""
        return dict(self.options)

    @property
    def variables(self) -> Mapping[str, str]:
        """By name."""
        return dict(self.env)

    def has_command(self, prefix: tuple[str, ...], training: tuple[str, ...]) -> bool:
        """As in the command that each rank runs."""
        ends = self.command[len(self.command) - len(training) :]
        return self.command[: len(prefix)] == prefix and ends == training

    @property
    def sent_files(self) -> Mapping[str, str]:
        """By path below `task_dir`."""
        return dict(self.files)

    @property
    def log(self) -> JobLog:
        """Where the job writes, as NeMo-Run names it."""
        return JobLog.of_nemo_run(self.task_dir, self.job_name)


@_as_stored
@dataclass(frozen=True, slots=True)
class UpstreamSpec(Spec):
    """One launch by NVIDIA's own scripts, before it. Paths are on the cluster."""

    job_words: ClassVar[JobWords] = SLURM_WORDS
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

    def results_folder(self, log: JobLog | None) -> str:
        """NeMo-Run makes a folder for each experiment, which is known when the job's `log` is."""
        return log.folder if self.how == "bash" and log is not None else self.results

    @property
    def account_and_partition(self) -> str:
        """Of the job."""
        return f"{self.account}, {self.partition}"

    @property
    def sbatch_options(self) -> Mapping[str, str | None]:
        """By name."""
        return dict(self.options)

    @property
    def shares_folder(self) -> bool:
        """Batch scripts of the Hydra recipes write to one folder, and name their files by the job."""
        return self.how == "sbatch"

    @property
    def index(self) -> str:
        """Where NeMo-Run writes its jobs down, `NEMORUN_HOME/.slurm_jobs`; empty without NeMo-Run."""
        return f"{self.results.rpartition('/')[0]}/.slurm_jobs" if self.how == "bash" else ""


SlurmSpec: TypeAlias = LaunchSpec | UpstreamSpec
"""Specs of jobs that Slurm schedules."""


@_as_stored
@dataclass(frozen=True, slots=True)
class RunaiSpec(OwnScriptSpec):
    """One workload of a Run:ai cluster, before it is created. Paths are in its pods."""

    job_words: ClassVar[JobWords] = RUNAI_WORDS
    run_id: str
    """Lower-case letters and digits; unique; part of the workload's name."""
    experiment: str
    """The recipe's own name for it."""
    workload: str
    """Its name, unique within the project."""
    kind: Literal["distributed", "trainings"]
    """`distributed`: one pod for each of several nodes."""
    project: str
    node_pool: str | None
    """None: the project's default."""
    nodes: int
    gpus_per_node: int
    time_limit: str
    image: str
    mounts: tuple[str, ...]
    """`NAME:PATH:CLAIM` each."""
    results: str
    """Folder on a volume for what lasts; empty: there is none."""
    image_pull_secret: str | None
    hub_credential: str | None
    """Credential of Run:ai with the Hugging Face token, where the run fetches something from the model hub."""
    env: tuple[tuple[str, str], ...]
    files: tuple[tuple[str, str], ...]
    """(path below the run's folder, text) of the files that travel with the workload."""

    def results_folder(self, log: JobLog | None) -> str:  # noqa: ARG002 - a `Spec`'s
        """Known before the workload starts."""
        return self.results

    @property
    def image_used(self) -> str:
        """Name in its registry."""
        return self.image

    @property
    def variables(self) -> Mapping[str, str]:
        """By name."""
        return dict(self.env)

    @property
    def sent_files(self) -> Mapping[str, str]:
        """By path below the run's folder."""
        return dict(self.files)

    @property
    def job_name(self) -> str:
        """The workload's name."""
        return self.workload

    @property
    def log(self) -> JobLog:
        """Every start of the workload writes anew, into the log of its first pod."""
        return JobLog(self.workload)
