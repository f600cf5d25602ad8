"""`View`: what the wizard's body and panes are given to render."""

from __future__ import annotations

from dataclasses import dataclass

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.plan.plan import Plan
from llmb_tui.ui.found import Found
from llmb_tui.ui.published import NOTHING_KNOWN, PublishedLaunch
from llmb_tui.wizard.answers import Answers


@dataclass(frozen=True, slots=True)
class View:
    """One state of the wizard."""

    catalog: Catalog
    answers: Answers
    """As the person gave them."""
    full: Answers
    """With defaults for the rest."""
    plan: Plan | None
    found: Found
    published: PublishedLaunch = NOTHING_KNOWN
    """Whether or not it is the chosen procedure."""
