"""What of the catalog an installation of NVIDIA's own tools has; and the checks that say so."""

from __future__ import annotations

from dataclasses import dataclass

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.cluster.cluster import Cluster
from llmb_tui.cluster.llmb.install import LlmbInstall, LlmbInventory, LlmbWorkload, find_installs
from llmb_tui.cluster.session import login_node
from llmb_tui.errors import Trouble
from llmb_tui.launch.naming import image_path
from llmb_tui.preflight.check_group import CheckGroup, ok, warning
from llmb_tui.preflight.report import Check, Preflight

_TITLE = "llmb-run"


@dataclass(frozen=True, slots=True)
class KnownWorkload:
    """An installed workload, and what of it is known here."""

    name: str
    """As llmb-run names it, such as `pretrain_nemotron4-340b`."""
    sizes: tuple[str, ...]
    """Of the recipes of that workload; empty where no preset has it."""
    recipes: tuple[str, ...]
    """The presets of that workload, of whatever release, newest first."""
    same_release: bool
    """One of them is of the installation's release: its runs can be opened."""
    image: str | None
    """Image of that recipe for the installation's GPUs, where it is there; the direct procedure takes it as it is."""
    venv_missing: bool
    """Its Python environment is not where the configuration says."""


def known_workloads(catalog: Catalog, install: LlmbInstall) -> tuple[KnownWorkload, ...]:
    """The installed workloads in the configuration's order."""
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
        # Of environments elsewhere it is not known what is there.
        venv_missing=bool(workload.venv)
        and str(workload.venv).startswith(below)
        and str(workload.venv).removeprefix(below) not in install.venvs,
    )


def llmb_group(catalog: Catalog) -> CheckGroup:
    """A check for each installation of NVIDIA's own tools that names what it has. It gates nothing."""

    def group(cluster: Cluster, report: Preflight) -> tuple[Check, ...]:  # noqa: ARG001 - a `CheckGroup`'s
        session = login_node(cluster)
        try:
            return checks_of(catalog, find_installs(session, session.profile.install_dir))
        except Trouble:
            return ()  # what the checks say of the connection is enough

    return group


def checks_of(catalog: Catalog, survey: LlmbInventory) -> tuple[Check, ...]:
    """One for each installation, and one for each configuration that cannot be used."""
    needed = "nothing of it; its images and settings can be used"
    checks = [ok(_TITLE, _TITLE, summary(catalog, install), needed) for install in survey.installs]
    troubles = [
        warning(_TITLE, _TITLE, f"{trouble.what} {trouble.why}", "a configuration of form 1 or 2", trouble.fix)
        for trouble in survey.troubles
    ]
    return (*checks, *troubles)


def summary(catalog: Catalog, install: LlmbInstall) -> str:
    """An installation in one line."""
    workloads = known_workloads(catalog, install)
    names = ", ".join(one.name + (" (environment missing)" if one.venv_missing else "") for one in workloads)
    return f"{install.name} at {install.root}: {f'{names} installed' if names else 'no workload is installed'}"
