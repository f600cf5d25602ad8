"""`needs_of`: what a procedure needs of a plan's cluster, for the preflight. Pure."""

from __future__ import annotations

from llmb_tui.catalog.recipe import Recipe
from llmb_tui.cluster.preflight.needs import Needs
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.launch.published.steps import published_steps
from llmb_tui.launch.spec_of import image_path
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.selection import Procedure


def needs_of(recipe: Recipe, plan: Plan, profile: ClusterProfile, procedure: Procedure = "direct") -> Needs:
    """What is needed for a plan on a profile's cluster.

    The direct procedure takes the image and, where the run was asked for it, a tokenizer; the published one a
    repository and, for some recipes, a Python environment and a tokenizer.
    """
    published = recipe.published if procedure == "recipe" else None
    scripts = (published.setup, published.launch) if published else ()
    set_up = published_steps(recipe, plan, profile)[-1].results[0] if published and plan.container else ""
    python = (published.python_exact or published.python) if published else recipe.access.python
    return Needs(
        known=True,
        image=image_path(profile.install_dir, plan.container) if plan.container else "",
        venv=published is not None and python is not None,
        python=python,
        python_only=published is not None and published.python_exact is not None,
        git=published is not None,
        hub=any(script.needs_hub_token for script in scripts) or plan.options.hub_tokenizer,
        set_up=set_up,
        hub_each_run=plan.options.hub_tokenizer or (published is not None and published.launch.needs_hub_token),
    )
