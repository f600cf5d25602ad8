"""`launch_spec`: what a plan becomes on one cluster: names, paths, environment, command, files. Pure.

Names and layout are those of the recipes, so that their own tools find our runs. NeMo-Run writes most values into the
script as they are, therefore every one of them is checked here for the characters it may consist of.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterable

from llmb_tui.catalog.catalog import release_order
from llmb_tui.catalog.recipe import Recipe
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.profile_check import split_mount
from llmb_tui.cluster.quoting import one_line
from llmb_tui.cluster.slurm.params import is_option, sbatch_options
from llmb_tui.cluster.slurm.version import Version
from llmb_tui.cluster.words import ENV_NAME, MEMORY, NAME, NAMES, PATH, fits
from llmb_tui.errors import Trouble
from llmb_tui.launch.additions import RUN_FOLDER, additions, output_files, suffix
from llmb_tui.launch.configs import config_files
from llmb_tui.launch.entry import entry_path
from llmb_tui.launch.placement import bound, pinning, placement_notes, segmented
from llmb_tui.launch.settings import Applied, applied
from llmb_tui.launch.spec import LaunchSpec
from llmb_tui.plan.plan import Plan, Problem
from llmb_tui.text import clean_line

# No letter or digit that is easily taken for another: a person types run ids.
_SUFFIX_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
_LONG_NAMES_SINCE = (25, 8)

_BELOW = re.compile(r"[\w+@=-][\w./+@=-]*")
_TIME_LIMIT = re.compile(r"(\d+-)?\d+:\d\d:\d\d", re.ASCII)
_GPU_REQUESTS = ("gres", "gpus-per-node", "none")


def new_run_id(now: float) -> str:
    """A new id: the UTC time of `now` (Unix seconds) to the second, and four random letters or digits."""
    return time.strftime("%y%m%d%H%M%S", time.gmtime(now)) + "".join(secrets.choice(_SUFFIX_LETTERS) for _ in range(4))


def launch_spec(
    recipe: Recipe, plan: Plan, profile: ClusterProfile, run_id: str, slurm: Version | None = None
) -> LaunchSpec:
    """Everything that the job of `plan` on `profile` is made of. `slurm` is the cluster's version; None: not known.

    Raises Trouble (exit code 1) when the plan cannot be launched, or a value does not fit into a batch script.
    """
    refuse_errors("This plan cannot be launched.", plan.problems)
    install = profile.install_dir.rstrip("/")
    experiment = experiment_name(recipe, plan) + suffix(plan.options, profile)
    task = f"{experiment}_{run_id}"
    experiment_dir = f"{install}/workloads/pretrain_{recipe.workload}/experiments/{experiment}/{task}"
    settings = applied(recipe, plan)
    added = additions(plan.options, install, f"{experiment_dir}/{task}")
    recipes, theirs = settings.env | added.env, dict(profile.env)
    options, no_segment = segmented(sbatch_options(profile), plan.nodes, settings, slurm)
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
            gpu_request=profile.gpu_request,
            time_limit=plan.time_limit,
            memory=profile.memory,
            container_image=image_path(install, container(plan)),
            mounts=(*profile.mounts, *added.mounts),
            env=tuple((recipes | theirs).items()),
            command=_command(recipe, settings, profile),
            files=(*config_files(recipe, plan, settings), *output_files(settings.prefix)),
            copies=((entry_path(install), "code/pretrain.py"),) if recipe.launch.kind == "nemo2" else (),
            links=added.links,
            folders=added.folders,
            srun=_flags(settings.srun | pinning(profile)),
            vboost=profile.vboost,
            options=options,
            overridden=tuple((n, v, theirs[n]) for n, v in recipes.items() if theirs.get(n, v) != v),
            notes=(*settings.differs, *filter(None, [no_segment]), *placement_notes(settings, profile)),
        )
    )


def refuse_errors(what: str, problems: Iterable[Problem]) -> None:
    """Raise Trouble (exit code 1), which says `what`, for the first problem that is an error."""
    error = next((problem for problem in problems if problem.severity == "error"), None)
    if error:
        raise Trouble(what, error.reason, error.fix, exit_code=1)


def nemo_run_name(account: str, task: str) -> str:
    """The name in Slurm that NeMo-Run gives to a task's job."""
    return f"{account}-{account.rsplit('_', maxsplit=1)[-1]}.{task}"


def _command(recipe: Recipe, settings: Applied, profile: ClusterProfile) -> tuple[str, ...]:
    training = _NEMO2_COMMAND if recipe.launch.kind == "nemo2" else recipe.launch.command + settings.overrides
    return settings.prefix + bound(training, settings, profile)


def _flags(options: dict[str, str | bool]) -> tuple[tuple[str, str | None], ...]:
    return tuple((name, None if value is True else str(value)) for name, value in options.items() if value is not False)


def experiment_name(recipe: Recipe, plan: Plan) -> str:
    """The recipe's own experiment name: short up to 25.04, with the whole layout from 25.08 on."""
    selection, p = plan.selection, plan.parallelism
    family = recipe.workload.removesuffix(f"-{selection.size}")
    base = f"pretrain_{family}_{selection.size}_{selection.dtype}"
    if release_order(recipe.release) < _LONG_NAMES_SINCE:
        return f"{base}_{selection.scale}"
    vp = "" if p.vp is None else f"_vp{p.vp}"
    return f"{base}_gpus{selection.scale}_tp{p.tp}_pp{p.pp}_cp{p.cp}{vp}_mbs{p.mbs}_gbs{p.gbs}"


def container(plan: Plan) -> str:
    """The plan's image reference, such as `nvidia/nemo:25.02.01`. Raises Trouble when the plan has none."""
    if plan.container is None:
        raise Trouble("No container image is known for this plan.", fix="Choose a GPU type of the recipe.", exit_code=1)
    return plan.container


def image_path(install_dir: str, reference: str) -> str:
    """Path of an imported image, named as the recipes name it: `images/nvidia+nemo+25.02.01.sqsh`."""
    return f"{install_dir.rstrip('/')}/images/{reference.replace('/', '+').replace(':', '+')}.sqsh"


def checked(spec: LaunchSpec) -> LaunchSpec:
    """The same spec. Raises Trouble (exit code 1) for a value that a batch script must not hold."""
    for name in ("run_id", "experiment", "task", "job_name", "account"):
        _fits(NAME, getattr(spec, name), name)
    _fits(NAMES, spec.partition, "partition")
    _fits(_TIME_LIMIT, spec.time_limit, "time limit")
    _fits(MEMORY, spec.memory, "memory")
    for name in ("experiment_dir", "task_dir", "container_image"):
        _fits(PATH, getattr(spec, name), name)
    for mount in spec.mounts:
        split_mount(mount)
    for program, options in (("sbatch", spec.options), ("srun", spec.srun)):
        for name, value in options:
            if not is_option(name, value):
                raise Trouble(f"{clean_line(name)!r} cannot be an {program} option of the run.", exit_code=1)
    for path in (*spec.folders, *(source for source, _ in spec.copies), *(f"/{source}" for source, _ in spec.links)):
        _fits(PATH, path, "path on the cluster")
    for below in (*(below for below, _ in spec.files), *(below for _, below in (*spec.copies, *spec.links))):
        _fits(_BELOW, below, "path in the run's folder")
    for name, value in spec.env:
        _fits(ENV_NAME, name, "name of an environment variable")
        one_line(value, name)
    for argument in spec.command:
        one_line(argument, "argument of the command")
    if min(spec.nodes, spec.tasks_per_node) < 1 or len(spec.command) < 2 or spec.gpu_request not in _GPU_REQUESTS:
        raise Trouble("The job has no nodes, no tasks, no program to run or an unknown GPU request.", exit_code=1)
    return spec


def _fits(pattern: re.Pattern[str], value: str, what: str) -> None:
    if not fits(pattern, value):
        raise Trouble(
            f"{clean_line(value)!r} cannot be used as {what.replace('_', ' ')}.",
            "A batch script takes letters, digits and . _ + @ = - there, and / in paths.",
            "Change it in the cluster's profile or in the selection.",
            exit_code=1,
        )


_NEMO2_COMMAND = ("python", f"{RUN_FOLDER}/code/pretrain.py", f"{RUN_FOLDER}/configs/launch.json")
