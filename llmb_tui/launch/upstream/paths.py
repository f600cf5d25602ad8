"""`UpstreamPaths`: where NVIDIA's own scripts have their things on a cluster; and their placeholders. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llmb_tui.catalog.recipe import Recipe
from llmb_tui.catalog.settings import Values
from llmb_tui.catalog.upstream import UpstreamScripts
from llmb_tui.errors import Trouble
from llmb_tui.launch.naming import container, image_path
from llmb_tui.launch.settings import plan_values, text_of
from llmb_tui.request import RunRequest


@dataclass(frozen=True, slots=True)
class UpstreamPaths:
    """Absolute paths on the cluster."""

    root: str
    """What the recipe's variable names."""
    repository: str
    scripts: str
    """The recipe's folder in the repository."""
    environment: str
    """The Python environment; empty where none is needed."""
    image: str
    """Where the scripts look for the container image."""


def scripts_of(recipe: Recipe) -> UpstreamScripts:
    """NVIDIA's own scripts of a recipe. Raises Trouble (exit code 1) where the preset does not have them."""
    if recipe.upstream is None:
        raise Trouble(
            f"NVIDIA's own scripts are not known for {recipe.id}.",
            "Its preset does not have them.",
            "Choose the direct procedure.",
            exit_code=1,
        )
    return recipe.upstream


def upstream_paths(request: RunRequest) -> UpstreamPaths:
    """Where NVIDIA's own scripts have their things on the request's cluster.

    Raises Trouble (exit code 1) for a recipe whose scripts are not known, and for a plan without a container image.
    """
    recipe, procedure = request.recipe, scripts_of(request.recipe)
    install = request.slurm.install_dir.rstrip("/")
    name = f"{recipe.workload}-{recipe.release}"
    # The older recipes fill their root with names that they share. The folder keeps the name that it had in the first
    # version: what is installed there stays.
    root = install if procedure.root_variable == "LLMB_INSTALL" else f"{install}/published/{name}"
    file = image_path(install, container(request.plan)).rpartition("/")[2]
    repository = f"{root}/{procedure.checkout}"
    return UpstreamPaths(
        root=root,
        repository=repository,
        scripts=f"{repository}/{procedure.folder}",
        environment=f"{install}/venvs/{name}" if procedure.python or procedure.python_exact else "",
        image="/".join(filter(None, [root, procedure.images, file])),
    )


def upstream_values(request: RunRequest) -> Values:
    """What the placeholders of `catalog.upstream` stand for."""
    paths, script, selection = upstream_paths(request), scripts_of(request.recipe).launch, request.plan.selection
    profile = request.slurm
    values: dict[str, Any] = {
        **plan_values(request),
        "root": paths.root,
        "repository": paths.repository,
        "scripts": paths.scripts,
        "account": profile.account,
        "partition": profile.partition,
        "gpu": selection.gpu,
        "size": selection.size,
        "time_limit": request.plan.time_limit,
        "cpus_per_task": profile.cpus_per_task,
        "vboost": "true" if profile.vboost else "false",
        "mounts": ",".join(profile.mounts),
    }
    traced = selection.options.nccl_trace and script.trace_results
    return values | {"results": text_of(traced or script.results, values)}
