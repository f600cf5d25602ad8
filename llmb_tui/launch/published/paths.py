"""`PublishedPaths`: where a recipe's own procedure has its things on a cluster; and its placeholders. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llmb_tui.catalog.published import Published
from llmb_tui.catalog.recipe import Recipe
from llmb_tui.catalog.settings import Values, filled
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.errors import Trouble
from llmb_tui.launch.settings import plan_values
from llmb_tui.launch.spec_of import container, image_path
from llmb_tui.plan.plan import Plan


@dataclass(frozen=True, slots=True)
class PublishedPaths:
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


def procedure_of(recipe: Recipe) -> Published:
    """The recipe's own procedure. Raises Trouble (exit code 1) where the preset does not have it."""
    if recipe.published is None:
        raise Trouble(
            f"No published procedure is known for {recipe.id}.",
            "Its preset has none.",
            "Choose the direct procedure.",
            exit_code=1,
        )
    return recipe.published


def published_paths(recipe: Recipe, plan: Plan, profile: ClusterProfile) -> PublishedPaths:
    """Where a recipe's own procedure is on a cluster.

    Raises Trouble (exit code 1) for a recipe whose procedure is not known, and for a plan without a container image.
    """
    procedure = procedure_of(recipe)
    install = profile.install_dir.rstrip("/")
    name = f"{recipe.workload}-{recipe.release}"
    # The older recipes fill their root with names that they share.
    root = install if procedure.root_variable == "LLMB_INSTALL" else f"{install}/published/{name}"
    file = image_path(install, container(plan)).rpartition("/")[2]
    repository = f"{root}/{procedure.checkout}"
    return PublishedPaths(
        root=root,
        repository=repository,
        scripts=f"{repository}/{procedure.folder}",
        environment=f"{install}/venvs/{name}" if procedure.python or procedure.python_exact else "",
        image="/".join(filter(None, [root, procedure.images, file])),
    )


def procedure_values(recipe: Recipe, plan: Plan, profile: ClusterProfile) -> Values:
    """What the placeholders of `catalog.published` stand for."""
    paths, script, asked = published_paths(recipe, plan, profile), procedure_of(recipe).launch, plan.selection
    values: dict[str, Any] = {
        **plan_values(recipe, plan),
        "root": paths.root,
        "repository": paths.repository,
        "scripts": paths.scripts,
        "account": profile.account,
        "partition": profile.partition,
        "gpu": asked.gpu,
        "size": asked.size,
        "time_limit": plan.time_limit,
        "cpus_per_task": profile.cpus_per_task,
        "vboost": "true" if profile.vboost else "false",
        "mounts": ",".join(profile.mounts),
    }
    traced = asked.options.nccl_trace and script.trace_results
    return values | {"results": text_of(traced or script.results, values)}


def text_of(text: str, values: Values) -> str:
    """A text of the published procedure with its placeholders filled; null is the word `null`."""
    return str(filled(f" {text}", values))[1:]
