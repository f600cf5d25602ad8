"""`launch_spec`: what a plan becomes on one cluster: names, paths, environment, command, files. Pure.

Names and layout are those of the recipes, so that their own tools find our runs. NeMo-Run writes most values into the
script as they are, therefore every one of them is checked here for the characters it may consist of.
"""

from __future__ import annotations

import json
import re
import secrets
import time

from llmb_tui.catalog.catalog import release_order
from llmb_tui.catalog.recipe import Recipe
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.profile_check import split_mount
from llmb_tui.cluster.quoting import one_line
from llmb_tui.cluster.slurm.params import is_option, sbatch_options
from llmb_tui.cluster.words import ENV_NAME, NAME, NAMES, PATH, fits
from llmb_tui.errors import Trouble
from llmb_tui.launch.entry import entry_path
from llmb_tui.launch.spec import LaunchSpec
from llmb_tui.plan.document import document
from llmb_tui.plan.plan import Plan
from llmb_tui.text import clean_line

# No letter or digit that is easily taken for another: a person types run ids.
_SUFFIX_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
_LONG_NAMES_SINCE = (25, 8)
_CURRENT_SCALING_SINCE = (25, 12)

_BELOW = re.compile(r"[\w+@=-][\w./+@=-]*")
_TIME_LIMIT = re.compile(r"(\d+-)?\d+:\d\d:\d\d", re.ASCII)
_GPU_REQUESTS = ("gres", "gpus-per-node", "none")


def new_run_id(now: float) -> str:
    """A new id: the UTC time of `now` (Unix seconds) to the second, and four random letters or digits."""
    return time.strftime("%y%m%d%H%M%S", time.gmtime(now)) + "".join(secrets.choice(_SUFFIX_LETTERS) for _ in range(4))


def launch_spec(recipe: Recipe, plan: Plan, profile: ClusterProfile, run_id: str) -> LaunchSpec:
    """Everything that the job of `plan` on `profile` is made of.

    Raises Trouble (exit code 1) when the plan cannot be launched, or a value does not fit into a batch script.
    """
    errors = [problem for problem in plan.problems if problem.severity == "error"]
    if errors:
        raise Trouble("This plan cannot be launched.", errors[0].reason, errors[0].fix, exit_code=1)
    install = profile.install_dir.rstrip("/")
    experiment = experiment_name(recipe, plan)
    task = f"{experiment}_{run_id}"
    experiment_dir = f"{install}/workloads/pretrain_{recipe.workload}/experiments/{experiment}/{task}"
    is_nemo2 = recipe.launch.kind == "nemo2"
    own_mounts = () if is_nemo2 else (f"{install}/cfg:/cfg", f"{dataset_dir(recipe, install)}:/dataset")
    env, further = _environment(recipe, plan), dict(profile.env)
    return checked(
        LaunchSpec(
            run_id=run_id,
            experiment=experiment,
            task=task,
            experiment_dir=experiment_dir,
            task_dir=f"{experiment_dir}/{task}",
            job_name=f"{profile.account}-{profile.account.split('_')[-1]}.{task}",
            account=profile.account,
            partition=profile.partition,
            nodes=plan.nodes,
            tasks_per_node=plan.gpus_per_node,
            gpu_request=profile.gpu_request,
            time_limit=plan.time_limit,
            container_image=image_path(install, container(plan)),
            mounts=(*own_mounts, *profile.mounts),
            env=tuple((env | further).items()),
            command=_NEMO2_COMMAND if is_nemo2 else _hydra_command(recipe, plan),
            files=_files(recipe, plan),
            copies=((entry_path(install), "code/pretrain.py"),) if is_nemo2 else (),
            options=sbatch_options(profile),
            overridden=tuple((n, env[n], further[n]) for n in env if further.get(n, env[n]) != env[n]),
        )
    )


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


def dataset_dir(recipe: Recipe, install_dir: str) -> str:
    """Where a Hydra recipe looks for tokenizer files: `/dataset` in the container."""
    return f"{install_dir.rstrip('/')}/datasets/{recipe.workload}"


def checked(spec: LaunchSpec) -> LaunchSpec:
    """The same spec. Raises Trouble (exit code 1) for a value that a batch script must not hold."""
    for name in ("run_id", "experiment", "task", "job_name", "account"):
        _fits(NAME, getattr(spec, name), name)
    _fits(NAMES, spec.partition, "partition")
    _fits(_TIME_LIMIT, spec.time_limit, "time limit")
    for name in ("experiment_dir", "task_dir", "container_image"):
        _fits(PATH, getattr(spec, name), name)
    for mount in spec.mounts:
        split_mount(mount)
    for name, value in spec.options:
        if not is_option(name, value):
            raise Trouble(f"{clean_line(name)!r} cannot be an sbatch option of the run.", exit_code=1)
    for source, below in spec.copies:
        _fits(PATH, source, "path of an installed file")
        _fits(_BELOW, below, "path in the run's folder")
    for below, _ in spec.files:
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


_NEMO2_COMMAND = ("python", "/nemo_run/code/pretrain.py", "/nemo_run/configs/launch.json")


def _hydra_command(recipe: Recipe, plan: Plan) -> tuple[str, ...]:
    values = _placeholders(plan)
    return recipe.launch.command + tuple(override.format_map(values) for override in recipe.launch.overrides)


def _placeholders(plan: Plan) -> dict[str, str]:
    """What the placeholders of an override stand for, as Hydra reads it; the names are `recipe.PLACEHOLDERS`."""
    p = plan.parallelism
    names = ("tp", "pp", "cp", "ep", "vp", "mbs", "gbs", "seq_len", "layers")
    values: dict[str, int | str | bool | None] = {name: getattr(p, name) for name in names}
    values |= {"mp": p.tp * p.pp, "pipelined": p.pp > 1}
    values |= {"dtype": plan.selection.dtype, "fp8": plan.selection.dtype == "fp8"}
    values |= {"nodes": plan.nodes, "gpus_per_node": plan.gpus_per_node, "steps": plan.steps}
    values |= {"results_dir": "/nemo_run/results"}
    return {name: "null" if value is None else str(value) for name, value in values.items()}


def _environment(recipe: Recipe, plan: Plan) -> dict[str, str]:
    """The preset's environment, and below it what NeMo's own launcher sets by the parallelism."""
    p = plan.parallelism
    by_parallelism = {}
    if recipe.launch.kind == "nemo2" and (p.tp > 1 or p.cp > 1):
        by_parallelism["CUDA_DEVICE_MAX_CONNECTIONS"] = "1"
    if recipe.launch.kind == "nemo2" and p.pp > 1:
        by_parallelism["NCCL_P2P_NET_CHUNKSIZE"] = "2097152"
    return by_parallelism | recipe.launch.env | recipe.launch.gpu_env.get(plan.selection.gpu, {})


def _files(recipe: Recipe, plan: Plan) -> tuple[tuple[str, str], ...]:
    plan_json = ("configs/plan.json", _json(document(plan) | {"steps": plan.steps}))
    if recipe.launch.kind == "hydra":
        return (plan_json, ("results/index_mapping/README", "NeMo keeps the index of its data here.\n"))
    p, size = plan.parallelism, plan.selection.size
    launch = {
        "module": recipe.launch.modules[size],
        "dtype": plan.selection.dtype,
        "fp8_scaling": "current" if release_order(recipe.release) >= _CURRENT_SCALING_SINCE else "delayed",
        "vocab": recipe.models[size].vocab,
        "embedding_in_pipeline": recipe.models[size].stage_extra_layers > 0,
        "nodes": plan.nodes,
        "gpus_per_node": plan.gpus_per_node,
        "steps": plan.steps,
        **{name: getattr(p, name) for name in ("tp", "pp", "cp", "ep", "vp", "mbs", "gbs", "seq_len", "layers")},
    }
    return (plan_json, ("configs/launch.json", _json(launch)))


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
