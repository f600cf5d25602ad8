"""The two procedures as choices: by what a run is installed and started, and why it cannot be."""

from __future__ import annotations

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.plan.plan import Problem
from llmb_tui.wizard.answers import Answers, recipe_of, settled
from llmb_tui.wizard.choices import Choice


def procedures(catalog: Catalog, answers: Answers, against: tuple[Problem, ...]) -> tuple[Choice, ...]:
    """Direct and published. `against` is what the published one cannot do of what is asked for."""
    published = recipe_of(catalog, settled(catalog, answers)).published
    scripts = f"NVIDIA's own scripts, {published.tag}" if published else ""
    reason = next((problem.reason for problem in against if problem.severity == "error"), None)
    return (
        Choice("direct", "direct", "our script in the container"),
        Choice("recipe", "published", scripts, reason),
    )
