"""`UpstreamScripts`: how a recipe's own scripts install and launch it, as facts with their sources.

Strings may hold the placeholders of `NAMES`: those of the settings, and these of the cluster: `root` is the directory
that the recipe's variable names, `repository` the checkout of its repository, `scripts` the recipe's folder in that,
`results` where the runs' results go.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from llmb_tui.catalog.settings import LAYOUT, PLACEHOLDERS
from llmb_tui.toml.bounds import Bound, Spelled

PLACES = ("root", "repository", "scripts")
GIVEN = (*LAYOUT, *"steps time_limit cpus_per_task vboost mounts".split())
"""What a selection or a cluster's profile may say, and need not."""
NAMES = (*PLACEHOLDERS, *PLACES, *"results account partition gpu size time_limit cpus_per_task vboost mounts".split())
"""What a placeholder may name; a product of them it may not be."""
ALWAYS = ("hub_tokenizer", "vboost")
CLOCK = r"(?!0+:00:00)\d{1,3}:[0-5]\d:[0-5]\d"
"""Hours, minutes and seconds, and not none of them all: what a plan takes as a time limit."""
# Names become parts of paths on the cluster.
_BELOW = r"[A-Za-z0-9_][\w.+-]*(/[A-Za-z0-9_][\w.+-]*)*"
_Below = Annotated[str, Spelled(_BELOW)]
_Address = Annotated[str, Spelled(r"https://[A-Za-z0-9.-]+(/[A-Za-z0-9._-]+)+")]
_Python = Annotated[str, Spelled(r"3\.\d+(\.\d+)?")]
_Variable = Annotated[str, Spelled(r"[A-Z_][A-Z0-9_]*")]


@dataclass(frozen=True, slots=True)
class Setup:
    """The script that installs the recipe. It is started in the recipe's folder."""

    how: Literal["job", "login", "login-pty"]
    """`job`: by sbatch on one node. `login`: by bash on the login node; `login-pty`: with a terminal, because it calls
    `srun --pty`."""
    imports_image: bool
    """Whether it imports the container image, which fails where the file is there already."""
    source: str
    script: _Below = "setup.sh"
    time_limit: Annotated[str, Spelled(CLOCK)] | None = None
    """Of the job, `HH:MM:SS`, as the script itself says; None where it is no job."""
    needs_hub_token: bool = False
    variables: dict[_Variable, str] = field(default_factory=dict)
    clear: tuple[_Variable, ...] = ()
    """Variables that must not reach it with a value from the person's shell."""
    folders: tuple[str, ...] = ()
    """Directories that the launch needs and the script does not make."""
    undo: tuple[str, ...] = ()
    """What an interrupted attempt leaves and the script stumbles over: it goes before the script runs again."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A package that is installed into the environment after the setup script, against a known fault."""

    requirement: Annotated[str, Spelled(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9.]+")]
    """For pip, with an exact version."""
    reason: str
    source: str


@dataclass(frozen=True, slots=True)
class Constraints:
    """Versions of what the scripts install without naming one, as they were at the release."""

    file: _Below
    """In the folder `constraints` beside the preset: a constraints file as pip and uv read them."""
    resolved: Annotated[str, Spelled(r"\d{4}-\d\d-\d\d")]
    """Day of the release; nothing in the file is younger but what it names as such."""
    reason: str
    source: str
    requirements: tuple[str, ...] = ()
    """What stands in the file, a line each; filled when the preset is read."""


@dataclass(frozen=True, slots=True)
class EnvironmentSize:
    """What the Python environment of the scripts takes, as it was measured."""

    gb: Annotated[float, Bound(gt=0)]
    """Decimal GB of its files."""
    source: str


@dataclass(frozen=True, slots=True)
class Commit:
    """What the setup script fetches by its id: without it, no later step can succeed."""

    repository: _Address
    commit: Annotated[str, Spelled(r"[0-9a-f]{40}")]
    """The whole id, 40 hexadecimal digits."""
    gpus: tuple[str, ...] = ()
    """GPU types that it is for; empty: all."""


@dataclass(frozen=True, slots=True)
class Variables:
    """Environment variables of the launch script. They apply where every condition holds (`catalog.settings`)."""

    values: dict[_Variable, str]
    when: tuple[str, ...] = ()
    if_given: bool = False
    """True: each is one placeholder of `GIVEN`, and is set only where the selection or the profile says that."""


@dataclass(frozen=True, slots=True)
class Flaw:
    """What a launch by the script goes wrong with, where every condition holds, and is too late to learn then."""

    when: tuple[str, ...]
    reason: str
    fix: str
    source: str


@dataclass(frozen=True, slots=True)
class LaunchScript:
    """The script that launches a run, and what it takes from its environment."""

    how: Literal["bash", "sbatch"]
    """`bash`: on the login node in the recipe's Python environment, where NeMo-Run calls sbatch. `sbatch`: it is the
    batch script itself."""
    directory: str
    """Where it is started."""
    variables: tuple[Variables, ...]
    results: str
    source: str
    script: _Below = "launch.sh"
    options: tuple[str, ...] = ()
    """sbatch: its options."""
    job_name: str = ""
    """sbatch: the job's name, which the script itself says."""
    log: str = ""
    """sbatch: path of the training log, `%j` being the job id."""
    module: Annotated[str, Spelled(r"[\w.{}]*")] = ""
    """Python module that it starts; importing it in `module_directory` proves the environment. sbatch: none."""
    module_directory: str = ""
    trace_results: str = ""
    """Where the results of a run with an NCCL trace go, if elsewhere."""
    needs_hub_token: bool = False
    clear: tuple[_Variable, ...] = ()
    """Variables that it reads too and that no selection sets: no value from the person's shell or a cluster's profile
    must reach it."""
    from_profile: tuple[_Variable, ...] = ()
    """Such variables that a cluster's profile may set all the same: they move neither results nor logs."""
    always: tuple[str, ...] = ()
    """Of `ALWAYS`, what it does whether or not it is asked for."""
    checkpoints_below: str = ""
    """Directory that a checkpoint must be in to be loaded; empty: any."""
    flaws: tuple[Flaw, ...] = ()


@dataclass(frozen=True, slots=True)
class UpstreamScripts:
    """A release's own way from an empty directory to a job."""

    repository: _Address
    tag: _Below
    folder: _Below
    """Of the recipe in the repository."""
    root_variable: Literal["STAGE_PATH", "LLMB_INSTALL"]
    setup: Setup
    launch: LaunchScript
    source: str
    checkout: _Below = "dgxc-benchmarking"
    """Name of the repository's checkout below the root."""
    images: Annotated[str, Spelled(f"({_BELOW})?")] = ""
    """Directory below the root where the scripts look for the image; empty: the root itself."""
    python: _Python | None = None
    """Oldest Python of the environment."""
    python_exact: _Python | None = None
    """The one Python that is right, such as `3.12`; None of both: no environment is needed."""
    constraints: Constraints | None = None
    """None: the scripts install no Python package."""
    environment: EnvironmentSize | None = None
    """None: nobody has measured it, or there is none."""
    pins: tuple[Pin, ...] = ()
    commits: tuple[Commit, ...] = ()
    notes: tuple[str, ...] = ()
