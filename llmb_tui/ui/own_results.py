"""`Own`: what runs on a cluster took, read from this machine's own copies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llmb_tui.plan.calibration import MeasuredHere, OwnResult
    from llmb_tui.plan.plan import Plan
    from llmb_tui.services import Services


@dataclass(frozen=True, slots=True)
class Own:
    """The finished benchmarks of one cluster."""

    cluster: str = ""
    """Name of its profile; empty while none is chosen."""
    results: tuple[OwnResult, ...] = ()

    def measured(self, plan: Plan | None) -> MeasuredHere | None:
        """What they say about a plan. Pure, and fast enough for every key press."""
        if plan is None or not self.results:
            return None
        from llmb_tui.plan.calibration import measured_here  # noqa: PLC0415 - not needed for the first frame

        return measured_here(plan, self.results)


def read_own(services: Services, cluster: str) -> Own:
    """Read them, in a thread: the first time the logs of all runs are read."""
    return Own(cluster, services.own_results(cluster))
