"""`read_start`: what the wizard starts with, read in a thread after the first frame."""

# ruff: noqa: PLC0415 - nothing heavy is imported before the first frame
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.selection import Procedure, Selection
from llmb_tui.wizard.answers import Answers, answers_of

if TYPE_CHECKING:
    from llmb_tui.launch.run import Run
    from llmb_tui.services import Services


@dataclass(frozen=True, slots=True)
class Start:
    """Presets, saved clusters, and where the person was last time."""

    catalog: Catalog
    make: Callable[[Catalog, Selection], Plan]
    profiles: tuple[ClusterProfile, ...]
    answers: Answers
    going: tuple[Run, ...]
    """Runs that had not ended when they were last looked at, newest first."""


def read_start(services: Services) -> Start:
    """Read everything. Raises `Trouble` for a preset, profile or run file that does not fit."""
    from llmb_tui.launch.published import command  # noqa: F401 - it takes long, and the first key must not wait for it
    from llmb_tui.plan.make import plan

    catalog, profiles, runs = services.catalog(), services.profiles(), services.runs().all()
    known = {recipe.id for recipe in catalog.recipes}
    names = {profile.name for profile in profiles}
    answers = Answers()
    ours = [run for run in runs if run.spec]
    if ours:
        procedure: Procedure = "recipe" if ours[0].procedure == "recipe" else "direct"
        last = answers_of(ours[0].plan.selection, ours[0].cluster, procedure)
        answers = last if last.recipe in known else Answers()
    if answers.cluster not in names:
        answers = replace(answers, cluster=profiles[0].name if len(profiles) == 1 else None)
    return Start(catalog, plan, profiles, answers, tuple(run for run in runs if run.going))


@dataclass(frozen=True, slots=True)
class Saved:
    """A profile that was saved, and all saved ones."""

    profile: ClusterProfile
    profiles: tuple[ClusterProfile, ...]


@dataclass(frozen=True, slots=True)
class Again:
    """What may have changed while another screen was in front."""

    going: tuple[Run, ...]
    launched: Run | None


def read_again(services: Services, launched: Run | None) -> Again:
    """Read the runs again; `launched` is the one of the wizard."""
    runs = services.runs().all()
    newer = next((run for run in runs if launched is not None and run.id == launched.id), launched)
    return Again(tuple(run for run in runs if run.going), newer)
