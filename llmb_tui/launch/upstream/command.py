"""`upstream_command`: how the recipe's own scripts are started, for a plan on a cluster. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from llmb_tui.catalog.recipe import Recipe
from llmb_tui.catalog.settings import Values, holds
from llmb_tui.catalog.upstream import LaunchScript, Variables
from llmb_tui.cluster.quoting import one_line, shell_join
from llmb_tui.cluster.slurm.params import Option, arguments_of, gpu_options, sbatch_options
from llmb_tui.launch.settings import text_of
from llmb_tui.launch.upstream.paths import scripts_of, upstream_paths, upstream_values
from llmb_tui.launch.upstream.problems import SBATCH_VARIABLES, deviations, problems_of
from llmb_tui.plan.plan import Problem
from llmb_tui.preflight.secret import HUB_TOKEN
from llmb_tui.request import RunRequest

# The same of srun, for a setup script that calls it on the login node.
_SRUN_VARIABLES = {
    name: SBATCH_VARIABLES[name].replace("SBATCH_", "SLURM_")
    for name in ("constraint", "gpus-per-node", "gres", "qos", "reservation")
}


@dataclass(frozen=True, slots=True)
class UpstreamCommand:
    """What starts one of NVIDIA's own scripts on the login node. It holds no secret."""

    directory: str
    environment: tuple[tuple[str, str], ...]
    """Variables to set, in their order."""
    unset: tuple[str, ...]
    """Variables that the script would read too, and must not have from the person's shell."""
    arguments: tuple[str, ...]
    """Program and arguments, without `env`."""
    venv: str = ""
    """Python environment that is active; empty: none."""
    token_file: str = ""
    """File below the home directory on the cluster that `HF_TOKEN` is read from; empty: it is not needed."""
    results: str = ""
    """Where the results go."""
    log: str = ""
    """Path of the log, with `%j` for the job id; empty where the script's own output says it."""
    job_name: str = ""
    """The job's name; empty where NeMo-Run names it."""
    problems: tuple[Problem, ...] = ()
    """Where this is not what the selection or the cluster's profile asks for."""

    @property
    def text(self) -> str:
        """What to paste into sh, bash or zsh on the login node; what is run, to the letter."""
        lines = [f"cd {shell_join([self.directory])} &&"]
        if self.venv:
            # Neither venv nor conda need more than this, and only a venv has bin/activate.
            lines.append(f'VIRTUAL_ENV={shell_join([self.venv])} PATH={shell_join([self.venv])}/bin:"$PATH"')
        if self.token_file:
            # Not behind `env`, where every user of the node could read it in the list of processes.
            lines.append(f'HF_TOKEN="$(cat "$HOME/{self.token_file}")"')
        lines.append(shell_join(["env", *(word for name in self.unset for word in ("-u", name))]))
        lines += [f"{name}={shell_join([value])}" for name, value in self.environment]
        lines.append(shell_join(self.arguments))
        return " \\\n".join(lines)


def upstream_command(request: RunRequest) -> UpstreamCommand:
    """The command that launches a request, with everything that it cannot do among its `problems`.

    Raises Trouble (exit code 1) for a recipe whose scripts are not known, a plan without a container image, further
    Slurm parameters that cannot be read, and a value that does not fit on one line.
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
    """The command that runs the recipe's setup script, for the plan's GPU type.

    Raises Trouble (exit code 1) for a recipe whose scripts are not known, a plan without a container image, and further
    Slurm parameters that cannot be read.
    """
    setup, paths, values = scripts_of(request.recipe).setup, upstream_paths(request), upstream_values(request)
    # One node is no block of nodes, and the memory is the script's own affair.
    options = tuple(
        (name, value) for name, value in _slurm_options(request, own_time=False) if name not in ("segment", "mem")
    )
    environment = {name: text_of(text, values) for name, text in setup.variables.items()}
    arguments: tuple[str, ...] = ("bash", f"./{setup.script}")
    if setup.how == "job":
        further = ("-A", request.slurm.account, "-p", request.slurm.partition, "-N", "1", *arguments_of(options))
        arguments = ("sbatch", *further, f"./{setup.script}")
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
    """What we do beside or otherwise than the recipe's own documents say, a sentence each."""
    procedure = scripts_of(recipe)
    setup, script = procedure.setup, procedure.setup.script
    for pin in procedure.pins:
        yield f"{pin.requirement} is installed into the environment after {script}: {pin.reason} ({pin.source})."
    for folder in setup.folders:
        path = folder.replace("{root}", f"${procedure.root_variable}")
        yield f"The directory {path} is made, which no script makes."
    if (versions := procedure.constraints) is not None:
        yield (
            f"What {script} installs without a version of its own is taken as it was on {versions.resolved}: "
            f"{versions.reason} ({versions.source})."
        )
    if setup.imports_image:
        yield (
            f"The container image is imported before {script} runs: a small enroot of ours then answers that it is "
            "there, where the real one would end with an error."
        )
    yield f"A small git of ours adds --progress to the clones of {script}, and conda's variables are cleared for it."
    if setup.undo:
        yield f"What an interrupted {script} left half made is removed before it runs again."
    if setup.how == "job":
        yield f"The job of {script} has a node for itself, with the memory that the cluster's profile names."


def _variables(groups: list[Variables], values: Values, says: Mapping[str, object]) -> dict[str, str]:
    return {
        name: text_of(text, values)
        for group in groups
        for name, text in group.values.items()
        if not group.if_given or text.strip("{}") in says
    }


def _slurm_options(request: RunRequest, *, own_time: bool) -> tuple[Option, ...]:
    """Options of sbatch that the profile wants, and the time limit where the launch script has no variable for it."""
    plan, profile = request.plan, request.slurm
    memory: tuple[Option, ...] = () if profile.memory == "0" else (("mem", profile.memory),)
    time: tuple[Option, ...] = (("time", plan.time_limit),) if own_time else ()
    return (*gpu_options(profile, plan.gpus_per_node), *memory, *time, *sbatch_options(profile))


def _arguments(script: LaunchScript, values: Values, options: tuple[Option, ...]) -> tuple[str, ...]:
    if script.how == "bash":
        return (f"./{script.script}",)
    flags = (text_of(option, values) for option in script.options)
    return ("sbatch", *flags, *arguments_of(options), f"./{script.script}")
