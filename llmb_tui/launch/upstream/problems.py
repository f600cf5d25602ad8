"""`problems_of`: parts of a selection and a cluster's profile that NVIDIA's scripts cannot apply. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

from llmb_tui.catalog.settings import Values, holds
from llmb_tui.catalog.upstream import UpstreamScripts
from llmb_tui.cluster.slurm.params import sbatch_options
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.launch.settings import resolve_settings
from llmb_tui.launch.upstream.paths import scripts_of
from llmb_tui.plan.options import ends_run
from llmb_tui.plan.plan import Plan, Problem
from llmb_tui.plan.resolved import scale_rows
from llmb_tui.plan.selection import LAYOUT
from llmb_tui.request import RunRequest

_DERIVED_VARIABLES = (
    "acctg-freq constraint core-spec gpu-bind gpu-freq gpus-per-node gres hint network profile qos reservation signal "
    "thread-spec threads-per-core wckey"
)
SBATCH_VARIABLES = {
    **{name: f"SBATCH_{name.replace('-', '_').upper()}" for name in _DERIVED_VARIABLES.split()},
    "mem": "SBATCH_MEM_PER_NODE",
    "segment": "SBATCH_SEGMENT_SIZE",
    "switches": "SBATCH_REQ_SWITCH",
    "time": "SBATCH_TIMELIMIT",
}
"""Options with a value that sbatch also reads from its environment, which overrides the script's options (sbatch(1),
Input environment variables): the only way to set one if NeMo-Run writes the script and calls sbatch."""

_SEGMENT_VARIABLE_SINCE = "25.05.1"  # Slurm's list of changes, CHANGELOG/slurm-25.05.md
_ELSE_DIRECT = "or choose our script"
_REMOVE = f"Remove it from the cluster's profile, {_ELSE_DIRECT}."


def deviations(request: RunRequest) -> Mapping[str, object]:
    """Values of the selection and the profile that differ from the recipe's defaults, by the names of `GIVEN`."""
    recipe, selection = request.recipe, request.plan.selection
    base = scale_rows(recipe, selection.size, selection.gpu, selection.dtype, selection.strong_scaling)
    row = base.row_for(selection.scale)
    by_default = {field.name: getattr(row, field.name) or 1 for field in LAYOUT}
    by_default |= {"gbs": base.gbs_for(selection.scale), "steps": recipe.launch.steps, "time_limit": None}
    explicit: dict[str, object] = dict(selection.overrides.set_fields())
    explicit |= {"steps": selection.steps, "time_limit": selection.time_limit}
    changes = {name: value for name, value in explicit.items() if value is not None and value != by_default[name]}
    return changes | {
        name: value for name in ("cpus_per_task", "vboost", "mounts") if (value := getattr(request.slurm, name))
    }


def problems_of(request: RunRequest, placeholders: Set[str], values: Values) -> Iterator[Problem]:
    """Deviations from the request, and known faults.

    `placeholders` are those that the launch script's variables accept for this plan, such as `{tp}`; `values` are the
    values of the procedure's placeholders.
    """
    procedure, profile = scripts_of(request.recipe), request.slurm
    ignored = {name: value for name, value in deviations(request).items() if f"{{{name}}}" not in placeholders}
    yield from _layout(procedure, ignored)
    yield from _steps(request, ignored)
    yield from _options(procedure, request.plan, str(values["root"]))
    yield from _profile(procedure, profile, ignored)
    yield from _training(request)
    for flaw in procedure.launch.flaws:
        if all(holds(condition, values) for condition in flaw.when):
            yield Problem("procedure", "warning", flaw.reason, flaw.fix)
    if procedure.launch.how == "bash":
        yield from _slurm(profile)


def _layout(procedure: UpstreamScripts, ignored: Mapping[str, object]) -> Iterator[Problem]:
    for name in (field.name for field in LAYOUT):
        if name in ignored:
            script, value = procedure.launch.script, ignored[name]
            reason = f"{script} cannot set {name.upper()} at this scale, so it would not be {value}."
            yield Problem(name, "error", reason, f"Use the recipe's {name.upper()}, {_ELSE_DIRECT}.")


def _steps(request: RunRequest, ignored: Mapping[str, object]) -> Iterator[Problem]:
    options = request.plan.options
    fixed = options.nccl_trace or options.load_checkpoint or (options.profile and ends_run(request.recipe))
    if "steps" in ignored and not fixed:
        script = scripts_of(request.recipe).launch.script
        reason = f"{script} cannot set the number of steps, so it would not be {ignored['steps']}."
        yield Problem("steps", "error", reason, f"Leave the number of steps empty, {_ELSE_DIRECT}.")


def _options(procedure: UpstreamScripts, plan: Plan, root: str) -> Iterator[Problem]:
    options, launch = plan.selection.options, procedure.launch
    if options.hub_tokenizer and "hub_tokenizer" not in launch.always:
        reason = f"{launch.script} cannot use the model's own tokenizer."
        yield Problem("hub_tokenizer", "error", reason, f"Switch this option off, {_ELSE_DIRECT}.")
    checkpoint = options.load_checkpoint
    if checkpoint and launch.checkpoints_below and not checkpoint.startswith(f"{root}/"):
        reason = f"The container can access only {root}, and the checkpoint is not below it."
        yield Problem("load_checkpoint", "error", reason, f"Move the checkpoint there, {_ELSE_DIRECT}.")


def _profile(procedure: UpstreamScripts, profile: SlurmProfile, ignored: Mapping[str, object]) -> Iterator[Problem]:
    """Fields of the profile for which the launch script has no variable."""
    script, always = procedure.launch.script, procedure.launch.always
    if profile.mpi is not None:
        reason = f"{script} starts its ranks with --mpi=pmix, so it cannot use {profile.mpi}."
        yield Problem("mpi", "error", reason, _REMOVE)
    if not profile.partition and "{partition}" in _variables(procedure):
        reason = "NVIDIA's scripts name a partition in every job, and the cluster's profile has none."
        yield Problem("partition", "error", reason, f"Name a partition in the cluster's profile, {_ELSE_DIRECT}.")
    if "mounts" in ignored:
        yield Problem("mounts", "error", f"{script} cannot add mounts.", _REMOVE)
    if "cpus_per_task" in ignored:
        reason = f"{script} cannot pin tasks to CPUs, so {profile.cpus_per_task} CPUs per task are not requested."
        yield Problem("cpus_per_task", "warning", reason, _REMOVE)
    if "vboost" in ignored and "vboost" not in always:
        yield Problem("vboost", "warning", f"{script} cannot raise the power of the tensor cores.", _REMOVE)


def _variables(procedure: UpstreamScripts) -> Iterator[str]:
    """Values of the variables of the setup and launch scripts, with placeholders."""
    yield from procedure.setup.variables.values()
    for group in procedure.launch.variables:
        yield from group.values.values()


def _training(request: RunRequest) -> Iterator[Problem]:
    """Settings of the training that the procedure sets regardless of the profile."""
    procedure, profile, settings = scripts_of(request.recipe), request.slurm, resolve_settings(request)
    launch = procedure.launch
    if settings.tasks_per_numa_node and not profile.numa_binding:
        reason = "The script binds tasks to NUMA nodes regardless of the profile, and they fail on nodes without NUMA."
        yield Problem("numa_binding", "warning", reason, "Choose our script if this cluster has no NUMA nodes.")
    variables = {name for group in launch.variables for name in group.values} | {*launch.clear, procedure.root_variable}
    for name, value in profile.env:
        if name in variables or settings.env.get(name, value) != value:
            does = "hides it from NVIDIA's scripts" if name in launch.clear else "sets it itself"
            reason = f"{name} is not {value}, as the cluster's profile asks: the procedure {does}."
            yield Problem(f"env.{name}", "warning", reason, _REMOVE)


def _slurm(profile: SlurmProfile) -> Iterator[Problem]:
    """Options that NeMo-Run's own call of sbatch leaves out."""
    for name, value in sbatch_options(profile):
        if value is None or name not in SBATCH_VARIABLES:
            reason = f"NeMo-Run calls sbatch itself, and sbatch does not read --{name} from its environment."
            yield Problem(name if hasattr(profile, name) else "slurm_params", "error", reason, _REMOVE)
    if profile.segment is not None:
        variable = SBATCH_VARIABLES["segment"]
        reason = f"{variable} requests the segments, which Slurm reads only since {_SEGMENT_VARIABLE_SINCE}."
        yield Problem("segment", "warning", reason, _REMOVE)
