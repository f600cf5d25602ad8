"""`View`: what the wizard's body and panes are given to render."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.plan.plan import Plan
from llmb_tui.ui.found import Found
from llmb_tui.ui.published import NOTHING_KNOWN, PublishedLaunch
from llmb_tui.wizard.answers import Answers

if TYPE_CHECKING:
    from llmb_tui.plan.calibration import MeasuredHere


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
    usual: Plan | None = None
    """The plan of the same selection with the recipe's own layout; the plan itself where nothing is set by hand."""
    here: MeasuredHere | None = None
    """What runs on the chosen cluster say about the plan."""
