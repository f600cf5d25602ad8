"""`installed`: the steps of an install and their states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import Grid
from llmb_tui.answers.table import Column, State, Table
from llmb_tui.language.states import install_label
from llmb_tui.launch.step_state import StepState

_STEP: tuple[Column, ...] = (
    Column("state", lambda step: State(step.status, install_label(step.status))),
    Column("step", "title"),
    Column("size", "size"),
)


def install_answer(cluster: str, steps: Sequence[StepState]) -> Answer:
    """The steps of an install on a cluster, in order."""
    return Answer(
        f"Install on {cluster}", lambda: (Grid("", Table.by(_STEP, steps)),), lambda: [asdict(step) for step in steps]
    )
