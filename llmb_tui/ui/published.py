"""`PublishedLaunch`: what would start a plan by the published procedure on a cluster, and what stands against it."""

# ruff: noqa: PLC0415 - the room that makes the command imports too much for the first frame
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from llmb_tui.catalog.recipe import Recipe
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.errors import Trouble
from llmb_tui.plan.plan import Plan, Problem

if TYPE_CHECKING:
    from llmb_tui.launch.published.command import PublishedCommand


@dataclass(frozen=True, slots=True)
class PublishedLaunch:
    """For one plan, on one cluster."""

    command: PublishedCommand | None = None
    """None while there is no cluster or no plan, and where there is no such command."""
    problems: tuple[Problem, ...] = ()
    differences: tuple[str, ...] = ()
    """What we do otherwise than the recipe's documents say."""
    notes: tuple[str, ...] = ()
    """What is to be known of the procedure itself."""


NOTHING_KNOWN = PublishedLaunch()


def published_launch(
    recipe: Recipe, plan: Plan | None, profile: ClusterProfile | None, against: tuple[Problem, ...] = ()
) -> PublishedLaunch:
    """What is known of it with the answers so far: without a cluster only whether the recipe has it.

    `against` is what the cluster has shown to stand against it.
    """
    from llmb_tui.launch.published.command import differences, published_command
    from llmb_tui.launch.published.paths import procedure_of

    try:
        procedure = procedure_of(recipe)
        if plan is None or profile is None:
            return NOTHING_KNOWN
        command = published_command(recipe, plan, profile)
    except Trouble as trouble:
        reason = f"{trouble.what} {trouble.why}".rstrip()
        return PublishedLaunch(problems=(Problem("procedure", "error", reason, trouble.fix),))
    return PublishedLaunch(command, (*against, *command.problems), differences(recipe), procedure.notes)
