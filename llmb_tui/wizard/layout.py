"""The layout as it is asked for: what the recipe has in each field, and what is to be said of what was set by hand."""

from __future__ import annotations

from llmb_tui.plan.plan import Parallelism, Plan, Problem
from llmb_tui.wizard.answers import LAYOUT_FIELDS, LayoutField

LAYOUT_TITLES: dict[LayoutField, str] = {
    **{name: name.upper() for name in LAYOUT_FIELDS[:7]},
    "seq_len": "seq",
    "layers": "layers",
}
"""What the fields are called on the screen."""


def shown(layout: Parallelism, field: LayoutField) -> str:
    """A value as it would be typed: no virtual stages are one."""
    return str(getattr(layout, field) or 1)


def other_layout(usual: Plan | None, plan: Plan | None) -> tuple[str, ...]:
    """Where a plan's layout is not the recipe's, as a sentence; none where it is, however it was set.

    `usual` is the plan of the same selection with nothing of its layout set by hand.
    """
    if usual is None or plan is None:
        return ()
    ours, theirs = plan.parallelism, usual.parallelism
    differing = [field for field in LAYOUT_FIELDS if shown(ours, field) != shown(theirs, field)]
    named = "; ".join(f"{LAYOUT_TITLES[field]} {shown(ours, field)}, not {shown(theirs, field)}" for field in differing)
    whose = "published" if usual.printed is not None else "recipe's"
    return (f"not the {whose} layout: {named}",) if differing else ()


def layout_problems(plan: Plan) -> tuple[Problem, ...]:
    """What is wrong with the fields of the layout, and what is unusual in those that were set by hand."""
    own = plan.selection.overrides.given()
    return tuple(
        problem
        for problem in plan.problems
        if problem.field in own or (problem.field in LAYOUT_FIELDS and problem.severity == "error")
    )
