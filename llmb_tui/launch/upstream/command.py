"""`upstream_command`: the command that launches NVIDIA's scripts for a plan on a cluster. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from llmb_tui.catalog.recipe import Recipe
from llmb_tui.catalog.settings import Values, holds
from llmb_tui.catalog.upstream import LaunchScript, Variables
from llmb_tui.cluster.quoting import one_line, shell_join
from llmb_tui.cluster.slurm.params import Option, arguments_of, gpu_options, sbatch_options
from llmb_tui.cluster.validation import is_all_memory
from llmb_tui.launch.settings import text_of
from llmb_tui.launch.upstream.paths import scripts_of, upstream_paths, upstream_values
from llmb_tui.launch.upstream.problems import SBATCH_VARIABLES, deviations, problems_of
from llmb_tui.plan.plan import Problem
from llmb_tui.preflight.secret import HUB_TOKEN
from llmb_tui.request import RunRequest

# The corresponding variables of srun, for a setup script that calls it on the login node.
_SRUN_VARIABLES = {
    name: SBATCH_VARIABLES[name].replace("SBATCH_", "SLURM_")
    for name in ("constraint", "gpus-per-node", "gres", "qos", "reservation")
}


@dataclass(frozen=True, slots=True)
class UpstreamCommand:
    """Command that starts one of NVIDIA's scripts on the login node. It contains no secret."""

    directory: str
    environment: tuple[tuple[str, str], ...]
    """Variables to set, in order."""
    unset: tuple[str, ...]
    """Variables that the script would read, but must not inherit from the user's shell."""
    arguments: tuple[str, ...]
    """Program and arguments, without `env`."""
    venv: str = ""
    """Active Python environment; empty if there is none."""
    token_file: str = ""
    """File below the home directory on the cluster with the value of `HF_TOKEN`; empty if the token is not needed."""
    results: str = ""
    """Results folder."""
    log: str = ""
    """Path of the log, with `%j` for the job id; empty if the script's own output names it."""
    job_name: str = ""
    """Job name; empty if NeMo-Run chooses it."""
    problems: tuple[Problem, ...] = ()
    """Deviations from the selection and the cluster's profile."""

    @property
    def text(self) -> str:
        """Exact command, ready to paste into sh, bash or zsh on the login node."""
        lines = [f"cd {shell_join([self.directory])} &&"]
        if self.venv:
            # Neither venv nor conda needs more than this, and only a venv has bin/activate.
            lines.append(f'VIRTUAL_ENV={shell_join([self.venv])} PATH={shell_join([self.venv])}/bin:"$PATH"')
        if self.token_file:
            # Not as an argument of `env`, which every user of the node could read in the process list.
            lines.append(f'HF_TOKEN="$(cat "$HOME/{self.token_file}")"')
        lines.append(shell_join(["env", *(word for name in self.unset for word in ("-u", name))]))
        lines += [f"{name}={shell_join([value])}" for name, value in self.environment]
        lines.append(shell_join(self.arguments))
        return " \\\n".join(lines)


def upstream_command(request: RunRequest) -> UpstreamCommand:
    """The command that launches a request; its `problems` list everything that it cannot do.

    Raises LlmbError (exit code 1) for a recipe without known scripts, a plan without a container image, invalid further
    Slurm parameters, and a value that contains a line break.
    """
    script, paths, profile = scripts_of(request.recipe).launch, upstream_paths(request), request.slurm
    values, changes = upstream_values(request), deviations(request)
    groups = [group for group in script.variables if all(holds(text, values) for text in group.when)]
    placeholders = {text for group in groups for text in group.values.values()}
    options = _slurm_options(request, own_time="time_limit" in changes and "{time_limit}" not in placeholders)
    variables = dict.fromkeys([*(name for group in script.variables for name in group.values), *script.clear])
    environment = _variables(groups, values, changes)
    if script.how == "bash":
        environment |= {SBATCH_VARIABLES[n]: v for n, v in options if v is not None and n in SBATCH_VARIABLES}
    environment |= {name: value for name, value in profile.env if name not in {**variables, **environment}}
    for name, value in environment.items():
        one_line(value, name)
    return UpstreamCommand(
        directory=text_of(script.directory, values),
        environment=tuple(environment.items()),
        unset=tuple(name for name in (*variables, *script.from_profile) if name not in environment),
        arguments=_arguments(script, values, options),
        venv=paths.environment if script.how == "bash" else "",
        token_file=HUB_TOKEN if script.needs_hub_token else "",
        results=str(values["results"]),
        log=text_of(script.log, values),
        job_name=script.job_name,
        problems=tuple(problems_of(request, placeholders, values)),
    )


def setup_command(request: RunRequest) -> UpstreamCommand:
    """The command that runs the recipe's setup script for the plan's GPU type.

    Raises LlmbError (exit code 1) for a recipe without known scripts, a plan without a container image, and invalid
    further Slurm parameters.
    """
    setup, paths, values = scripts_of(request.recipe).setup, upstream_paths(request), upstream_values(request)
    # A job on one node has no segment, and the script itself decides about the memory.
    options = tuple(
        (name, value) for name, value in _slurm_options(request, own_time=False) if name not in ("segment", "mem")
    )
    environment = {name: text_of(text, values) for name, text in setup.variables.items()}
    arguments: tuple[str, ...] = ("bash", f"./{setup.script}")
    if setup.how == "job":
        place = _placed(("-A", "{account}", "-p", "{partition}", "-N", "1"), values)
        arguments = ("sbatch", *place, *arguments_of(options), f"./{setup.script}")
    elif setup.how == "login-pty":
        environment |= {_SRUN_VARIABLES[n]: v for n, v in options if v is not None and n in _SRUN_VARIABLES}
    return UpstreamCommand(
        directory=paths.scripts,
        environment=tuple(environment.items()),
        unset=tuple(name for name in setup.clear if name not in environment),
        arguments=arguments,
        venv=paths.environment,
        token_file=HUB_TOKEN if setup.needs_hub_token else "",
        log=f"{paths.scripts}/slurm-%j.out" if setup.how == "job" else "",
    )


def differences(recipe: Recipe) -> Iterator[str]:
    """Additions and deviations from the recipe's own documentation, one sentence each."""
    procedure = scripts_of(recipe)
    setup, script = procedure.setup, procedure.setup.script
    for pin in procedure.pins:
        yield f"{pin.requirement} is installed into the environment after {script}: {pin.reason} ({pin.source})."
    for folder in setup.folders:
        path = folder.replace("{root}", f"${procedure.root_variable}")
        yield f"The directory {path} is created, because no script creates it."
    if (versions := procedure.constraints) is not None:
        yield (
            f"Packages that {script} installs without a fixed version are taken as of {versions.resolved}: "
            f"{versions.reason} ({versions.source})."
        )
    if setup.imports_image:
        yield (
            f"The container image is imported before {script} runs: a small enroot of ours then reports "
            "success, because the real enroot fails if the image exists."
        )
    yield f"A small git of ours adds --progress to the clones of {script}, and conda's variables are cleared for it."
    if setup.undo:
        yield f"Incomplete files of an interrupted {script} are removed before it runs again."
    if setup.how == "job":
        yield f"The job of {script} gets a whole node, with the memory that the cluster's profile sets."


def _variables(groups: list[Variables], values: Values, changes: Mapping[str, object]) -> dict[str, str]:
    return {
        name: text_of(text, values)
        for group in groups
        for name, text in group.values.items()
        if not group.if_given or text.strip("{}") in changes
    }


def _slurm_options(request: RunRequest, *, own_time: bool) -> tuple[Option, ...]:
    """Options for sbatch from the profile, and the time limit if the launch script has no variable for it."""
    plan, profile = request.plan, request.slurm
    memory: tuple[Option, ...] = () if is_all_memory(profile.memory) else (("mem", profile.memory),)
    time: tuple[Option, ...] = (("time", plan.time_limit),) if own_time else ()
    return (*gpu_options(profile, plan.gpus_per_node), *memory, *time, *sbatch_options(profile))


def _arguments(script: LaunchScript, values: Values, options: tuple[Option, ...]) -> tuple[str, ...]:
    if script.how == "bash":
        return (f"./{script.script}",)
    return ("sbatch", *_placed(script.options, values), *arguments_of(options), f"./{script.script}")


def _placed(words: tuple[str, ...], values: Values) -> Iterator[str]:
    """Options of a script, without `-p` if the profile names no partition."""
    for name, text in zip(words[::2], words[1::2], strict=True):
        if text != "{partition}" or values["partition"]:
            yield from (name, text_of(text, values))
