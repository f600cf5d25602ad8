"""`listed`: what a recipe publishes, as selections."""

from __future__ import annotations

from collections.abc import Iterator

from llmb_tui.catalog.recipe import Recipe
from llmb_tui.catalog.rows import rows
from llmb_tui.plan.selection import Selection


def listed(recipe: Recipe) -> Iterator[Selection]:
    """One selection for each published configuration, in the order of the tables."""
    for row in rows(recipe):
        strong = row.scaling == "strong"
        yield Selection(recipe.workload, recipe.release, row.size, row.gpu, row.dtype, row.gpus, strong)
