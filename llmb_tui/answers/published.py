"""`published`: every published configuration, with its expected step time."""

from __future__ import annotations

from collections.abc import Sequence

from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import Grid
from llmb_tui.answers.plan import scaling_word
from llmb_tui.answers.table import Column, Table, expected_cell
from llmb_tui.language.states import NO_ESTIMATE, method_word
from llmb_tui.plan.document import document
from llmb_tui.plan.plan import Plan

_PLAN: tuple[Column, ...] = (
    Column("workload", "selection.recipe_id"),
    Column("size", "selection.size"),
    Column("GPU", "selection.gpu"),
    Column("dtype", "selection.dtype"),
    Column("GPUs", "selection.scale"),
    Column("scaling", lambda plan: scaling_word(plan.scaling)),
    Column("step s", lambda plan: expected_cell(plan.estimate)),
    Column("source", lambda plan: method_word(plan.estimate.method) if plan.estimate else NO_ESTIMATE),
)


def published_answer(plans: Sequence[Plan]) -> Answer:
    """A table of plans of published configurations."""
    return Answer(
        "Published configurations",
        lambda: (Grid("", Table.by(_PLAN, plans)),),
        lambda: [document(plan) for plan in plans],
    )
