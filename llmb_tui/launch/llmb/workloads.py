"""`known_workloads`: workloads of an installation of NVIDIA's own tools that are in the catalog; checks about them."""

from __future__ import annotations

from dataclasses import dataclass

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.cluster.cluster import Cluster
from llmb_tui.cluster.llmb.install import LlmbInstall, LlmbInventory, LlmbWorkload, find_installs
from llmb_tui.cluster.session import login_node
from llmb_tui.errors import LlmbError
from llmb_tui.launch.naming import image_path
from llmb_tui.preflight.check_group import CheckGroup, ok, warning
from llmb_tui.preflight.report import Check, Preflight

_TITLE = "llmb-run"


@dataclass(frozen=True, slots=True)
class KnownWorkload:
    """An installed workload, and the catalog's knowledge of it."""

    name: str
    """Name in llmb-run, such as `pretrain_nemotron4-340b`."""
    sizes: tuple[str, ...]
    """Sizes of the workload's recipes; empty if no preset has it."""
    recipes: tuple[str, ...]
    """Presets of the workload, of any release, newest first."""
    same_release: bool
    """True if a preset is of the installation's release, so that its runs can be opened."""
    image: str | None
    """Installed image of that recipe for the installation's GPUs, which our script can use; None: missing."""
    venv_missing: bool
    """True if its Python environment is not at the configured path."""


def known_workloads(catalog: Catalog, install: LlmbInstall) -> tuple[KnownWorkload, ...]:
    """Installed workloads in the configuration's order."""
    return tuple(_known(catalog, install, workload) for workload in install.workloads)


def _known(catalog: Catalog, install: LlmbInstall, workload: LlmbWorkload) -> KnownWorkload:
    name = workload.name.removeprefix("pretrain_")
    recipes = [recipe for recipe in catalog.recipes if recipe.workload == name]
    release = ".".join((install.release or "").split(".")[:2])
    images = [
        image_path("", recipe.gpus[install.gpu_type].container).rpartition("/")[2]
        for recipe in recipes
        if recipe.release == release and install.gpu_type in recipe.gpus
    ]
    below = f"{install.root}/venvs/"
    return KnownWorkload(
        name=workload.name,
        sizes=tuple(dict.fromkeys(size for recipe in recipes for size in recipe.models)),
        recipes=tuple(recipe.id for recipe in recipes),
        same_release=any(recipe.release == release for recipe in recipes),
        image=next((image for image in images if image in install.images), None),
        # The contents of environments elsewhere are unknown.
        venv_missing=bool(workload.venv)
        and str(workload.venv).startswith(below)
        and str(workload.venv).removeprefix(below) not in install.venvs,
    )


def llmb_group(catalog: Catalog) -> CheckGroup:
    """Checks that list the contents of each installation of NVIDIA's own tools. They block nothing."""

    def group(cluster: Cluster, report: Preflight) -> tuple[Check, ...]:  # noqa: ARG001 - the signature of `CheckGroup`
        session = login_node(cluster)
        try:
            return checks_of(catalog, find_installs(session, session.profile.install_dir))
        except LlmbError:
            return ()  # the checks of the connection report this already

    return group


def checks_of(catalog: Catalog, survey: LlmbInventory) -> tuple[Check, ...]:
    """One check for each installation, and one for each invalid configuration."""
    needed = "nothing; its images and settings can be used"
    checks = [ok(_TITLE, _TITLE, summary(catalog, install), needed) for install in survey.installs]
    errors = [
        warning(_TITLE, _TITLE, f"{error.what} {error.why}", "a configuration of form 1 or 2", error.fix)
        for error in survey.errors
    ]
    return (*checks, *errors)


def summary(catalog: Catalog, install: LlmbInstall) -> str:
    """Installation in one line."""
    workloads = known_workloads(catalog, install)
    names = ", ".join(known.name + (" (environment missing)" if known.venv_missing else "") for known in workloads)
    return f"{install.name} at {install.root}: {f'{names} installed' if names else 'no workload is installed'}"
