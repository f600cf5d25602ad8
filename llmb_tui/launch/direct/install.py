"""`direct_install`: install steps that `remote/pretrain.py` needs on a cluster before it can run a plan. Pure."""

from __future__ import annotations

import hashlib

from llmb_tui.catalog.recipe import Recipe
from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.launch.install_step import InstallPlan, InstallStep, image_step
from llmb_tui.request import RunRequest

_ENTRY = "pretrain.py"


def direct_install(request: RunRequest) -> InstallPlan:
    """Steps for the container image and, unless the recipe's own command runs in it, for our entry script.

    Raises LlmbError (exit code 1) if the plan's container image is unknown.
    """
    install = request.slurm.install_dir.rstrip("/")
    entry = (_entry(install),) if request.recipe.launch.by_entry_script else ()
    return (_directories(request.recipe, install), image_step(request), *entry)


def entry_path(install_dir: str) -> str:
    """Path of the installed entry script; its name has a hash of the text, so that no version replaces another."""
    digest = hashlib.sha256(remote_text(_ENTRY).encode()).hexdigest()[:12]
    return f"{install_dir.rstrip('/')}/.llmb-tui/code/pretrain-{digest}.py"


def _directories(recipe: Recipe, install: str) -> InstallStep:
    workload = f"pretrain_{recipe.workload}"
    paths = [f"{install}/images", f"{install}/venvs", f"{install}/workloads/{workload}/experiments"]
    paths += [f"{install}/.llmb-tui/code"]
    return InstallStep(f"directories-{workload}", "Directories", tuple(paths), 'fresh_folder "$@"', tuple(paths))


def _entry(install: str) -> InstallStep:
    path = entry_path(install)
    return InstallStep(
        id=path.rpartition("/")[2].removesuffix(".py"),
        title="Entry script",
        results=(path,),
        work='printf %s "$2" | put "$1"',
        args=(path, remote_text(_ENTRY)),
    )
