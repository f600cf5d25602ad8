"""`RunPart`: a widget that shows one side of the screen's run."""

from __future__ import annotations

from textual.reactive import reactive
from textual.widget import Widget

from llmb_tui.launch.run import Run
from llmb_tui.watch.state import RunState, Stage

ENDED: tuple[Stage, ...] = ("done", "failed", "cancelled")
"""Stages that nothing follows."""


class RunPart(Widget):
    """Bound to the run screen's two values; draws again when one changes, and asks nobody for more."""

    training_run: reactive[Run | None] = reactive[Run | None](None)
    """None until the run is loaded."""
    run_state: reactive[RunState | None] = reactive[RunState | None](None)
    """None until the monitor has published."""
