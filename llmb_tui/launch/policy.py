"""`Policy`: limits that the operator sets for all requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llmb_tui.cluster.profile import ClusterProfile


@dataclass(frozen=True, slots=True)
class Policy:
    """Limits that the operator sets, on every cluster."""

    read_only: bool = False
    """True if no cluster may be changed."""
    gpu_hours: float | None = None
    """Largest number of GPU-hours of one run, by its GPUs and time limit; None: no limit."""
    suite_gpu_hours: float = float("inf")
    """Expected GPU-hours of a suite above which the user confirms it by typing the number."""

    def is_read_only(self, profile: ClusterProfile | None) -> bool:
        """True if the cluster is read-only, by its profile or by this policy. None: the cluster has no profile."""
        return self.read_only or (profile is not None and profile.read_only)
