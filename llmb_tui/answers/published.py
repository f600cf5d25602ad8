"""`published`: every published configuration, with its expected step time."""

from __future__ import annotations

from collections.abc import Sequence

from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import Grid
from llmb_tui.answers.table import Column, Table, expected_cell
from llmb_tui.language.states import method_word
from llmb_tui.plan.document import document
from llmb_tui.plan.plan import Plan

_PLAN: tuple[Column, ...] = (
    Column("workload", "selection.recipe_id"),
    Column("size", "selection.size"),
    Column("GPU", "selection.gpu"),
    Column("dtype", "selection.dtype"),
    Column("GPUs", "selection.scale"),
    Column("scaling", "scaling"),
    Column("step s", lambda plan: expected_cell(plan.estimate)),
    Column("from", lambda plan: method_word(plan.estimate.method) if plan.estimate else "no number"),
)


def published(plans: Sequence[Plan]) -> Answer:
    """The configurations of these plans."""
    return Answer(
        "Published configurations",
        lambda: (Grid("", Table.by(_PLAN, plans)),),
        lambda: [document(plan) for plan in plans],
    )
