"""What the published procedure cannot do of what a selection and a cluster's profile ask for. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

from llmb_tui.catalog.published import Published
from llmb_tui.catalog.recipe import Recipe
from llmb_tui.catalog.settings import Values, holds
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.slurm.params import Option, sbatch_options
from llmb_tui.launch.published.paths import procedure_of
from llmb_tui.launch.settings import applied
from llmb_tui.plan.base import base_of
from llmb_tui.plan.options import ends_run
from llmb_tui.plan.plan import Plan, Problem

SBATCH_VARIABLES = {
    "acctg-freq": "SBATCH_ACCTG_FREQ",
    "constraint": "SBATCH_CONSTRAINT",
    "core-spec": "SBATCH_CORE_SPEC",
    "gpu-bind": "SBATCH_GPU_BIND",
    "gpu-freq": "SBATCH_GPU_FREQ",
    "gpus-per-node": "SBATCH_GPUS_PER_NODE",
    "gres": "SBATCH_GRES",
    "hint": "SBATCH_HINT",
    "mem": "SBATCH_MEM_PER_NODE",
    "network": "SBATCH_NETWORK",
    "profile": "SBATCH_PROFILE",
    "qos": "SBATCH_QOS",
    "reservation": "SBATCH_RESERVATION",
    "segment": "SBATCH_SEGMENT_SIZE",
    "signal": "SBATCH_SIGNAL",
    "switches": "SBATCH_REQ_SWITCH",
    "thread-spec": "SBATCH_THREAD_SPEC",
    "threads-per-core": "SBATCH_THREADS_PER_CORE",
    "time": "SBATCH_TIMELIMIT",
    "wckey": "SBATCH_WCKEY",
}
"""Options with a value that sbatch also takes from its environment, where they come before those of the script
(sbatch(1), Input environment variables): the only way to one where NeMo-Run writes the script and calls sbatch."""

_SEGMENT_VARIABLE_SINCE = "25.05.1"  # Slurm's list of changes, CHANGELOG/slurm-25.05.md
_ELSE_DIRECT = "or choose the direct procedure"
_LAYOUT = ("tp", "pp", "cp", "ep", "vp", "mbs", "seq_len", "layers")


def given(recipe: Recipe, plan: Plan, profile: ClusterProfile) -> Mapping[str, object]:
    """What the selection and the profile say, and the recipe does not by itself, by the names of `GIVEN`."""
    asked = plan.selection
    base = base_of(recipe, asked.size, asked.gpu, asked.dtype, asked.strong_scaling)
    row = base.row_for(asked.scale)
    own = {name: getattr(row, name) or 1 for name in _LAYOUT}
    own |= {"gbs": base.gbs_for(asked.scale), "steps": recipe.launch.steps, "time_limit": None}
    says: dict[str, object] = {**asked.overrides.given(), "steps": asked.steps, "time_limit": asked.time_limit}
    found = {name: value for name, value in says.items() if value is not None and value != own[name]}
    return found | {name: value for name in ("cpus_per_task", "vboost", "mounts") if (value := getattr(profile, name))}


def without_variable(options: tuple[Option, ...]) -> tuple[str, ...]:
    """The options of sbatch that its environment cannot give."""
    return tuple(name for name, value in options if value is None or name not in SBATCH_VARIABLES)


def problems_of(
    recipe: Recipe, plan: Plan, profile: ClusterProfile, read: Set[str], values: Values
) -> Iterator[Problem]:
    """Everything that would be otherwise than asked for, and what is known to go wrong.

    `read` are the values of the variables that the launch script takes for this plan, such as `{tp}`; `values` what the
    procedure's placeholders stand for.
    """
    procedure, says = procedure_of(recipe), given(recipe, plan, profile)
    yield from _layout(procedure, says, read)
    yield from _steps(recipe, plan, says, read)
    yield from _options(procedure, plan, str(values["root"]))
    yield from _profile(procedure, profile, says, read)
    yield from _training(recipe, procedure, plan, profile)
    yield from _flaws(procedure, values)
    if procedure.launch.how == "bash":
        yield from _slurm(profile)


def _layout(procedure: Published, says: Mapping[str, object], read: Set[str]) -> Iterator[Problem]:
    for name in (*_LAYOUT, "gbs"):
        if name in says and f"{{{name}}}" not in read:
            reason = (
                f"{procedure.launch.script} takes no {name.upper()} at this scale, so it would not be {says[name]}."
            )
            yield Problem(name, "error", reason, f"Leave {name.upper()} as the recipe has it, {_ELSE_DIRECT}.")


def _steps(recipe: Recipe, plan: Plan, says: Mapping[str, object], read: Set[str]) -> Iterator[Problem]:
    options = plan.options
    fixed = options.nccl_trace or options.load_checkpoint or (options.profile and ends_run(recipe))
    if "steps" in says and "{steps}" not in read and not fixed:
        reason = f"{procedure_of(recipe).launch.script} takes no number of steps, so it would not be {says['steps']}."
        yield Problem("steps", "error", reason, f"Give no number of steps, {_ELSE_DIRECT}.")


def _options(procedure: Published, plan: Plan, root: str) -> Iterator[Problem]:
    options, launch = plan.selection.options, procedure.launch
    if options.hub_tokenizer and "hub_tokenizer" not in launch.always:
        reason = f"{launch.script} has no way to take the model's own tokenizer."
        yield Problem("hub_tokenizer", "error", reason, f"Leave it out, {_ELSE_DIRECT}.")
    checkpoint = options.load_checkpoint
    if checkpoint and launch.checkpoints_below and not checkpoint.startswith(f"{root}/"):
        reason = f"The container sees nothing but {root}, and the checkpoint is not below that."
        yield Problem("load_checkpoint", "error", reason, f"Move it there, {_ELSE_DIRECT}.")


def _profile(
    procedure: Published, profile: ClusterProfile, says: Mapping[str, object], read: Set[str]
) -> Iterator[Problem]:
    """What a profile has fields for, and the launch script no variable."""
    script, always = procedure.launch.script, procedure.launch.always
    leave = f"Take it out of the cluster's profile, {_ELSE_DIRECT}."
    if "mounts" in says and "{mounts}" not in read:
        yield Problem("mounts", "error", f"{script} takes no further mounts.", leave)
    if "cpus_per_task" in says and "{cpus_per_task}" not in read:
        reason = f"{script} pins no task to CPUs, so {profile.cpus_per_task} CPUs per task are not asked for."
        yield Problem("cpus_per_task", "warning", reason, leave)
    if "vboost" in says and "{vboost}" not in read and "vboost" not in always:
        yield Problem("vboost", "warning", f"{script} gives the tensor cores no more power.", leave)


def _training(recipe: Recipe, procedure: Published, plan: Plan, profile: ClusterProfile) -> Iterator[Problem]:
    """What the procedure sets for the training, whatever the profile says."""
    launch, settings = procedure.launch, applied(recipe, plan)
    if settings.tasks_per_numa_node and not profile.numa_binding:
        reason = "Tasks are bound to NUMA nodes whatever the cluster's profile says, and end where there are none."
        yield Problem("numa_binding", "warning", reason, "Choose the direct procedure if that is not right here.")
    own = {name for group in launch.variables for name in group.values} | {*launch.clear, procedure.root_variable}
    for name, value in profile.env:
        if name in own or settings.env.get(name, value) != value:
            reason = f"{name} is not {value}, as the cluster's profile says: the procedure sets it itself."
            fix = f"Take it out of the cluster's profile, {_ELSE_DIRECT}."
            yield Problem(f"env.{name}", "warning", reason, fix)


def _flaws(procedure: Published, values: Values) -> Iterator[Problem]:
    """What goes wrong in the procedure itself."""
    for flaw in procedure.launch.flaws:
        if all(holds(condition, values) for condition in flaw.when):
            yield Problem("procedure", "warning", flaw.reason, flaw.fix)


def _slurm(profile: ClusterProfile) -> Iterator[Problem]:
    """What NeMo-Run's own call of sbatch leaves out."""
    for name in without_variable(sbatch_options(profile)):
        reason = f"NeMo-Run calls sbatch itself, and sbatch does not take --{name} from its environment."
        fix = f"Take it out of the cluster's profile, {_ELSE_DIRECT}."
        yield Problem(name if hasattr(profile, name) else "slurm_params", "error", reason, fix)
    if profile.segment is not None:
        variable, fix = SBATCH_VARIABLES["segment"], f"Take it out of the cluster's profile, {_ELSE_DIRECT}."
        reason = f"Segments are asked for with {variable}, which Slurm reads since {_SEGMENT_VARIABLE_SINCE} only."
        yield Problem("segment", "warning", reason, fix)
