"""`Launching`: a submission that is on its way, and how it is told."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from llmb_tui.ui.widgets.durations import clock

if TYPE_CHECKING:
    from llmb_tui.launch.run import Run


@dataclass(frozen=True, slots=True)
class Launching:
    """One run on its way to Slurm. A launch by the published procedure takes from seconds to minutes."""

    run: Run
    since: float
    """Monotonic time at which it began."""
    said: str = ""
    """The last line of its output, clean; empty where there is none."""

    @property
    def words(self) -> str:
        """What is being done, for how long, and that nobody has to wait for it."""
        done = "launching" if self.run.procedure == "recipe" else "submitting"
        return f"{done} for {clock(max(0.0, time.monotonic() - self.since))}; it goes on when you leave"


def launched_words(run: Run) -> str:
    """What came of it, for who is looking at something else."""
    if run.submission == "unknown":
        return f"It is not known whether run {run.id} was submitted. J lists it, and asks."
    jobs = f", job{'s' * (len(run.job_ids) > 1)} {', '.join(run.job_ids)}" if run.job_ids else ""
    return f"Run {run.id} is {run.submission} to {run.cluster}{jobs}. J lists it."
