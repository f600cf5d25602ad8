"""`install_steps`: what has to be on a cluster before a plan can run there by a procedure. Pure."""

from __future__ import annotations

from llmb_tui.catalog.recipe import Recipe
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.launch.entry import entry_path, entry_script
from llmb_tui.launch.image_step import image_step
from llmb_tui.launch.install_step import InJob, InstallStep
from llmb_tui.launch.published.steps import published_steps
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.selection import Procedure

__all__ = ["InJob", "InstallStep", "install_steps"]


def install_steps(
    recipe: Recipe, plan: Plan, profile: ClusterProfile, procedure: Procedure = "direct"
) -> tuple[InstallStep, ...]:
    """The steps in their order.

    Raises Trouble when no container image is known for the plan, and as `published_steps` does for that procedure.
    """
    if procedure == "recipe":
        return published_steps(recipe, plan, profile)
    install = profile.install_dir.rstrip("/")
    entry = (_entry(install),) if recipe.launch.kind == "nemo2" else ()
    return (_directories(recipe, install), image_step(plan, profile), *entry)


def _directories(recipe: Recipe, install: str) -> InstallStep:
    workload = f"pretrain_{recipe.workload}"
    paths = [f"{install}/images", f"{install}/venvs", f"{install}/workloads/{workload}/experiments"]
    paths += [f"{install}/.llmb-tui/code"]
    return InstallStep(f"directories-{workload}", "Directories", tuple(paths), 'mkdir -p "$@"', tuple(paths))


def _entry(install: str) -> InstallStep:
    path = entry_path(install)
    return InstallStep(
        id=path.rpartition("/")[2].removesuffix(".py"),
        title="Entry script",
        results=(path,),
        work='printf %s "$2" >"$1.$owner"\nmv "$1.$owner" "$1"',
        args=(path, entry_script()),
    )
