"""`launch_spec`: names, paths, environment, command and files of a plan's job on one cluster. Pure.

Names and layout follow the recipes, so that their own tools find our runs. NeMo-Run writes most values into the script
without quotes, so each value is checked here for valid characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from llmb_tui.cluster.quoting import one_line
from llmb_tui.cluster.slurm.client import SEGMENT_SINCE, Version
from llmb_tui.cluster.slurm.params import Option, is_option, sbatch_options
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.cluster.slurm.profile_check import split_mount
from llmb_tui.cluster.validation import ENV_NAME, GPU_TYPE, MEMORY, NAME, NAMES, PATH, is_all_memory
from llmb_tui.errors import LlmbError
from llmb_tui.language.text import clean_line
from llmb_tui.launch.direct.install import entry_path
from llmb_tui.launch.direct.option_effects import (
    NETWORK_NOTE,
    NETWORK_README,
    RUN_FOLDER,
    additions,
    keeps_network,
    output_files,
    suffix,
    with_network_lines,
)
from llmb_tui.launch.files import config_files
from llmb_tui.launch.naming import check_pattern, container, experiment_name, image_path, nemo_run_name
from llmb_tui.launch.settings import ResolvedSettings, refuse_errors, resolve_settings, vboost_difference
from llmb_tui.launch.spec import LaunchSpec
from llmb_tui.request import RunRequest

# The binding is tried first, because a refused binding ends the job: the NUMA node or numactl may be missing.
_BIND = """\
bind="numactl --cpunodebind=$((SLURM_LOCALID/{0})) --membind=$((SLURM_LOCALID/{0}))"; \
if $bind true; then exec $bind "$@"; fi; \
echo "task $SLURM_PROCID is not bound to a NUMA node" >&2; exec "$@\""""
_BELOW = re.compile(r"[\w+@=-][\w./+@=-]*")
_TIME_LIMIT = re.compile(r"(\d+-)?\d+:\d\d:\d\d", re.ASCII)
_PARTITION = re.compile(f"({NAMES.pattern})?", re.ASCII)
_GPU_REQUEST = re.compile(f"none|(gres|gpus-per-node)(:{GPU_TYPE.pattern})?", re.ASCII)


def launch_spec(request: RunRequest, run_id: str, slurm: Version | None = None) -> LaunchSpec:
    """Make the complete spec of the job. `slurm` is the cluster's version; None if unknown.

    Raises LlmbError (exit code 1) if the plan cannot be launched, or a value is invalid in a batch script.
    """
    recipe, plan, profile = request.recipe, request.plan, request.slurm
    refuse_errors("This plan cannot be launched.", plan.problems)
    install = profile.install_dir.rstrip("/")
    experiment = experiment_name(request) + suffix(plan.options, profile)
    task = f"{experiment}_{run_id}"
    experiment_dir = f"{install}/workloads/pretrain_{recipe.workload}/experiments/{experiment}/{task}"
    settings = resolve_settings(request)
    additional = additions(plan.options, install, f"{experiment_dir}/{task}")
    recipe_env, profile_env = settings.env | additional.env, dict(profile.env)
    overridden = tuple((n, v, profile_env[n]) for n, v in recipe_env.items() if profile_env.get(n, v) != v)
    options, no_segment = _with_segment(_with_dependency(request), plan.nodes, settings, slurm)
    placement = (*filter(None, [no_segment]), *_placement(settings, profile))
    network = keeps_network(plan, recipe_env | profile_env)
    network_notes = (NETWORK_NOTE,) if network else ()
    network_files = ((NETWORK_README, "What NCCL writes about the network, by host and process.\n"),) if network else ()
    return checked(
        LaunchSpec(
            run_id=run_id,
            experiment=experiment,
            task=task,
            experiment_dir=experiment_dir,
            task_dir=f"{experiment_dir}/{task}",
            job_name=nemo_run_name(profile.account, task),
            account=profile.account,
            partition=profile.partition,
            nodes=plan.nodes,
            tasks_per_node=plan.gpus_per_node,
            gpu_request=profile.typed_gpu_request,
            time_limit=plan.time_limit,
            memory=profile.memory,
            container_image=image_path(install, container(plan)),
            mounts=(*profile.mounts, *additional.mounts),
            env=tuple((recipe_env | profile_env).items()),
            command=_command(request, settings, network=network),
            files=(*config_files(request, settings), *output_files(settings.prefix), *network_files),
            copies=((entry_path(install), "code/pretrain.py"),) if recipe.launch.by_entry_script else (),
            links=additional.links,
            folders=additional.folders,
            srun=_flags(settings.srun | _pinning(profile) | ({"mpi": profile.mpi} if profile.mpi else {})),
            vboost=profile.vboost,
            options=options,
            overridden=overridden,
            notes=(*settings.differs, *placement, *network_notes, *_further_notes(settings, profile)),
            otherwise=(
                *vboost_difference(request, vboost=profile.vboost),
                *(f"{text[0].lower()}{text[1:]}" for text in placement),
                *network_notes,
                *(f"{name} from the cluster's profile" for name, _, _ in overridden),
            ),
        )
    )


def _with_dependency(request: RunRequest) -> tuple[Option, ...]:
    """Options for sbatch: the profile's, and the request's dependency; Slurm cancels a job that can never start."""
    options = sbatch_options(request.slurm)
    waits = (("dependency", request.dependency), ("kill-on-invalid-dep", "yes"))
    return (*options, *waits) if request.dependency else options


def _command(request: RunRequest, settings: ResolvedSettings, *, network: bool) -> tuple[str, ...]:
    recipe = request.recipe
    training = _NEMO2_COMMAND if recipe.launch.by_entry_script else recipe.launch.command + settings.overrides
    training = with_network_lines(training) if network else training
    return settings.prefix + bound(training, settings, request.slurm)


def _flags(options: dict[str, str | bool]) -> tuple[tuple[str, str | None], ...]:
    return tuple((name, None if value is True else str(value)) for name, value in options.items() if value is not False)


def bound(command: tuple[str, ...], settings: ResolvedSettings, profile: SlurmProfile) -> tuple[str, ...]:
    """The command, bound to one NUMA node's processor and memory if the recipe and the cluster's profile ask for it."""
    if settings.tasks_per_numa_node is None or not profile.numa_binding or profile.cpus_per_task:
        return command
    return ("bash", "-c", _BIND.format(settings.tasks_per_numa_node), "bash", *command)


def _pinning(profile: SlurmProfile) -> dict[str, str | bool]:
    """Options for srun that pin each task to its own CPUs, as the recipes' `CPU_PER_TASK_PINNING` does."""
    if not profile.cpus_per_task:
        return {}
    return {
        "cpu-bind": "verbose",
        "cpus-per-task": str(profile.cpus_per_task),
        "hint": "multithread",
        "distribution": "*:block",
    }


def wants_segment(options: tuple[Option, ...], settings: ResolvedSettings) -> bool:
    """True if the recipe has a segment and the cluster's profile does not."""
    return settings.segment is not None and all(name != "segment" for name, _ in options)


def _with_segment(
    options: tuple[Option, ...], nodes: int, settings: ResolvedSettings, slurm: Version | None
) -> tuple[tuple[Option, ...], str]:
    """Options for sbatch with the recipe's segment if the profile has none; and why the segment is left out."""
    if settings.segment is None or not wants_segment(options, settings):
        return options, ""
    size = next(size for size in range(settings.segment, 0, -1) if nodes % size == 0)
    if slurm is not None and slurm >= SEGMENT_SINCE:
        return (*options, ("segment", str(size))), ""
    return options, f"No --segment={size}: Slurm {'unknown' if slurm is None else '{}.{:02}'.format(*slurm)}"


def _placement(settings: ResolvedSettings, profile: SlurmProfile) -> Iterator[str]:
    """Deviations from the recipe's placement of tasks on a node."""
    if settings.tasks_per_numa_node is not None and profile.cpus_per_task:
        yield f"{profile.cpus_per_task} CPUs a task, no NUMA binding"
    elif settings.tasks_per_numa_node is not None and not profile.numa_binding:
        yield "No NUMA binding"
    elif profile.cpus_per_task:
        yield f"{profile.cpus_per_task} CPUs a task"


def _further_notes(settings: ResolvedSettings, profile: SlurmProfile) -> Iterator[str]:
    if profile.mpi not in (None, settings.srun.get("mpi")):
        yield f"srun --mpi={profile.mpi}"
    if not is_all_memory(profile.memory):
        yield f"{profile.memory} memory, not all of it"
    if profile.vboost:
        yield "vboost first, by sudo"


def checked(spec: LaunchSpec) -> LaunchSpec:
    """Return the spec unchanged. Raises LlmbError (exit code 1) for a value that is invalid in a batch script."""
    for name in ("run_id", "experiment", "task", "job_name", "account"):
        check_pattern(NAME, getattr(spec, name), name)
    check_pattern(_PARTITION, spec.partition, "partition")
    check_pattern(_GPU_REQUEST, spec.gpu_request, "GPU request")
    check_pattern(_TIME_LIMIT, spec.time_limit, "time limit")
    check_pattern(MEMORY, spec.memory, "memory")
    for name in ("experiment_dir", "task_dir", "container_image"):
        check_pattern(PATH, getattr(spec, name), name)
    for mount in spec.mounts:
        split_mount(mount)
    for program, options in (("sbatch", spec.options), ("srun", spec.srun)):
        for name, value in options:
            if not is_option(name, value):
                raise LlmbError(f"{clean_line(name)!r} cannot be an {program} option of the run.", exit_code=1)
    for path in (*spec.folders, *(source for source, _ in spec.copies), *(f"/{source}" for source, _ in spec.links)):
        check_pattern(PATH, path, "path on the cluster")
    for below in (*(below for below, _ in spec.files), *(below for _, below in (*spec.copies, *spec.links))):
        check_pattern(_BELOW, below, "path in the run's folder")
    for name, value in spec.env:
        check_pattern(ENV_NAME, name, "name of an environment variable")
        one_line(value, name)
    for argument in spec.command:
        one_line(argument, "argument of the command")
    if min(spec.nodes, spec.tasks_per_node) < 1 or len(spec.command) < 2:
        raise LlmbError("The job lacks nodes, tasks or a program to run.", exit_code=1)
    return spec


_NEMO2_COMMAND = ("python", f"{RUN_FOLDER}/code/pretrain.py", f"{RUN_FOLDER}/configs/launch.json")
