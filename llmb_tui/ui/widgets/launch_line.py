"""`LaunchLine`: what a submission on its way is doing, and for how long; nothing while there is none."""

from __future__ import annotations

from textual.reactive import var

from llmb_tui.ui.found import Found
from llmb_tui.ui.launching import Launching
from llmb_tui.ui.text import MUTED, line
from llmb_tui.ui.widgets.paragraphs import Paragraph, Paragraphs, fact
from llmb_tui.ui.widgets.run_header import what_runs

_TICK_S = 1.0


class LaunchLine(Paragraphs):
    """It counts by itself."""

    launching: var[Launching | None] = var[Launching | None](None)
    other: var[bool] = var(False)
    """It is for other answers than those that are shown."""

    def show(self, found: Found) -> None:
        """Take over what is on its way."""
        launching = found.launching
        run = launching.run if launching is not None else None
        self.other = run is not None and (run.plan.selection, run.procedure) != (found.selection, found.procedure)
        self.launching = launching

    def on_mount(self) -> None:
        """Begin to count."""
        self.set_interval(_TICK_S, self.watch_launching)

    def watch_launching(self) -> None:
        """Show it as it is now."""
        self.display = self.launching is not None
        if self.launching is not None:
            self.parts = launch_parts(self.launching, self.other)


def launch_parts(launching: Launching, other: bool) -> tuple[Paragraph, ...]:
    """For how long, which run where that is another one, and the last line of its output."""
    run = launching.run
    which = f"   {what_runs(run)} on {run.cluster}" if other else ""
    parts = [fact("now", line((launching.words, "$text-warning"), (which, MUTED)))]
    if launching.said:
        parts.append(fact("", line((launching.said, MUTED))))
    return tuple(parts)
