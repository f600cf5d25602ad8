"""The answer to `install`: a row for each step, with its state and its size."""

from __future__ import annotations

import pytest

from llmb_tui.answers.blocks import Grid
from llmb_tui.answers.install import install_answer
from llmb_tui.answers.table import toned_text
from llmb_tui.answers.writers.rows import rows
from llmb_tui.language.states import InstallStatus, Tone
from llmb_tui.launch.step_state import StepState

STEPS = (
    StepState("image", "Container image", "done", size="21.4 GB"),
    StepState("venv", "Python environment", "running", "Collecting numpy", "1.2 GB written, about 3 min left"),
    StepState("dataset", "Data set", "missing", size="4 GB to download"),
    StepState(
        "tokenizer", "Tokenizer", "failed", "401 Unauthorized", "", "The API key is invalid.", "Enter another key."
    ),
)


def test_the_text_has_one_row_per_step_in_install_order() -> None:
    answer = install_answer("eos", STEPS)
    assert answer.title == "Install on eos"
    assert [row.text for row in rows(answer.make_blocks())] == [
        "state    step                size",
        "done     Container image     21.4 GB",
        "running  Python environment  1.2 GB written, about 3 min left",
        "missing  Data set            4 GB to download",
        "failed   Tokenizer",
    ]


@pytest.mark.parametrize(
    ("status", "text", "tone"),
    [
        ("done", "✓ done", "good"),
        ("running", "● running", "active"),
        ("missing", "○ missing", "quiet"),
        ("failed", "✗ failed", "bad"),
    ],
)
def test_each_state_of_a_step_has_its_glyph_and_tone_on_a_screen(status: InstallStatus, text: str, tone: Tone) -> None:
    (grid,) = install_answer("eos", [StepState("image", "Container image", status)]).make_blocks()
    assert isinstance(grid, Grid)
    ((state, *_),) = grid.table.rows
    assert toned_text(state) == (text, tone)


def test_the_document_has_the_reason_and_the_fix_of_a_failed_step() -> None:
    document = install_answer("eos", STEPS).make_document()
    assert [step["status"] for step in document] == ["done", "running", "missing", "failed"]
    failed = document[-1]
    assert (failed["detail"], failed["reason"], failed["fix"]) == (
        "401 Unauthorized", "The API key is invalid.", "Enter another key.",
    )  # fmt: skip
