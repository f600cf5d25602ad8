"""`UpstreamScripts`: facts about the scripts with which NVIDIA installs and launches a recipe.

Strings may contain the placeholders of `NAMES`: those of the settings, and those of the cluster. `root` is the
directory of the recipe's variable, `repository` the checkout of its repository, `scripts` the recipe's folder in it,
`results` the directory of the results.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from llmb_tui.catalog.settings import LAYOUT, PLACEHOLDERS
from llmb_tui.toml.bounds import Bound, Spelled

PLACES = ("root", "repository", "scripts")
GIVEN = (*LAYOUT, *"steps time_limit cpus_per_task vboost mounts".split())
"""Optional values of a selection or a cluster's profile."""
NAMES = (*PLACEHOLDERS, *PLACES, *"results account partition gpu size time_limit cpus_per_task vboost mounts".split())
"""Names of placeholders; products are not allowed."""
ALWAYS = ("hub_tokenizer", "vboost")
CLOCK = r"(?!0+:00:00)\d{1,3}:[0-5]\d:[0-5]\d"
"""A time limit above zero in hours, minutes and seconds."""
# Names become parts of paths on the cluster.
_BELOW = r"[A-Za-z0-9_][\w.+-]*(/[A-Za-z0-9_][\w.+-]*)*"
_Below = Annotated[str, Spelled(_BELOW)]
_Address = Annotated[str, Spelled(r"https://[A-Za-z0-9.-]+(/[A-Za-z0-9._-]+)+")]
_Python = Annotated[str, Spelled(r"3\.\d+(\.\d+)?")]
_Variable = Annotated[str, Spelled(r"[A-Z_][A-Z0-9_]*")]


@dataclass(frozen=True, slots=True)
class Setup:
    """The script that installs the recipe. It runs in the recipe's folder."""

    how: Literal["job", "login", "login-pty"]
    """`job`: by sbatch on one node. `login`: by bash on the login node. `login-pty`: so with a terminal, for
    `srun --pty`."""
    imports_image: bool
    """True if the script imports the container image; the import fails if the file exists."""
    source: str
    script: _Below = "setup.sh"
    time_limit: Annotated[str, Spelled(CLOCK)] | None = None
    """Time limit of the job, `HH:MM:SS`, from the script; None without a job."""
    needs_hub_token: bool = False
    variables: dict[_Variable, str] = field(default_factory=dict)
    clear: tuple[_Variable, ...] = ()
    """Variables that are unset for the script, so that no value from the user's shell reaches it."""
    folders: tuple[str, ...] = ()
    """Directories that the launch needs and the script does not create."""
    undo: tuple[str, ...] = ()
    """Files of an interrupted attempt that make the script fail; removed before the script runs again."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A package that is installed after the setup script because of a known fault."""

    requirement: Annotated[str, Spelled(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9.]+")]
    """Requirement for pip, with an exact version."""
    reason: str
    source: str


@dataclass(frozen=True, slots=True)
class Constraints:
    """Versions, at the time of the release, of packages that the scripts install without a version."""

    file: _Below
    """Constraints file for pip and uv, in the folder `constraints` next to the preset."""
    resolved: Annotated[str, Spelled(r"\d{4}-\d\d-\d\d")]
    """Day of the release; later versions are marked in the file."""
    reason: str
    source: str
    requirements: tuple[str, ...] = ()
    """Lines of the file; filled when the preset is read."""


@dataclass(frozen=True, slots=True)
class EnvironmentSize:
    """Measured size of the scripts' Python environment."""

    gb: Annotated[float, Bound(gt=0)]
    """Size of the files, decimal GB."""
    source: str


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit that the setup script fetches; later steps fail without it."""

    repository: _Address
    commit: Annotated[str, Spelled(r"[0-9a-f]{40}")]
    """Complete id, 40 hexadecimal digits."""
    gpus: tuple[str, ...] = ()
    """GPU types that need it; empty: all."""


@dataclass(frozen=True, slots=True)
class Variables:
    """Environment variables of the launch script, set if every condition holds (`catalog.settings`)."""

    values: dict[_Variable, str]
    when: tuple[str, ...] = ()
    if_given: bool = False
    """True: each value is one placeholder of `GIVEN`, and is set only if the selection or the profile has it."""


@dataclass(frozen=True, slots=True)
class Flaw:
    """A fault of the launch script that appears only after the launch, if every condition holds."""

    when: tuple[str, ...]
    reason: str
    fix: str
    source: str


@dataclass(frozen=True, slots=True)
class LaunchScript:
    """The script that launches a run, and its environment variables."""

    how: Literal["bash", "sbatch"]
    """`bash`: on the login node in the recipe's Python environment, where NeMo-Run calls sbatch. `sbatch`: it is the
    batch script."""
    directory: str
    """Working directory."""
    variables: tuple[Variables, ...]
    results: str
    source: str
    script: _Below = "launch.sh"
    options: tuple[str, ...] = ()
    """sbatch: options."""
    job_name: str = ""
    """sbatch: job name set by the script."""
    log: str = ""
    """sbatch: path of the training log; `%j` is the job id."""
    module: Annotated[str, Spelled(r"[\w.{}]*")] = ""
    """Python module of the launch; importing it in `module_directory` checks the environment. Empty for sbatch."""
    module_directory: str = ""
    trace_results: str = ""
    """Directory of the results of a run with an NCCL trace, if it differs."""
    needs_hub_token: bool = False
    clear: tuple[_Variable, ...] = ()
    """Further variables of the script, unset for it: no value from the user's shell or a profile may reach it."""
    from_profile: tuple[_Variable, ...] = ()
    """Variables of `clear` that a profile may set, because they move neither results nor logs."""
    always: tuple[str, ...] = ()
    """Members of `ALWAYS` that the script does without being asked."""
    checkpoints_below: str = ""
    """Directory from which checkpoints can be loaded; empty: any."""
    flaws: tuple[Flaw, ...] = ()


@dataclass(frozen=True, slots=True)
class UpstreamScripts:
    """All facts about a release's scripts, from an empty directory to a job."""

    repository: _Address
    tag: _Below
    folder: _Below
    """Folder of the recipe in the repository."""
    root_variable: Literal["STAGE_PATH", "LLMB_INSTALL"]
    setup: Setup
    launch: LaunchScript
    source: str
    checkout: _Below = "dgxc-benchmarking"
    """Directory name of the checkout below the root."""
    images: Annotated[str, Spelled(f"({_BELOW})?")] = ""
    """Directory of the image below the root; empty: the root."""
    python: _Python | None = None
    """Oldest Python of the environment."""
    python_exact: _Python | None = None
    """Required Python version, such as `3.12`. Without this and `python`, no environment is needed."""
    constraints: Constraints | None = None
    """None: the scripts install no Python package."""
    environment: EnvironmentSize | None = None
    """None: not measured, or no environment."""
    pins: tuple[Pin, ...] = ()
    commits: tuple[Commit, ...] = ()
    notes: tuple[str, ...] = ()
