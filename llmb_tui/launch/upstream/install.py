"""`upstream_install`: install steps that a recipe's scripts need on a cluster before they can launch a plan. Pure.

A step without a recognizable result, such as the setup script, leaves a note: a marker file below
`<install>/.llmb-tui/published/<workload>-<release>`. The file's name identifies what was done, so that another tag,
GPU type or pin makes the step run again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from llmb_tui.catalog.settings import Values
from llmb_tui.catalog.upstream import Commit, UpstreamScripts
from llmb_tui.cluster.quoting import shell_join
from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.launch.install_step import OFFLINE, InstallPlan, InstallStep, StepJob, image_step, offline_folder
from llmb_tui.launch.settings import text_of
from llmb_tui.launch.upstream.command import setup_command
from llmb_tui.launch.upstream.paths import UpstreamPaths, scripts_of, upstream_paths, upstream_values
from llmb_tui.preflight.secret import HUB_TOKEN, TITLES
from llmb_tui.request import RunRequest

_NEWEST_USUAL = 12
"""Minor version of Python 3: scipy below 1.13, which setup scripts install, has no wheels for newer versions."""
_NEWEST = 14

# $1 is the path of the model hub's token below the home directory, $2 a note that it exists. If each launch needs the
# token there is no $2: the step is done while the token itself exists, for each user of a shared install.
_HUB_KEY = """
[ -z "$2" ] || away "$2"
[ -s "$HOME/$1" ] || { echo "There is no Hugging Face token on the cluster."; exit 1; }
[ -z "$2" ] || date | put "$2"
"""


@dataclass(frozen=True, slots=True)
class _Place:
    """One recipe's scripts in one install directory."""

    name: str
    install: str
    procedure: UpstreamScripts
    paths: UpstreamPaths
    commits: tuple[Commit, ...]
    """Commits for the plan's GPU type."""

    @property
    def notes(self) -> str:
        """Directory of the notes, the files that mark finished steps."""
        return f"{self.install}/.llmb-tui/published/{self.name}"

    @property
    def set_up(self) -> str:
        """Directory of the notes that another checkout or another environment invalidates."""
        return f"{self.notes}/set-up"

    def work(self, function: str, *scripts: str) -> str:
        """Script that calls a remote function with the step's arguments; downloads may come from a local folder."""
        urls = dict.fromkeys([self.procedure.repository, *(commit.repository for commit in self.procedure.commits)])
        offline = shell_join(["offline", f"{self.install}/{OFFLINE}", *urls])
        return "\n".join([remote_text("offline.sh", *scripts), offline, f'{function} "$@"'])

    def installing(self, function: str, *scripts: str) -> str:
        """Like `work`, for a function that installs Python packages as of the release's day."""
        constraints = self.procedure.constraints
        if constraints is None:
            return self.work(function, *scripts)
        constrain = shell_join(["constrain", "\n".join(constraints.requirements)])
        return self.work(f"{constrain}\n{function}", *scripts)


def upstream_install(request: RunRequest) -> InstallPlan:
    """Install steps for the recipe's scripts. Possible obstacles are checked before the long steps.

    Raises LlmbError (exit code 1) for a recipe without known scripts, a plan without a container image, and invalid
    further Slurm parameters.
    """
    place, image, values = _place(request), image_step(request), upstream_values(request)
    procedure, gpu = place.procedure, request.plan.selection.gpu
    needs_token = procedure.setup.needs_hub_token or procedure.launch.needs_hub_token
    steps = (
        _directories(place, [text_of(folder, values) for folder in procedure.setup.folders]),
        _token(place) if needs_token else None,
        commits_step(request),
        _repository(place),
        _environment(place) if place.paths.environment else None,
        image,
        _link(place, image.results[0]) if place.paths.image != image.results[0] else None,
        _setup(place, request),
        _pins(place, gpu) if procedure.pins else None,
        _proof(place, gpu, values) if procedure.launch.module else None,
    )
    return tuple(step for step in steps if step is not None)


def set_up_note(request: RunRequest) -> str:
    """Note that the scripts are set up and download nothing more. Raises like `upstream_install`."""
    place = _place(request)
    step = _pins(place, request.plan.selection.gpu) if place.procedure.pins else _setup(place, request)
    return step.results[0]


def _place(request: RunRequest) -> _Place:
    recipe, procedure, gpu = request.recipe, scripts_of(request.recipe), request.plan.selection.gpu
    return _Place(
        name=f"{recipe.workload}-{recipe.release}",
        install=request.slurm.install_dir.rstrip("/"),
        procedure=procedure,
        paths=upstream_paths(request),
        commits=tuple(commit for commit in procedure.commits if not commit.gpus or gpu in commit.gpus),
    )


def brought_sources(request: RunRequest) -> tuple[str, ...]:
    """Paths at which the steps look for repositories that the user copied there."""
    place, folder = _place(request), offline_folder(request)
    urls = dict.fromkeys([place.procedure.repository, *(commit.repository for commit in place.commits)])
    return tuple(f"{folder}/{url.removesuffix('.git').rpartition('/')[2]}.bundle" for url in urls)


def _directories(place: _Place, folders: Sequence[str]) -> InstallStep:
    paths = (f"{place.install}/images", place.paths.root, place.notes, *folders)
    return InstallStep(f"directories-{place.name}", "Directories", paths, 'fresh_folder "$@"', paths)


def _token(place: _Place) -> InstallStep:
    note = "" if place.procedure.launch.needs_hub_token else f"{place.notes}/hugging-face-token"
    result = note or f"~/{HUB_TOKEN}"
    return InstallStep(f"token-{place.name}", TITLES["hugging-face"], (result,), _HUB_KEY, (HUB_TOKEN, note))


def commits_step(request: RunRequest) -> InstallStep | None:
    """Step that looks for the commits that the setup script fetches by id; None without commits. Raises as above."""
    place = _place(request)
    if not place.commits:
        return None
    pairs = [word for commit in place.commits for word in (commit.repository, commit.commit)]
    note = f"{place.notes}/commits-{_digest(pairs)}"
    work = place.work("commits", "commits.sh")
    return InstallStep(f"commits-{place.name}", "Required commits", (note,), work, (note, *pairs))


def _repository(place: _Place) -> InstallStep:
    procedure, paths = place.procedure, place.paths
    note = f"{place.notes}/repository-{_digest([procedure.repository, procedure.tag])}"
    return InstallStep(
        id=f"repository-{place.name}",
        title=f"Recipe repository, {procedure.tag}",
        results=(f"{paths.scripts}/{procedure.setup.script}", f"{paths.scripts}/{procedure.launch.script}", note),
        work=place.work("checkout", "checkout.sh"),
        args=(procedure.repository, procedure.tag, paths.repository, place.set_up, note),
    )


def _environment(place: _Place) -> InstallStep:
    exact, environment = place.procedure.python_exact, place.paths.environment
    version = exact or place.procedure.python or ""
    oldest = int(version.split(".")[1])
    usual = [oldest] if exact else range(oldest, max(oldest, _NEWEST_USUAL) + 1)
    newer = [] if exact else range(usual[-1] + 1, _NEWEST + 1)
    minors = (" ".join(f"3.{minor}" for minor in group) for group in (usual, newer))
    note = f"{place.notes}/environment-{_digest([environment, version])}"
    pythons = f"{place.install}/.llmb-tui/python"
    return InstallStep(
        id=f"environment-{place.name}",
        title=f"Environment with Python {version}{'' if exact else ' or newer'}",
        # Not pip: the setup script replaces it, and for a moment it does not exist.
        results=(f"{environment}/bin/python", note),
        work=place.work("environment", "environment.sh"),
        args=(environment, version, "yes" if exact else "no", *minors, pythons, place.set_up, note),
    )


def _link(place: _Place, image: str) -> InstallStep:
    """Link at the path where the scripts look for the image, which all recipes share in the install directory."""
    path = place.paths.image
    work = '(at_parent "$2" && rm -f "./${2##*/}" && ln -sn "$1" "./${2##*/}")'
    return InstallStep(f"link-{place.name}", "Link to the container image", (path,), work, (image, path))


def _setup(place: _Place, request: RunRequest) -> InstallStep:
    setup, paths = place.procedure.setup, place.paths
    command, values = setup_command(request), upstream_values(request)
    note = f"{place.set_up}/setup-{_digest(_set_up_for(place, request.plan.selection.gpu))}"
    unset = [word for name in command.unset for word in ("-u", name)]
    assignments = [f"{name}={value}" for name, value in command.environment]
    in_job = _setup_job(command.arguments[1:-1], setup.time_limit, request.slurm) if setup.how == "job" else None
    return InstallStep(
        id=f"setup-{place.name}",
        title=f"{setup.script} of the recipe",
        results=(note,),
        work=place.installing("setup", "checkout.sh", "setup.sh"),
        args=(
            *(paths.repository, place.procedure.tag, paths.scripts, paths.environment, command.token_file),
            "terminal" if setup.how == "login-pty" else "",
            *(remote_text("enroot.sh").rstrip("\n"), remote_text("git.sh").rstrip("\n"), place.set_up, note),
            *(text_of(path, values) for path in setup.undo),
            "--",
            *("env", *unset, *assignments, "bash", f"./{setup.script}"),
        ),
        in_job=in_job,
    )


def _setup_job(options: Sequence[str], time_limit: str | None, profile: SlurmProfile) -> StepJob:
    """Job as in the recipe's documentation, with a whole node, because builds may need much memory."""
    time = [] if time_limit is None else [f"--time={time_limit}"]
    return StepJob("", (*options, "--ntasks=1", "--exclusive", f"--mem={profile.memory}", *time))


def _set_up_for(place: _Place, gpu: str) -> list[str]:
    setup = place.procedure.setup
    by_gpu = [gpu] if any("{gpu}" in text for text in setup.variables.values()) else []
    constraints = place.procedure.constraints
    versions = constraints.requirements if constraints else ()
    return [place.procedure.tag, *by_gpu, *(commit.commit for commit in place.commits), *versions]


def _pins(place: _Place, gpu: str) -> InstallStep:
    requirements = [pin.requirement for pin in place.procedure.pins]
    note = f"{place.set_up}/pins-{_digest([*_set_up_for(place, gpu), *requirements])}"
    return InstallStep(
        id=f"pins-{place.name}",
        title=f"Later corrections: {', '.join(requirements)}",
        results=(note,),
        work=place.installing("pins", "setup.sh"),
        args=(place.paths.environment, note, *requirements),
    )


def _proof(place: _Place, gpu: str, values: Values) -> InstallStep:
    """Proof on the login node, where the launch script will import the module, too."""
    launch, pins = place.procedure.launch, [pin.requirement for pin in place.procedure.pins]
    module = text_of(launch.module, values)
    note = f"{place.set_up}/proof-{_digest([*_set_up_for(place, gpu), *pins, module])}"
    return InstallStep(
        id=f"proof-{place.name}",
        title=f"Proof that {launch.script} can start {module.rpartition('.')[2]}",
        results=(note,),
        work=place.work("prove", "setup.sh"),
        args=(place.paths.environment, text_of(launch.module_directory, values), module, note),
    )


def _digest(words: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:12]
