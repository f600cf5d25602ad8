"""`needs_of`: what a procedure needs of a plan's cluster, for the preflight. Pure."""

from __future__ import annotations

from llmb_tui.catalog.recipe import Recipe
from llmb_tui.cluster.preflight.needs import Needs
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.launch.run import Procedure
from llmb_tui.launch.spec_of import image_path
from llmb_tui.plan.plan import Plan


def needs_of(recipe: Recipe, plan: Plan, profile: ClusterProfile, procedure: Procedure = "direct") -> Needs:
    """What is needed for a plan on a profile's cluster.

    The direct procedure takes the image and, where the run was asked for it, a tokenizer; the published one a
    repository, a Python environment and, for some recipes, a tokenizer.
    """
    published = procedure == "recipe"
    return Needs(
        known=True,
        image=image_path(profile.install_dir, plan.container) if plan.container else "",
        venv=published,
        python=recipe.access.python,
        git=published,
        hub=(published and recipe.access.hub_token) or plan.options.hub_tokenizer,
    )
