"""`published_command`: how the recipe's own scripts are started, for a plan on a cluster. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from llmb_tui.catalog.published import LaunchScript, Setup, Variables
from llmb_tui.catalog.recipe import Recipe
from llmb_tui.catalog.settings import Values, holds
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.quoting import one_line, shell_join
from llmb_tui.cluster.slurm.params import Option, sbatch_options
from llmb_tui.launch.published.paths import procedure_of, procedure_values, published_paths, text_of
from llmb_tui.launch.published.problems import SBATCH_VARIABLES, given, problems_of
from llmb_tui.launch.secret import HUB_TOKEN
from llmb_tui.plan.plan import Plan, Problem

# The same of srun, for a setup script that calls it on the login node.
_SRUN_VARIABLES = {
    "constraint": "SLURM_CONSTRAINT",
    "gpus-per-node": "SLURM_GPUS_PER_NODE",
    "gres": "SLURM_GRES",
    "qos": "SLURM_QOS",
    "reservation": "SLURM_RESERVATION",
}


@dataclass(frozen=True, slots=True)
class PublishedCommand:
    """What starts a script of the published procedure on the login node. It holds no secret."""

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


def published_command(recipe: Recipe, plan: Plan, profile: ClusterProfile) -> PublishedCommand:
    """The command that launches a plan the published way, with everything that it cannot do among its `problems`.

    Raises Trouble (exit code 1) as `published_paths` does, for further Slurm parameters that cannot be read, and for a
    value that does not fit on one line.
    """
    script, paths = procedure_of(recipe).launch, published_paths(recipe, plan, profile)
    values, says = procedure_values(recipe, plan, profile), given(recipe, plan, profile)
    groups = [group for group in script.variables if all(holds(text, values) for text in group.when)]
    read = {text for group in groups for text in group.values.values()}
    options = _slurm_options(plan, profile, own_time="time_limit" in says and "{time_limit}" not in read)
    known = dict.fromkeys([*(name for group in script.variables for name in group.values), *script.clear])
    environment = _variables(groups, values, says)
    if script.how == "bash":
        environment |= {SBATCH_VARIABLES[n]: v for n, v in options if v is not None and n in SBATCH_VARIABLES}
    environment |= {name: value for name, value in profile.env if name not in {**known, **environment}}
    for name, value in environment.items():
        one_line(value, name)
    return PublishedCommand(
        directory=text_of(script.directory, values),
        environment=tuple(environment.items()),
        unset=tuple(name for name in known if name not in environment),
        arguments=_arguments(script, values, options),
        venv=paths.environment if script.how == "bash" else "",
        token_file=HUB_TOKEN if script.needs_hub_token else "",
        results=str(values["results"]),
        log=text_of(script.log, values),
        job_name=script.job_name,
        problems=tuple(problems_of(recipe, plan, profile, read, values)),
    )


def setup_command(recipe: Recipe, plan: Plan, profile: ClusterProfile) -> PublishedCommand:
    """The command that runs the recipe's setup script, for the plan's GPU type. Raises Trouble as above."""
    setup, paths = procedure_of(recipe).setup, published_paths(recipe, plan, profile)
    values = procedure_values(recipe, plan, profile)
    # One node is no block of nodes, and the memory is the script's own affair.
    options = tuple(
        (name, value) for name, value in _slurm_options(plan, profile, own_time=False) if name not in ("segment", "mem")
    )
    environment = {name: text_of(text, values) for name, text in setup.variables.items()}
    arguments: tuple[str, ...] = ("bash", f"./{setup.script}")
    if setup.how == "job":
        further = ("-A", profile.account, "-p", profile.partition, "-N", "1", *_long(options))
        arguments = ("sbatch", *further, f"./{setup.script}")
    elif setup.how == "login-pty":
        environment |= {_SRUN_VARIABLES[n]: v for n, v in options if v is not None and n in _SRUN_VARIABLES}
    return PublishedCommand(
        directory=paths.scripts,
        environment=tuple(environment.items()),
        unset=tuple(name for name in setup.clear if name not in environment),
        arguments=arguments,
        venv=paths.environment,
        token_file=HUB_TOKEN if setup.needs_hub_token else "",
        log=f"{paths.scripts}/slurm-%j.out" if setup.how == "job" else "",
    )


def differences(recipe: Recipe) -> tuple[str, ...]:
    """What we do beside or otherwise than the recipe's own documents say, a sentence each."""
    procedure = procedure_of(recipe)
    pins = [
        f"{pin.requirement} is installed into the environment after {procedure.setup.script}: {pin.reason} "
        f"({pin.source})."
        for pin in procedure.pins
    ]
    folders = [f"The directory {folder} is made, which no script makes." for folder in procedure.setup.folders]
    return (
        *pins,
        *(folder.replace("{root}", f"${procedure.root_variable}") for folder in folders),
        *_of_the_install(procedure.setup),
    )


def _of_the_install(setup: Setup) -> Iterator[str]:
    """How the install steps run the setup script otherwise than a person would."""
    script = setup.script
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


def _slurm_options(plan: Plan, profile: ClusterProfile, *, own_time: bool) -> tuple[Option, ...]:
    """Options of sbatch that the profile wants, and the time limit where the launch script has no variable for it."""
    gpus = str(plan.gpus_per_node)
    requests: dict[str, Option] = {"gpus-per-node": ("gpus-per-node", gpus), "gres": ("gres", f"gpu:{gpus}")}
    request = (requests[profile.gpu_request],) if profile.gpu_request in requests else ()
    memory: tuple[Option, ...] = () if profile.memory == "0" else (("mem", profile.memory),)
    time: tuple[Option, ...] = (("time", plan.time_limit),) if own_time else ()
    return (*request, *memory, *time, *sbatch_options(profile))


def _arguments(script: LaunchScript, values: Values, options: tuple[Option, ...]) -> tuple[str, ...]:
    if script.how == "bash":
        return (f"./{script.script}",)
    own = (text_of(option, values) for option in script.options)
    return ("sbatch", *own, *_long(options), f"./{script.script}")


def _long(options: tuple[Option, ...]) -> tuple[str, ...]:
    return tuple(f"--{name}" if value is None else f"--{name}={value}" for name, value in options)
