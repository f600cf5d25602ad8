"""`UpstreamPaths`: paths of NVIDIA's scripts on a cluster, and the values of their placeholders. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llmb_tui.catalog.recipe import Recipe
from llmb_tui.catalog.settings import Values
from llmb_tui.catalog.upstream import UpstreamScripts
from llmb_tui.errors import LlmbError
from llmb_tui.launch.naming import container, image_path
from llmb_tui.launch.settings import plan_values, text_of
from llmb_tui.request import RunRequest


@dataclass(frozen=True, slots=True)
class UpstreamPaths:
    """Absolute paths on the cluster."""

    root: str
    """Directory that the recipe's root variable names."""
    repository: str
    scripts: str
    """The recipe's folder in the repository."""
    environment: str
    """Python environment; empty if none is needed."""
    image: str
    """Path at which the scripts look for the container image."""


def scripts_of(recipe: Recipe) -> UpstreamScripts:
    """NVIDIA's scripts of a recipe. Raises LlmbError (exit code 1) if the preset has none."""
    if recipe.upstream is None:
        raise LlmbError(
            f"{recipe.id} cannot be launched with NVIDIA's scripts.",
            "Its preset does not describe them.",
            "Choose our script.",
            exit_code=1,
        )
    return recipe.upstream


def upstream_paths(request: RunRequest) -> UpstreamPaths:
    """Paths of NVIDIA's scripts on the request's cluster.

    Raises LlmbError (exit code 1) for a recipe without known scripts, and for a plan without a container image.
    """
    recipe, procedure = request.recipe, scripts_of(request.recipe)
    install = request.slurm.install_dir.rstrip("/")
    name = f"{recipe.workload}-{recipe.release}"
    # The older recipes share file names below their root. The folder `published` keeps its first name, so
    # that existing installs stay valid.
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
    """Values of the placeholders of `catalog.upstream`."""
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
