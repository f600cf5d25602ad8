"""`Planned`: everything that follows from the answers without asking anybody."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.selection import Overrides, Selection
from llmb_tui.ui.not_public import NotPublic
from llmb_tui.ui.published import NOTHING_KNOWN, PublishedLaunch, published_launch
from llmb_tui.wizard.answers import Answers, recipe_of, selection


@dataclass(frozen=True, slots=True)
class Planned:
    """One set of answers, planned."""

    profile: ClusterProfile | None = None
    """Of the chosen cluster, as far as it is saved."""
    selection: Selection | None = None
    """None while what was typed is none."""
    plan: Plan | None = None
    usual: Plan | None = None
    """The plan of the same selection with the recipe's own layout."""
    published: PublishedLaunch = NOTHING_KNOWN


def planned(
    catalog: Catalog,
    make: Callable[[Catalog, Selection], Plan],
    answers: Answers,
    profiles: tuple[ClusterProfile, ...],
    not_public: NotPublic,
) -> Planned:
    """Plan the answers, fast enough for every key press."""
    profile = next((one for one in profiles if one.name == answers.cluster), None)
    chosen = selection(catalog, answers)
    plan = usual = make(catalog, chosen) if chosen is not None else None
    if chosen is not None and chosen.overrides.given():
        usual = make(catalog, replace(chosen, overrides=Overrides()))
    against = not_public.against(profile, chosen)
    published = published_launch(recipe_of(catalog, answers), plan, profile, against)
    if plan is not None and answers.procedure == "recipe":
        plan = replace(plan, problems=plan.problems + published.problems)
    return Planned(profile, chosen, plan, usual, published)
