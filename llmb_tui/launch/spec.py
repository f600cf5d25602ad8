"""`LaunchSpec`, `UpstreamSpec`, `RunaiSpec`: the input of a submission, as a run's record stores it. No secrets.

Field names are the keys in the run's stored file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, TypeAlias, TypeVar

from llmb_tui.cluster.job_log import JobLog
from llmb_tui.cluster.runai.words import RUNAI_WORDS
from llmb_tui.cluster.scheduler_words import JobWords
from llmb_tui.cluster.slurm.words import SLURM_WORDS

SpecType = TypeVar("SpecType", bound="Spec")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """Fields that all specs share, and empty defaults for the properties that only some specs have."""

    job_words: ClassVar[JobWords]
    """Names of the jobs and of their scheduler."""
    notes: tuple[str, ...] = ()
    """Differences between the job and the recipe or the selection, apart from changed variables: a few words each."""
    otherwise: tuple[str, ...] = ()
    """Conditions that affect the step time and differ from the runs behind the expected one: a few words each."""

    def is_same_job(self, other: Spec | None) -> bool:
        """True if both specs make the same job. Their prose may differ: another version may word it differently."""
        if other is None:
            return False
        return replace(self, notes=(), otherwise=()) == replace(other, notes=(), otherwise=())

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
    """(name, recipe's value, profile's value) of the recipe's variables that the profile changes: a result with such a
    change is not the recipe's."""

    @property
    def changed_variables(self) -> tuple[tuple[str, str, str], ...]:
        """The stored tuples."""
        return self.overridden


def _as_stored(spec: type[SpecType]) -> type[SpecType]:
    """Move the shared fields behind a spec's own ones: stored files have always had this order."""
    by_name = spec.__dataclass_fields__
    for name in ("overridden", "notes", "otherwise"):
        if name in by_name:
            by_name[name] = by_name.pop(name)
    return spec


@_as_stored
@dataclass(frozen=True, slots=True)
class LaunchSpec(OwnScriptSpec):
    """One job of our script, before it is rendered. Paths are on the cluster."""

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
    """`gres`, `gpus-per-node` or `none`; `gres:h100` requests a type."""
    time_limit: str
    container_image: str
    mounts: tuple[str, ...]
    """Mounts as `SOURCE:TARGET` or `SOURCE:TARGET:FLAGS`: the cluster profile's, then those for the run's options."""
    env: tuple[tuple[str, str], ...]
    """The recipe's variables, those for the run's options, then the cluster profile's."""
    command: tuple[str, ...]
    """Argument list that each rank runs in the container: a profiler, the binding to a NUMA node, the training."""
    files: tuple[tuple[str, str], ...] = ()
    """(path below `task_dir`, text) of the files that are written before the submission."""
    copies: tuple[tuple[str, str], ...] = ()
    """(path of an installed file, path below `task_dir`) of the files that are copied on the cluster."""
    links: tuple[tuple[str, str], ...] = ()
    """(path below the operator's home directory, path below `task_dir`) of symbolic links that are made there; an empty
    file replaces the link if the path is missing in the home directory."""
    folders: tuple[str, ...] = ()
    """Folders outside `task_dir` that a mount needs; missing ones are made."""
    memory: str = "0"
    """Memory of each node, for `sbatch --mem`; `0` means all of it."""
    srun: tuple[tuple[str, str | None], ...] = ()
    """Options of the `srun` that starts the training: long name and value, None for a flag."""
    vboost: bool = False
    """True if a first `srun` raises the power of the GPUs' tensor cores."""
    options: tuple[tuple[str, str | None], ...] = ()
    """Further `sbatch` options: long name and value, None for a flag."""

    @property
    def account_and_partition(self) -> str:
        """The job's account and partition, with a comma; the account alone if the job names no partition."""
        return ", ".join(filter(None, (self.account, self.partition)))

    @property
    def image_used(self) -> str:
        """Path of the imported image."""
        return self.container_image

    @property
    def sbatch_options(self) -> Mapping[str, str | None]:
        """The stored options by name."""
        return dict(self.options)

    @property
    def variables(self) -> Mapping[str, str]:
        """The stored environment by name."""
        return dict(self.env)

    def has_command(self, prefix: tuple[str, ...], training: tuple[str, ...]) -> bool:
        """True if the command of each rank begins with `prefix` and ends with `training`."""
        end = self.command[len(self.command) - len(training) :]
        return self.command[: len(prefix)] == prefix and end == training

    @property
    def sent_files(self) -> Mapping[str, str]:
        """The stored files by path below `task_dir`."""
        return dict(self.files)

    @property
    def log(self) -> JobLog:
        """Log of the job, as NeMo-Run names it."""
        return JobLog.of_nemo_run(self.task_dir, self.job_name)


@_as_stored
@dataclass(frozen=True, slots=True)
class UpstreamSpec(Spec):
    """One launch of NVIDIA's scripts, before it starts. Paths are on the cluster."""

    job_words: ClassVar[JobWords] = SLURM_WORDS
    run_id: str
    """Lower-case letters and digits; unique."""
    experiment: str
    """NeMo-Run's experiment title, as far as it is known beforehand; the sbatch recipes have none."""
    job_name: str
    """Slurm job name: the script's own or, with NeMo-Run, the common prefix of its tasks' job names."""
    folder: str
    """`<root>/.llmb-tui/launches/<run id>`: the command, its output, and the marks that identify its jobs."""
    script: str
    """Name of the launch script."""
    how: Literal["bash", "sbatch"]
    """`bash`: NeMo-Run calls sbatch, once for each task. `sbatch`: the script is itself the batch script."""
    command: str
    """Exact command that is run."""
    directory: str
    """Working directory of the command; with `sbatch`, also of the job."""
    root: str
    """Directory that the recipe's root variable names."""
    results: str
    """Results folder; with `bash`, the folder of NeMo-Run's experiments."""
    needed: tuple[str, ...]
    """Directories and non-empty files that the install makes."""
    token_file: str
    """File below the home directory with the Hugging Face token, for the command; empty if it needs none."""
    account: str
    partition: str
    nodes: int
    tasks_per_node: int
    gpu_request: str
    """`gres`, `gpus-per-node` or `none`; `gres:h100` requests a type."""
    time_limit: str
    memory: str
    options: tuple[tuple[str, str | None], ...]
    """Further `sbatch` options from the cluster's profile."""
    log: JobLog | None = None
    """Log of the job; None with `bash`, because the launch's output names it."""

    def results_folder(self, log: JobLog | None) -> str:
        """Results folder; NeMo-Run makes one for each experiment, which is known once the job's `log` is."""
        return log.folder if self.how == "bash" and log is not None else self.results

    @property
    def account_and_partition(self) -> str:
        """The job's account and partition, with a comma; the account alone if the job names no partition."""
        return ", ".join(filter(None, (self.account, self.partition)))

    @property
    def sbatch_options(self) -> Mapping[str, str | None]:
        """The stored options by name."""
        return dict(self.options)

    @property
    def shares_folder(self) -> bool:
        """True for the batch scripts of the Hydra recipes, which write to one folder and name their files by job."""
        return self.how == "sbatch"

    @property
    def index(self) -> str:
        """File in which NeMo-Run records its jobs, `NEMORUN_HOME/.slurm_jobs`; empty without NeMo-Run."""
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
    """The recipe's own experiment name."""
    workload: str
    """Name of the workload, unique within the project."""
    kind: Literal["distributed", "trainings"]
    """`distributed`: several nodes with one pod each."""
    project: str
    node_pool: str | None
    """Node pool; None: the project's default."""
    nodes: int
    gpus_per_node: int
    time_limit: str
    image: str
    mounts: tuple[str, ...]
    """Volumes as `NAME:PATH:CLAIM`."""
    results: str
    """Folder on a volume for lasting results; empty if there is none."""
    image_pull_secret: str | None
    hub_credential: str | None
    """Credential of Run:ai with the Hugging Face token, if the run downloads from the model hub."""
    env: tuple[tuple[str, str], ...]
    files: tuple[tuple[str, str], ...]
    """(path below the run's folder, text) of the files that are sent with the workload."""

    def results_folder(self, log: JobLog | None) -> str:  # noqa: ARG002 - the signature of `Spec`
        """The stored folder, which is known before the workload starts."""
        return self.results

    @property
    def image_used(self) -> str:
        """Image name with its registry."""
        return self.image

    @property
    def variables(self) -> Mapping[str, str]:
        """The stored environment by name."""
        return dict(self.env)

    @property
    def sent_files(self) -> Mapping[str, str]:
        """The stored files by path below the run's folder."""
        return dict(self.files)

    @property
    def job_name(self) -> str:
        """Name of the workload."""
        return self.workload

    @property
    def log(self) -> JobLog:
        """Log of the first pod, into which each start of the workload writes."""
        return JobLog(self.workload)
