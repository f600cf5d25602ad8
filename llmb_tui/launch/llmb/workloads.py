"""What of the catalog an installation of NVIDIA's own tools has; and a preflight that says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.cluster.llmb.find import LlmbFound, find_installs
from llmb_tui.cluster.llmb.install import LlmbInstall, LlmbWorkload
from llmb_tui.cluster.preflight.examination import cleaned, ok, warning
from llmb_tui.cluster.preflight.report import Check, Preflight
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.session import Session
from llmb_tui.errors import Trouble
from llmb_tui.launch.spec_of import image_path

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
    own = ".".join((install.release or "").split(".")[:2])
    images = [
        image_path("", recipe.gpus[install.gpu_type].container).rpartition("/")[2]
        for recipe in recipes
        if recipe.release == own and install.gpu_type in recipe.gpus
    ]
    below = f"{install.root}/venvs/"
    return KnownWorkload(
        name=workload.name,
        sizes=tuple(dict.fromkeys(size for recipe in recipes for size in recipe.models)),
        recipes=tuple(recipe.id for recipe in recipes),
        same_release=any(recipe.release == own for recipe in recipes),
        image=next((image for image in images if image in install.images), None),
        # Of environments elsewhere it is not known what is there.
        venv_missing=bool(workload.venv)
        and str(workload.venv).startswith(below)
        and str(workload.venv).removeprefix(below) not in install.venvs,
    )


def with_llmb(
    session: Session,
    profile: ClusterProfile,
    catalog: Catalog,
    report: Preflight,
    on_progress: Callable[[Preflight], None] | None = None,
) -> Preflight:
    """The report, and where NVIDIA's own tools are installed a check that names what they have. It gates nothing."""
    try:
        found = find_installs(session, profile.install_dir)
    except Trouble:
        return report  # what the checks say of the connection is enough
    checks = tuple(map(cleaned, checks_of(catalog, found)))
    if not checks:
        return report
    report = Preflight((*report.checks, *checks))
    if on_progress is not None:
        on_progress(report)
    return report


def checks_of(catalog: Catalog, found: LlmbFound) -> tuple[Check, ...]:
    """One for each installation, and one for each configuration that cannot be used."""
    needed = "nothing of it; its images and settings can be used"
    checks = [ok(_TITLE, _TITLE, summary(catalog, install), needed) for install in found.installs]
    troubles = [
        warning(_TITLE, _TITLE, f"{trouble.what} {trouble.why}", "a configuration of form 1 or 2", trouble.fix)
        for trouble in found.troubles
    ]
    return (*checks, *troubles)


def summary(catalog: Catalog, install: LlmbInstall) -> str:
    """An installation in one line."""
    workloads = known_workloads(catalog, install)
    names = ", ".join(_words(workload) for workload in workloads)
    return f"{install.name} at {install.root}: {f'{names} installed' if names else 'no workload is installed'}"


def _words(workload: KnownWorkload) -> str:
    return workload.name + (" (environment missing)" if workload.venv_missing else "")
