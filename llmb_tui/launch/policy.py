"""`Policy`: what the operator allows, whatever is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llmb_tui.cluster.profile import ClusterProfile


@dataclass(frozen=True, slots=True)
class Policy:
    """What the operator allows, on every cluster."""

    read_only: bool = False
    """Clusters are only looked at."""
    gpu_hours: float | None = None
    """Most GPU-hours that one run may take, by its GPUs and its time limit; None: no limit."""
    suite_gpu_hours: float = float("inf")
    """A suite that is expected to take more is agreed to by typing the number."""

    def observes(self, profile: ClusterProfile | None) -> bool:
        """Observer mode, of all clusters or of this one: nothing there may be changed. None: it has no profile."""
        return self.read_only or (profile is not None and profile.read_only)
